// SPDX-License-Identifier: Apache-2.0
//
// ckpt bisect: finds the first bad checkpoint of a series.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/content.h"
#include "sealpoint/phases.h"
#include "sealpoint/series.h"
#include "tools/ckpt/command.h"
#include "tools/ckpt/content.h"
#include "tools/ckpt/series/typed_series.h"
#include "tools/common/json.h"
#include "tools/common/limits.h"
#include "tools/common/output.h"
#include "tools/common/text.h"

namespace sealpoint::tools::bisect {
namespace {

constexpr const char* kFooter =
    "Searches the lineage of the newest checkpoint, first its ends and then by halves: about\n"
    "log2(n) checkpoints are opened. The predicate must be monotone: after the first bad\n"
    "checkpoint all are bad. Checkpoints that cannot be tested are skipped and named.\n"
    "Exit status: 0 found, 1 not found: the newest is good, or the oldest is bad, 2 uncommitted,\n"
    "3 unsupported, 4 corrupt, could not be read or nothing found, 5 incomplete, 64 usage, or the\n"
    "script failed, 74 standard output could not be written.";

struct BisectOptions {
  std::string series;
  bool is_finite = false;
  std::optional<double> norm_below;
  std::string equal_to;
  std::string script;
  ContentOptions content;
  bool json = false;
};

Status ScriptError(const std::string& path, std::string_view what) {
  return Status(Code::kInvalidArgument, fmt::format("the script {}", what)).AtPath(path);
}

// Runs the command in a shell, with the path as its last argument. Its output goes to standard
// error, because standard output has the result of the search. Errors: Cancelled (skip),
// InvalidArgument (end the search).
Result<bool> RunScript(const std::string& command, const std::string& path) {
  constexpr int kSkip = 125;  // as in git bisect run
  const std::string line = command + " \"$@\"";
  const std::array<const char*, 6> words = {"sh", "-c", line.c_str(), "sh", path.c_str(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  int error = ::posix_spawn(&child, "/bin/sh", &actions, nullptr,
                            const_cast<char* const*>(words.data()), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  while (error == 0 && ::waitpid(child, &status, 0) == -1) error = errno == EINTR ? 0 : errno;
  if (error != 0) return ScriptError(path, fmt::format("failed: {}", std::strerror(error)));
  if (!WIFEXITED(status)) {
    return ScriptError(path, fmt::format("was ended by signal {}", WTERMSIG(status)));
  }
  const int exited = WEXITSTATUS(status);
  if (exited == 0 || exited == 1) return exited == 0;
  if (exited == kSkip) return Status(Code::kCancelled, "the script skips it").AtPath(path);
  return ScriptError(path, fmt::format("exited with status {}, expected 0 (good), 1 (bad) or 125 "
                                       "(skip)",
                                       exited));
}

class Bisection {
 public:
  Bisection(const BisectOptions& options, std::string_view program)
      : options_(options), program_(program) {}

  ExitStatus Run() {
    Status status = Prepare();
    if (status.ok()) status = Search();
    if (!status.ok()) {
      return Fail(program_, status, HintForSeries(options_.series, kSeriesAbove),
                  options_.json ? &json_ : nullptr, ExitStatus::kUnreadable);
    }
    const ExitStatus found = good_ && bad_ ? ExitStatus::kValid : ExitStatus::kDifferent;
    options_.json ? WriteReport(found) : PrintReport();
    return found;
  }

 private:
  Status Prepare() {
    Result<Lineage> lineage = FindLineage(options_.series, program_);
    if (!lineage) return lineage.error();
    lineage_ = *std::move(lineage);
    checkpoint_count_ = entries_.size();
    if (options_.equal_to.empty()) return {};
    Result<std::unique_ptr<Checkpoint>> opened =
        Checkpoint::Open(options_.equal_to, {.limits = TypedLimits()});
    if (!opened) return opened.error();
    reference_ = *std::move(opened);
    return reference_->MatchTensorNumbers(options_.content.patterns).status();
  }

  // The next to be tested: the ends, then the middle. Empty: the search is over.
  std::optional<std::size_t> Next() const {
    if (!bad_) return good_ || entries_.empty() ? std::nullopt : std::optional(entries_.size() - 1);
    if (!good_) return *bad_ == 0 ? std::nullopt : std::optional<std::size_t>(0);
    return *bad_ - *good_ < 2 ? std::nullopt : std::optional(*good_ + (*bad_ - *good_) / 2);
  }

  Status Search() {
    while (const std::optional<std::size_t> at = Next()) {
      ++open_count_;
      SeriesEntry& entry = entries_[*at];
      const Result<bool> is_good = IsGood(entry.path);
      if (is_good) {
        (*is_good ? good_ : bad_) = at;
        PrintError(program_, fmt::format("step {}, {}: {}", FormatStep(entry.step), entry.name,
                                         *is_good ? "good" : "bad"));
        continue;
      }
      // The next one would end in the same way.
      if (is_good.error().code() == Code::kInvalidArgument) return is_good.error();
      Skip(program_, std::move(entry), is_good.error(), lineage_);
      entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(*at));
      if (bad_) --*bad_;
    }
    return good_ || bad_ ? Status() : lineage_.skipped.back().problem;
  }

  Result<bool> IsGood(const std::string& path) const {
    const auto checkpoint = Checkpoint::Open(path, {.limits = TypedLimits()});
    if (!checkpoint) return checkpoint.error();
    if (!options_.script.empty()) return RunScript(options_.script, path);
    ProgressLine line;
    ContentOptions options = options_.content;
    options.on_progress = [&line](const PhaseEvent& event) {
      line.Set("bisect", event.bytes_done, event.bytes_total);
    };
    return reference_ ? IsEqual(**checkpoint, options) : HasGoodValues(**checkpoint, options);
  }

  Result<bool> IsEqual(const Checkpoint& checkpoint, const ContentOptions& options) const {
    CompareOptions compare{.patterns = options.patterns,
                           .threads = options.threads,
                           .on_progress = options.on_progress};
    if (compare.patterns.empty()) compare.patterns = {"*"};  // no objects
    const Result<CompareReport> report = Compare(*reference_, checkpoint, compare);
    if (!report) return report.error();
    return report->is_same();
  }

  Result<bool> HasGoodValues(const Checkpoint& checkpoint, const ContentOptions& options) const {
    const auto matched = checkpoint.MatchTensorNumbers(options.patterns);
    if (!matched) {
      return Status(Code::kInvalidArgument, matched.error().message()).AtPath(checkpoint.path());
    }
    const auto tensors = ComputeStatistics(checkpoint, options);
    if (!tensors) return tensors.error();
    ValueStatistics all;
    for (const TensorStatistics& tensor : *tensors) {
      if (!tensor.values) {
        return Status(Code::kUnsupported, "the dtype is not registered, values are unknown")
            .AtTensor(tensor.name);
      }
      all.Add(*tensor.values);
    }
    return all.nonfinite_count() == 0 && (!options_.norm_below || all.l2() < *options_.norm_below);
  }

  // Skipped ones between the bounds: one of these may be the first bad one.
  std::vector<const SeriesEntry*> Untested() const {
    const std::uint64_t low = good_ ? entries_[*good_].sequence : 0;
    const std::uint64_t high = bad_ ? entries_[*bad_].sequence : UINT64_MAX;
    std::vector<const SeriesEntry*> untested;
    for (const SeriesEntry& entry : lineage_.skipped) {
      if (entry.sequence > low && entry.sequence < high) untested.push_back(&entry);
    }
    return untested;
  }

  static void PrintEntry(std::string_view label, const SeriesEntry& entry) {
    PrintFact(label, fmt::format("step {}, attempt {}, {}", FormatStep(entry.step),
                                 entry.attempt.ToHex(), Printable(entry.path)));
  }

  void PrintReport() const {
    if (good_) PrintEntry("last good", entries_[*good_]);
    for (const SeriesEntry* entry : Untested()) PrintEntry("untested", *entry);
    if (bad_) PrintEntry("first bad", entries_[*bad_]);
    if (!bad_) Print("not found: the newest tested checkpoint is good\n");
    if (!good_) Print("not found: the oldest tested checkpoint is bad\n");
    Print("{}, {} opened\n", FormatCount(checkpoint_count_, "checkpoint"), open_count_);
  }

  void WriteReport(ExitStatus status) {
    json_.BeginObject();
    json_.Field("path", options_.series);
    json_.Field("last_good", good_ ? EntryToJson(entries_[*good_]) : Json());
    json_.Field("first_bad", bad_ ? EntryToJson(entries_[*bad_]) : Json());
    json_.BeginArray("untested");
    for (const SeriesEntry* entry : Untested()) json_.Element(EntryToJson(*entry));
    json_.End();
    WriteSkipped(lineage_, json_);
    json_.Field("checkpoint_count", checkpoint_count_);
    json_.Field("open_count", open_count_);
    json_.Finish(status);
  }

  const BisectOptions& options_;
  const std::string_view program_;
  Lineage lineage_;
  std::vector<SeriesEntry>& entries_ = lineage_.entries;
  std::unique_ptr<Checkpoint> reference_;
  std::uint64_t checkpoint_count_ = 0;
  std::uint64_t open_count_ = 0;
  std::optional<std::size_t> good_;  // the last that is known to be good
  std::optional<std::size_t> bad_;   // the first that is known to be bad
  JsonWriter json_;
};

class BisectCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.description("Finds the first bad checkpoint of a series.");
    app.footer(kFooter);
    app.add_option("SERIES", options_.series, "Directory of checkpoints")
        ->required()
        ->type_name("");
    app.add_flag("--finite", options_.is_finite, "Good: no value is NaN or infinite");
    app.add_option("--norm-below", options_.norm_below,
                   "Good: all values are finite, and their L2 norm is less than\n"
                   "X")
        ->type_name("X")
        ->check([](const std::string& text) {
          double bound = 0;
          return CLI::detail::lexical_cast(text, bound) && bound > 0
                     ? std::string()
                     : text + " is not a number greater than 0";
        });
    app.add_option("--equal-to", options_.equal_to,
                   "Good: the tensors equal those of this checkpoint. Digests\n"
                   "are compared where possible, as ckpt diff does")
        ->type_name("PATH");
    CLI::Option* const script =
        app.add_option("--script", options_.script,
                       "Run this shell command with the path of the checkpoint\n"
                       "appended: 0 is good, 1 is bad, 125 skips the checkpoint");
    script->type_name("COMMAND");
    AddContentOptions(app, options_.content);
    script->excludes("--match");
    app.add_flag("--json", options_.json, "Print one JSON document, also after an error");
    app.callback([this] {
      const std::array is_given = {options_.is_finite, options_.norm_below.has_value(),
                                   !options_.equal_to.empty(), !options_.script.empty()};
      if (std::ranges::count(is_given, true) != 1) {
        throw CLI::RequiredError("Exactly one of --finite, --norm-below, --equal-to and --script");
      }
    });
  }
  ExitStatus Run(std::string_view program) override { return Bisection(options_, program).Run(); }

 private:
  BisectOptions options_;
};

const CommandEntry kBisect("bisect", MakeCommand<BisectCommand>);

}  // namespace
}  // namespace sealpoint::tools::bisect
