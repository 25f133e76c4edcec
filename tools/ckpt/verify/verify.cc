// SPDX-License-Identifier: Apache-2.0
//
// ckpt verify: says whether a checkpoint can be trusted.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/content.h"
#include "sealpoint/phases.h"
#include "sealpoint/series.h"
#include "sealpoint/storage.h"
#include "tools/ckpt/command.h"
#include "tools/ckpt/content.h"
#include "tools/ckpt/verify/options.h"
#include "tools/ckpt/verify/print.h"
#include "tools/ckpt/verify/series.h"
#include "tools/ckpt/verify/state.h"
#include "tools/common/exit_status.h"
#include "tools/common/hint.h"
#include "tools/common/limits.h"
#include "tools/common/output.h"
#include "tools/common/text.h"

namespace sealpoint::tools::verify {
namespace {

class Verification {
 public:
  Verification(const Options& options, std::string_view program)
      : options_(options), program_(program), verified_(VerifiedChunks::Create()) {}

  ExitStatus All() {
    if (const Status status = FindBases(); !status.ok()) {
      return tools::Fail(program_, status, "", options_.json ? &json_ : nullptr);
    }
    if (const Status status = OpenState(); !status.ok()) return Fail(status);
    if (options_.json) {
      json_.BeginObject();
      if (state_) json_.Field("state", {{"path", options_.state}, {"note", state_->note()}});
      json_.BeginArray("reports");
    }
    for (const std::string& path : options_.paths) CheckPath(path);
    for (const std::string& path : options_.series) CheckSeries(path);
    if (!OutputFailed()) CloseState();
    if (options_.json) FinishJson();
    return status_;
  }

 private:
  bool verbose() const { return !options_.quiet && !options_.json; }

  // By their markers: a base may have a base elsewhere, too.
  Status FindBases() {
    for (const std::string& path : options_.bases) {
      const Result<VerifyReport> report =
          Verify(path, {.level = VerifyLevel::kFiles, .limits = TypedLimits()});
      if (!report) return report.error();
      if (report->attempt.is_zero()) return report->violations.front();
      bases_[report->attempt] = path;
    }
    return {};
  }

  Status OpenState() {
    if (options_.state.empty()) return {};
    Result<std::unique_ptr<StateFile>> state = StateFile::Open(options_.state);
    if (!state) return state.error();
    state_ = *std::move(state);
    verified_ = state_->verified();
    if (!state_->note().empty()) Note(options_.state, state_->note());
    CatchSignals();
    return {};
  }

  ExitStatus Fail(const Status& error) {
    const bool is_storage = error.code() == Code::kIo || error.code() == Code::kNoSpace;
    const ExitStatus status = is_storage ? ExitStatus::kOutput : ExitStatus::kUsage;
    if (options_.json) {
      json_.Fail(error, status);
    } else {
      PrintError(program_, error.ToString());
    }
    return status;
  }

  // All was checked: the next verification begins anew. A state that stayed would be believed.
  void CloseState() {
    if (!state_) return;
    Status status = state_->Remove();
    if (status.ok() && state_->failure().ok()) return;
    if (!status.ok()) status_ = ExitStatus::kOutput;
    Flush();
    PrintError(program_, (status.ok() ? state_->failure() : status).ToString());
  }

  void EndIfInterrupted() const {
    const int signal = CaughtSignal();
    if (signal == 0) return;
    Flush();
    const Status status = state_->Save();
    PrintError(program_, status.ok() ? "interrupted; repeat the command to continue from here"
                                     : "interrupted; " + status.ToString());
    EndBySignal(signal);
  }

  void OnProgress(const PhaseEvent& done, ProgressLine& line) const {
    if (verbose()) line.Set("verify", done.bytes_done, done.bytes_total);
    if (!state_) return;
    if (CaughtSignal() != 0) throw std::runtime_error("interrupted");
    state_->SaveNowAndThen();
  }

  void Note(const std::string& path, const std::string& text) const {
    if (verbose()) PrintNote(path, text);
  }

  // The checkpoint's verdict counts. `is_damaged`: in a series a COMMIT that is no marker is
  // damaged (spec/series.md §3), not another kind of file.
  VerifyReport CheckPath(const std::string& path, bool is_damaged = false) {
    if (OutputFailed()) return {};
    if (options_.json) {
      json_.BeginObject();
      json_.Field("path", path);
      json_.BeginArray("violations");
    }
    ProgressLine line;
    VerifyReport report = VerifyPath(path, line);
    if (is_damaged && report.verdict == Verdict::kUnreadable) report.verdict = Verdict::kCorrupt;
    line.Clear();
    if (options_.json) {
      WriteReportJson(report);
    } else {
      PrintReport(report, options_);
      if (verbose()) PrintHint(path, HintForLimits(report));
      if (verbose()) PrintHint(path, HintForBase(report));
      const bool is_none = report.verdict == Verdict::kUnreadable;
      if (is_none && verbose()) PrintHint(path, HintForCheckpoint(path));
    }
    Flush();
    status_ = Worse(status_, ExitStatusOf(report.verdict));
    return report;
  }

  static std::string HintForLimits(const VerifyReport& report) {
    for (const Status& violation : report.violations) {
      if (std::string hint = HintForLimit(violation); !hint.empty()) return hint;
    }
    return "";
  }

  // A violation in another directory is one of a base.
  static std::string HintForBase(const VerifyReport& report) {
    const std::string inside = JoinPath(report.path, "");
    for (const Status& violation : report.violations) {
      if (violation.code() != Code::kIncomplete && violation.code() != Code::kCorrupt) continue;
      if (JoinPath(violation.place().path, "").starts_with(inside)) continue;
      return "--base DIR names the directory of a base elsewhere";
    }
    return "";
  }

  VerifyReport VerifyPath(const std::string& path, ProgressLine& line) {
    VerifyOptions options{.level = options_.level,
                          .threads = options_.threads,
                          .part = options_.part,
                          .bytes_per_second_max = options_.bytes_per_second_max,
                          .limits = TypedLimits(),
                          .base_directories = bases_,
                          .verified = verified_};
    if (verbose() || state_) {
      options.on_progress = [&](const PhaseEvent& done) { OnProgress(done, line); };
    }
    if (options_.all) {
      options.on_violation = [&](const Status& violation) {
        const auto held = line.Hold();
        options_.json ? json_.Element(StatusToJson(violation)) : PrintViolation(violation);
      };
    } else {
      options.violations_per_file_max = kViolationsPerFileMax;
    }
    Result<VerifyReport> result = Verify(path, options);
    if (result && options_.fingerprints && result->verdict == Verdict::kCommitted) {
      CheckFingerprintsOf(path, options, *result);
    }
    if (result) return *std::move(result);
    line.Clear();
    EndIfInterrupted();
    if (options.on_violation) options.on_violation(result.error());
    VerifyReport report{.path = path, .level = options_.level, .violation_count = 1};
    report.violations.push_back(result.error());
    return report;
  }

  static void NoteWithoutFingerprint(const Checkpoint& checkpoint, VerifyReport& report) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < checkpoint.tensor_count(); ++i) {
      if (!checkpoint.tensor(i).fingerprint) ++count;
    }
    if (count == 0) return;
    report.notes.push_back(
        fmt::format("{} of {} tensors have no stored fingerprint", count, report.tensor_count));
  }

  // What is wrong becomes a violation of the report.
  void CheckFingerprintsOf(const std::string& path, const VerifyOptions& options,
                           VerifyReport& report) const {
    const auto checkpoint =
        Checkpoint::Open(path, {.limits = TypedLimits(), .base_directories = bases_});
    Result<std::vector<Status>> violations =
        checkpoint ? CheckFingerprints(**checkpoint, {.threads = options_.threads,
                                                      .on_progress = options.on_progress})
                   : checkpoint.error();
    if (!violations) violations = std::vector<Status>{violations.error()};
    if (checkpoint) NoteWithoutFingerprint(**checkpoint, report);
    for (Status& violation : *violations) {
      report.verdict = VerdictOf(violation);
      ++report.violation_count;
      if (options.on_violation) options.on_violation(violation);
      report.violations.push_back(std::move(violation));
    }
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
    const VerifyReport report = CheckPath(entry.path, entry.verdict == Verdict::kCorrupt);
    const Verdict verdict = report.verdict;
    ++series.counts[verdict];
    series.total_bytes += report.total_bytes;
    series.shared_bytes += report.shared_bytes;
    // It could be read now and not when the series was listed: it may be the newest, and a branch.
    if (entry.verdict == Verdict::kUnreadable && verdict != Verdict::kUnreadable) {
      series.error = entry.problem;
      status_ = Worse(status_, ExitStatus::kUnreadable);
    }
  }

  void CheckEntries(SeriesResult& series) {
    const Since since(series.listing, options_.since);
    for (const SeriesEntry& entry : series.listing.entries) {
      if (since.Includes(entry)) {
        CheckEntry(entry, series);
      } else {
        ++series.older_count;
      }
    }
    if (since.status().ok()) return;
    series.error = Status(since.status()).AtPath(series.path);
    status_ = Worse(status_, ExitStatusOf(VerdictOf(series.error)));
  }

  // Valid: the newest committed checkpoint is there and every committed one is good.
  void CheckSeries(const std::string& path) {
    SeriesResult series{.path = path};
    Result<SeriesListing> listing = ListSeries(path);
    if (listing) {
      series.listing = std::move(*listing);
      CheckEntries(series);
      if (series.listing.newest() == nullptr) status_ = Worse(status_, StatusWithoutNewest(series));
    } else {
      series.error = std::move(listing).error();
      status_ = Worse(status_, ExitStatusOf(VerdictOf(series.error)));
    }
    if (options_.json) {
      series_.push_back(std::move(series));
    } else {
      PrintSeries(series, options_);
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

  void FinishJson() {
    json_.End();
    json_.BeginArray("series");
    for (const SeriesResult& series : series_) WriteSeries(series, json_);
    json_.End();
    json_.Finish(status_);
  }

  const Options& options_;
  const std::string_view program_;
  std::map<AttemptId, std::string> bases_;  // of --base
  std::shared_ptr<VerifiedChunks> verified_;
  std::unique_ptr<StateFile> state_;  // with --state
  ExitStatus status_ = ExitStatus::kValid;
  JsonWriter json_;
  std::vector<SeriesResult> series_;  // with --json
};

class VerifyCommand final : public Command {
 public:
  void Describe(CLI::App& app) override { AddOptions(app, options_); }
  ExitStatus Run(std::string_view program) override {
    return Verification(options_, program).All();
  }

 private:
  Options options_;
};

const CommandEntry kVerify("verify", MakeCommand<VerifyCommand>);

}  // namespace
}  // namespace sealpoint::tools::verify
