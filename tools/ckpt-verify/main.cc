// SPDX-License-Identifier: Apache-2.0
//
// ckpt-verify: says whether a checkpoint can be trusted.
#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sealpoint/progress.h"
#include "sealpoint/series.h"
#include "tools/ckpt-verify/options.h"
#include "tools/ckpt-verify/print.h"
#include "tools/common/exit_status.h"
#include "tools/common/hint.h"
#include "tools/common/output.h"
#include "tools/common/storages.h"
#include "tools/common/text.h"

namespace sealpoint::tools {
namespace {

// What a series is found to be.
struct SeriesResult {
  std::string path;
  Status error;
  SeriesListing listing;
  std::map<Verdict, std::uint64_t> counts;  // of its checkpoints

  std::uint64_t count(Verdict verdict) const {
    const auto found = counts.find(verdict);
    return found == counts.end() ? 0 : found->second;
  }
};

constexpr std::array kVerdicts = {std::pair(Verdict::kCommitted, "valid"),
                                  std::pair(Verdict::kCorrupt, "corrupt"),
                                  std::pair(Verdict::kIncomplete, "incomplete"),
                                  std::pair(Verdict::kUnreadable, "unreadable"),
                                  std::pair(Verdict::kUnsupported, "unsupported"),
                                  std::pair(Verdict::kUncommitted, "uncommitted")};

class Run {
 public:
  explicit Run(const Options& options) : options_(options) {}

  ExitStatus All() {
    if (options_.json) {
      json_.BeginObject();
      json_.BeginArray("reports");
    }
    for (const std::string& path : options_.paths) CheckPath(path);
    for (const std::string& path : options_.series) CheckSeries(path);
    if (options_.json) FinishJson();
    return status_;
  }

 private:
  bool verbose() const { return !options_.quiet && !options_.json; }

  void Note(const std::string& path, const std::string& text) const {
    if (verbose()) PrintNote(path, text);
  }

  // The checkpoint's verdict counts.
  VerifyReport CheckPath(const std::string& path) {
    if (OutputFailed()) return {};
    if (options_.json) {
      json_.BeginObject();
      json_.Field("path", path);
      json_.BeginArray("violations");
    }
    ProgressLine line;
    VerifyReport report = VerifyPath(path, line);
    line.Clear();
    if (options_.json) {
      WriteReportJson(report);
    } else {
      PrintReport(report, options_);
      const bool is_none = report.verdict == Verdict::kUnreadable;
      if (is_none && verbose()) PrintHint(path, HintForCheckpoint(path));
    }
    Flush();
    status_ = Worse(status_, ExitStatusOf(report.verdict));
    return report;
  }

  VerifyReport VerifyPath(const std::string& path, ProgressLine& line) {
    VerifyOptions options{.level = options_.level, .threads = options_.threads};
    if (verbose()) {
      options.on_progress = [&line](const VerifyProgress& done) {
        line.Set("verify", done.bytes_done, done.bytes_total);
      };
    }
    if (options_.all) {
      options.on_violation = [&](const Status& violation) {
        const auto held = line.Hold();
        options_.json ? json_.Element(StatusToJson(violation)) : PrintViolation(violation);
      };
    } else {
      options.violations_per_file_max = kViolationsPerFileMax;
    }
    const Result<VerifyReport> result = Verify(path, options);
    if (result) return *result;
    if (options.on_violation) options.on_violation(result.error());
    VerifyReport report{.path = path, .level = options_.level, .violation_count = 1};
    report.violations.push_back(result.error());
    return report;
  }

  void WriteReportJson(const VerifyReport& report) {
    if (!options_.all) {
      for (const Status& violation : report.violations) json_.Element(StatusToJson(violation));
    }
    json_.End();
    json_.BeginArray("omitted");
    if (!options_.all) {
      for (const OmittedViolations& file : report.omitted) {
        json_.Element({{"path", file.path}, {"violation_count", file.count}});
      }
    }
    json_.End();
    WriteReport(json_, report);
    json_.End();
  }

  void CheckEntry(const SeriesEntry& entry, SeriesResult& series) {
    if (entry.verdict == Verdict::kUncommitted) {
      Note(entry.path, fmt::format("uncommitted{}, {} left over", entry.is_void ? " (void)" : "",
                                   BytesText(entry.size_bytes)));
      ++series.counts[Verdict::kUncommitted];
      return;
    }
    const Verdict verdict = CheckPath(entry.path).verdict;
    ++series.counts[verdict];
    // It could be read now and not when the series was listed: it may be the newest, and a branch.
    if (entry.verdict == Verdict::kUnreadable && verdict != Verdict::kUnreadable) {
      series.error = entry.problem;
      status_ = Worse(status_, ExitStatus::kUnreadable);
    }
  }

  // Valid: the newest committed checkpoint is there and every committed one is good.
  void CheckSeries(const std::string& path) {
    SeriesResult series{.path = path};
    Result<SeriesListing> listing = ListSeries(path);
    if (listing) {
      series.listing = std::move(*listing);
      for (const SeriesEntry& entry : series.listing.entries) CheckEntry(entry, series);
      if (series.listing.newest() == nullptr) status_ = Worse(status_, StatusWithoutNewest(series));
    } else {
      series.error = std::move(listing).error();
      status_ = Worse(status_, ExitStatusOf(VerdictOf(series.error)));
    }
    if (options_.json) {
      series_.push_back(std::move(series));
    } else {
      PrintSeries(series);
    }
  }

  // A name that does not exist is an empty series for the library, but here it was typed.
  static Result<SeriesListing> ListSeries(const std::string& path) {
    const auto directory = DefaultStorage()->OpenDirectory(path);
    if (!directory) return Status(directory.error()).AtPath(path);
    return Series(path).List();
  }

  static ExitStatus StatusWithoutNewest(const SeriesResult& series) {
    return series.listing.entries.empty() ? ExitStatus::kUnreadable : ExitStatus::kUncommitted;
  }

  void PrintSeries(const SeriesResult& series) const {
    if (!series.error.ok()) PrintViolation(series.error);
    const SeriesListing& listing = series.listing;
    for (const AttemptId& fork : listing.forks) {
      Note(series.path, fmt::format("attempt {} shares its parent with another", fork.ToHex()));
    }
    for (const std::string& name : listing.foreign) {
      Note(series.path, "foreign, not checked: " + name);
    }
    const std::uint64_t more = listing.foreign_count - listing.foreign.size();
    if (more > 0) Note(series.path, "foreign, not checked: " + FormatCount(more, "more name"));
    if (!verbose()) return;
    if (listing.entries.empty()) PrintHint(series.path, HintForSeries(series.path));
    if (!series.error.ok()) return;
    std::string counts;
    for (const auto& [verdict, word] : kVerdicts) {
      const std::uint64_t count = series.count(verdict);
      const bool is_always = verdict == Verdict::kCommitted || verdict == Verdict::kUncommitted;
      if (count == 0 && !is_always) continue;
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, word);
    }
    Print("{}: series of {} ({}): {}\n", Printable(series.path),
          FormatCount(listing.entries.size(), "checkpoint"), VerifyLevelName(options_.level),
          counts);
  }

  void FinishJson() {
    json_.End();
    json_.BeginArray("series");
    for (const SeriesResult& series : series_) WriteSeries(series);
    json_.End();
    json_.Field("exit_status", static_cast<int>(status_));
    json_.End();
  }

  void WriteSeries(const SeriesResult& series) {
    const SeriesListing& listing = series.listing;
    json_.BeginObject();
    json_.Field("path", series.path);
    if (!series.error.ok()) json_.Field("error", StatusToJson(series.error));
    json_.Field("newest", listing.newest() == nullptr ? Json() : Json(listing.newest()->name));
    json_.Field("checkpoint_count", listing.entries.size());
    for (const auto& [verdict, word] : kVerdicts) {
      json_.Field(fmt::format("{}_count", word), series.count(verdict));
    }
    json_.BeginArray("uncommitted");
    for (const SeriesEntry& entry : listing.entries) {
      if (entry.verdict != Verdict::kUncommitted) continue;
      json_.Element({{"path", entry.path}, {"void", entry.is_void}, {"bytes", entry.size_bytes}});
    }
    json_.End();
    json_.BeginArray("forks");
    for (const AttemptId& fork : listing.forks) json_.Element(fork.ToHex());
    json_.End();
    json_.BeginArray("foreign");
    for (const std::string& name : listing.foreign) json_.Element(name);
    json_.End();
    json_.Field("foreign_count", listing.foreign_count);
    json_.End();
  }

  const Options& options_;
  ExitStatus status_ = ExitStatus::kValid;
  JsonWriter json_;
  std::vector<SeriesResult> series_;  // with --json
};

}  // namespace
}  // namespace sealpoint::tools

int main(int argc, char** argv) {
  sealpoint::tools::OpenStandardStreams();
  sealpoint::tools::RegisterStorages();
  sealpoint::tools::Options options;
  const auto status = sealpoint::tools::ParseOptions(argc, argv, options);
  return static_cast<int>(sealpoint::tools::FinishOutput(
      "ckpt-verify", status ? *status : sealpoint::tools::Run(options).All()));
}
