// SPDX-License-Identifier: Apache-2.0
//
// ckpt promote: brings what a training left on a local disk to its series.
#include "sealpoint/promote.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/phases.h"
#include "sealpoint/saver.h"
#include "sealpoint/series.h"
#include "sealpoint/verify.h"
#include "tools/ckpt/command.h"
#include "tools/ckpt/content.h"
#include "tools/ckpt/make/made.h"
#include "tools/ckpt/series/typed_series.h"
#include "tools/common/json.h"
#include "tools/common/limits.h"
#include "tools/common/output.h"
#include "tools/common/text.h"

namespace sealpoint::tools::promote {
namespace {

constexpr const char* kFooter =
    "With several nodes, run it on all of them simultaneously: the one that sees the blobs of all\n"
    "nodes in SERIES commits. Local copies stay until the next training resumes and removes them.\n"
    "Exit status: 0 done, or nothing to do, 1 corrupt, 2 uncommitted, 3 unsupported, 4 could not\n"
    "be read or written, or nothing found, 5 incomplete: blobs of another node are missing "
    "(repeat\n"
    "the command to continue), 64 usage, or refused, 74 standard output could not be written.";
constexpr std::uint64_t kMemoryPerThread = 8 * kMiB;
constexpr double kWaitMaxSeconds = 1e9;

struct Options {
  std::string local;
  std::string final_series;
  bool adopts = false;
  bool dry_run = false;
  double wait_seconds = 600;
  int threads = 2;
  std::uint64_t memory_bytes = 0;  // 0: by the threads
  bool json = false;
};

enum class Outcome : std::uint8_t {
  kPromoted,
  kThere,
  kOlder,
  kWhole,  // in a dry run: all blobs are here
  kPart,   // in a dry run: some are on other nodes
  kFailed,
  kNotCommitted,
};

// A checkpoint of the local disk.
struct Found {
  SeriesEntry entry;
  Outcome outcome = Outcome::kPromoted;
  PromoteReport report{};
  Status error{};
  ExitStatus status = ExitStatus::kValid;
};

std::string_view NameOf(const Found& found) {
  switch (found.outcome) {
    case Outcome::kPromoted:
      return "promoted";
    case Outcome::kThere:
      return "there";
    case Outcome::kOlder:
      return "older";
    case Outcome::kWhole:
      return "whole";
    case Outcome::kPart:
      return "part";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kNotCommitted:
      break;
  }
  return VerdictName(found.entry.verdict);
}

std::string TextOf(const Found& found) {
  switch (found.outcome) {
    case Outcome::kPromoted:
      return fmt::format("promoted, {} copied", BytesText(found.report.bytes_copied));
    case Outcome::kThere:
      return "is in the series";
    case Outcome::kOlder:
      return "older than the newest in the series, not promoted";
    case Outcome::kWhole:
      return "complete here, would be promoted";
    case Outcome::kPart:
      return "one part is here, would be promoted together with the parts of other nodes";
    case Outcome::kFailed:
    case Outcome::kNotCommitted:
      break;
  }
  return std::string(NameOf(found));
}

// Where the copies of the series lie. Errors: InvalidArgument (the two places overlap; the copies
// are not known to be of this series), NotFound.
Result<std::string> PlaceOf(const Options& options) {
  const Result<StagedCopies> copies =
      FindStagedCopies({.local = options.local, .final_series = options.final_series});
  if (!copies) return copies.error();
  if (options.adopts) return options.local;
  if (copies->record == copies->series) return copies->folder;
  const Result<SeriesListing> listing = Series(options.local).List();
  if (!listing) return listing.error();
  if (listing->entries.empty()) {
    return Status(Code::kNotFound,
                  fmt::format("there are no copies of {}; if the series was moved, pass the "
                              "directory of its copies and --adopt",
                              copies->series))
        .AtPath(options.local);
  }
  return Status(Code::kInvalidArgument, fmt::format("the checkpoints here have no record that they "
                                                    "are copies of {}; if they are, pass --adopt",
                                                    copies->series))
      .AtPath(options.local);
}

class Promotions {
 public:
  Promotions(const Options& options, std::string_view program)
      : options_(options), program_(program) {}

  ExitStatus Run() {
    if (const Status status = Find(); !status.ok()) {
      return Fail(program_, status, HintForSeries(options_.local, kSeriesAbove),
                  options_.json ? &json_ : nullptr);
    }
    for (Found& found : found_) {
      if (found.outcome == Outcome::kPromoted) Promote(found);
      status_ = Worse(status_, found.status);
      if (!options_.json) Show(found);
    }
    if (options_.json) WriteReport();
    return status_;
  }

 private:
  Status Find() {
    Result<std::string> place = PlaceOf(options_);
    if (!place) return place.error();
    local_ = *std::move(place);
    Result<SeriesListing> here = Series(local_).List();
    if (!here) return here.error();
    if (here->entries.empty()) {
      return Status(Code::kNotFound,
                    "no checkpoint is here, expected the local directory of a training")
          .AtPath(local_);
    }
    const Result<SeriesListing> there = Series(options_.final_series).List();
    if (!there) return there.error();
    if (const SeriesEntry* unread = there->unread()) return unread->problem;
    Decide(std::move(here->entries), *there);
    return {};
  }

  // An older one than the newest of the series may have been pruned there.
  void Decide(std::vector<SeriesEntry> entries, const SeriesListing& there) {
    std::set<AttemptId> committed;
    for (const SeriesEntry& entry : there.entries) {
      if (entry.verdict == Verdict::kCommitted) committed.insert(entry.attempt);
    }
    const std::uint64_t newest = there.newest() != nullptr ? there.newest()->sequence : 0;
    for (SeriesEntry& entry : entries) {
      Found& found = found_.emplace_back(Found{.entry = std::move(entry)});
      if (found.entry.verdict != Verdict::kCommitted) {
        found.outcome = Outcome::kNotCommitted;
        // What a save left that was never committed is nothing to complain of.
        if (found.entry.verdict == Verdict::kUncommitted) continue;
        found.error = found.entry.problem;
        found.status = ExitStatusOf(found.entry.verdict);
      } else if (committed.contains(found.entry.attempt)) {
        found.outcome = Outcome::kThere;
      } else if (found.entry.sequence <= newest) {
        found.outcome = Outcome::kOlder;
      }
    }
  }

  void Promote(Found& found) const {
    if (options_.dry_run) {
      const Result<VerifyReport> report =
          Verify(found.entry.path, {.level = VerifyLevel::kFiles, .limits = TypedLimits()});
      const bool is_whole = report && report->verdict == Verdict::kCommitted;
      found.outcome = is_whole ? Outcome::kWhole : Outcome::kPart;
      return;
    }
    ProgressLine line;
    const std::uint64_t memory = static_cast<std::uint64_t>(options_.threads) * kMemoryPerThread;
    Result<PromoteReport> report = sealpoint::Promote(
        {.from = found.entry.path, .to = JoinPath(options_.final_series, found.entry.name)},
        {.threads = options_.threads,
         .memory_budget_bytes = options_.memory_bytes != 0 ? options_.memory_bytes : memory,
         .deadline = std::chrono::milliseconds(
             static_cast<std::int64_t>(options_.wait_seconds * std::milli::den)),
         .limits = TypedLimits(),
         .on_progress = [&](const PhaseEvent& event) {
           line.Set("promote", event.bytes_done, found.entry.size_bytes);
         }});
    if (report) {
      found.report = *std::move(report);
      if (found.report.was_committed) found.outcome = Outcome::kThere;
      return;
    }
    found.error = report.error();
    found.outcome = Outcome::kFailed;
    found.status =
        found.error.code() == Code::kTimeout ? ExitStatus::kIncomplete : StatusOfError(found.error);
  }

  void Show(const Found& found) const {
    Print("{}: {}\n", Printable(found.entry.name), TextOf(found));
    if (found.error.ok()) return;
    Flush();  // standard output comes first, if both are one file
    PrintError(program_, found.error.ToString());
  }

  void WriteReport() {
    json_.BeginObject();
    json_.Field("local", local_);
    json_.Field("series", options_.final_series);
    json_.Field("dry_run", options_.dry_run);
    json_.BeginArray("checkpoints");
    for (const Found& found : found_) {
      Json one = {{"name", found.entry.name},
                  {"step", StepToJson(found.entry.step)},
                  {"sequence", found.entry.sequence},
                  {"attempt", IdToJson(found.entry.attempt)},
                  {"outcome", NameOf(found)},
                  {"blobs_copied", found.report.blobs_copied},
                  {"bytes_copied", found.report.bytes_copied},
                  {"blobs_found", found.report.blobs_found}};
      if (!found.error.ok()) one["error"] = StatusToJson(found.error);
      json_.Element(one);
    }
    json_.End();
    json_.Finish(status_);
  }

  const Options& options_;
  const std::string_view program_;
  std::string local_;
  std::vector<Found> found_;  // newest first
  ExitStatus status_ = ExitStatus::kValid;
  JsonWriter json_;
};

class PromoteCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.description(
        "Promotes checkpoints from a local disk to their series. Copies those newer than every\n"
        "checkpoint in the series, verifies each byte, and skips existing blobs.");
    app.footer(kFooter);
    app.add_option("LOCAL", options_.local,
                   "The local directory, the argument `staged` of the training")
        ->required()
        ->type_name("");
    app.add_option("SERIES", options_.final_series, "The series: a directory or a URL")
        ->required()
        ->type_name("");
    app.add_flag("--adopt", options_.adopts,
                 "LOCAL itself holds the checkpoints, without a record\n"
                 "of their series or with an outdated one");
    app.add_flag("--dry-run", options_.dry_run, "Show the promotions without copying");
    app.add_option("--wait", options_.wait_seconds,
                   "Seconds to wait for other nodes, per checkpoint\n(default: 600)")
        ->type_name("S")
        ->check([](const std::string& text) {
          double seconds = 0;
          const bool is_number = CLI::detail::lexical_cast(text, seconds);
          return is_number && seconds > 0 && seconds < kWaitMaxSeconds
                     ? std::string()
                     : text + " is not a number of seconds, expected more than 0 and less than 1e9";
        });
    app.add_option("-j,--threads", options_.threads, "Number of copying threads (default: 2)")
        ->type_name("N")
        ->check(CLI::Range(1, kThreadsMax));
    AddMemory(app, options_.memory_bytes);
    app.add_flag("--json", options_.json, "Print one JSON document, also after an error");
  }
  ExitStatus Run(std::string_view program) override { return Promotions(options_, program).Run(); }

 private:
  Options options_;
};

const CommandEntry kPromote("promote", MakeCommand<PromoteCommand>);

}  // namespace
}  // namespace sealpoint::tools::promote
