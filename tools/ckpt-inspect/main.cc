// SPDX-License-Identifier: Apache-2.0
//
// ckpt-inspect: shows what a checkpoint, or a series of them, holds.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/interop.h"
#include "tools/ckpt-inspect/object.h"
#include "tools/ckpt-inspect/options.h"
#include "tools/ckpt-inspect/plan.h"
#include "tools/ckpt-inspect/print.h"
#include "tools/ckpt-inspect/print_foreign.h"
#include "tools/ckpt-inspect/values.h"
#include "tools/common/hint.h"
#include "tools/common/output.h"
#include "tools/common/storages.h"

namespace sealpoint::tools {
namespace {

constexpr std::string_view kProgram = "ckpt-inspect";

class Inspection {
 public:
  explicit Inspection(const Options& options) : options_(options) {}

  ExitStatus Run() {
    const Result<CheckpointView> view = ViewCheckpoint(options_.path);
    if (!view) return Fail(view.error());
    const VerifyReport& report = view->report;
    // A directory without any file of a checkpoint may be one of checkpoints.
    const bool is_none = report.verdict == Verdict::kUnreadable && report.violations.size() == 1 &&
                         report.violations.front().code() == Code::kNotACheckpoint;
    if (is_none) return RunSeries(report.violations.front());
    if (report.verdict == Verdict::kUnreadable) return RunForeign(report.violations.front());
    if (options_.subject != Subject::kOverview) {
      if (!view->checkpoint) return Fail(report.violations.front());
      return Show(*view->checkpoint);
    }
    const Status status = options_.json ? PrintCheckpointJson(*view, options_, json_)
                                        : PrintCheckpoint(*view, options_);
    return status.ok() ? ExitStatusOf(report.verdict) : Fail(status);
  }

 private:
  ExitStatus RunSeries(const Status& none) {
    if (options_.subject != Subject::kOverview) return Fail(none);
    const Result<SeriesView> series = ViewSeries(options_.path);
    if (!series) return Fail(series.error());
    if (series->listing.entries.empty()) return RunForeign(none);
    const bool is_readable = std::ranges::any_of(series->listing.entries, [](const auto& entry) {
      return entry.verdict != Verdict::kUnreadable;
    });
    // Files that cannot be opened, by links that lead in a circle say, are listed there, too.
    if (!is_readable) {
      const Result<std::optional<ForeignCheckpoint>> state =
          ReadForeign(options_.path, {.drop_unknown = true});
      if (!state || *state) return ShowForeign(state, none);
    }
    options_.json ? PrintSeriesJson(*series, json_) : PrintSeries(*series);
    return StatusOf(series->listing);
  }

  // Valid if the marker of any of them says what it is, or says that it is none.
  static ExitStatus StatusOf(const SeriesListing& listing) {
    ExitStatus worst = ExitStatus::kValid;
    for (const SeriesEntry& entry : listing.entries) {
      const bool is_told =
          entry.verdict == Verdict::kCommitted || entry.verdict == Verdict::kUncommitted;
      if (is_told) return ExitStatus::kValid;
      worst = Worse(worst, ExitStatusOf(entry.verdict));
    }
    return worst;
  }

  // Shows a checkpoint of another format, if that is known.
  ExitStatus RunForeign(const Status& none) {
    if (options_.subject != Subject::kOverview) return Fail(none);
    return ShowForeign(ReadForeign(options_.path, {.drop_unknown = true}), none);
  }

  ExitStatus ShowForeign(const Result<std::optional<ForeignCheckpoint>>& state,
                         const Status& none) {
    if (!state) return Fail(state.error());
    if (!*state) return Fail(none);
    const Result<std::vector<ForeignValue>> values = ForeignValues(**state);
    if (!values) return Fail(values.error());
    options_.json ? PrintForeignJson(**state, *values, json_) : PrintForeign(**state, *values);
    return ExitStatus::kValid;
  }

  ExitStatus Show(const Checkpoint& checkpoint) {
    const Status status = ShowSubject(checkpoint);
    return status.ok() ? ExitStatus::kValid : Fail(status);
  }

  Status ShowSubject(const Checkpoint& checkpoint) {
    switch (options_.subject) {
      case Subject::kTensors:
        return options_.json ? PrintTensorsJson(checkpoint, options_.patterns, json_)
                             : PrintTensors(checkpoint, options_.patterns);
      case Subject::kValues:
        return options_.json ? PrintValuesJson(checkpoint, options_, json_)
                             : PrintValues(checkpoint, options_);
      case Subject::kObject:
        return options_.json ? PrintObjectsJson(checkpoint, options_.patterns, json_)
                             : WriteObject(checkpoint, options_.patterns);
      case Subject::kPlan:
        return ShowPlan(checkpoint);
      case Subject::kOverview:
        break;
    }
    return {};
  }

  Status ShowPlan(const Checkpoint& checkpoint) {
    const Result<PlanView> plan = ViewPlan(checkpoint, options_.plan);
    if (!plan) return plan.error();
    options_.json ? PrintPlanJson(checkpoint, *plan, json_) : PrintPlan(checkpoint, *plan);
    return {};
  }

  // Arguments that do not fit the checkpoint are a usage error.
  static ExitStatus StatusOf(const Status& error) {
    if (error.code() == Code::kInvalidArgument) return ExitStatus::kUsage;
    return ExitStatusOf(VerdictOf(error));
  }

  ExitStatus Fail(const Status& error) {
    const ExitStatus status = StatusOf(error);
    if (options_.json) {
      json_.Fail(error, status);
      return status;
    }
    Flush();  // standard output comes first, if both are one file
    PrintError(kProgram, error.ToString());
    const bool is_about_path = error.code() == Code::kNotACheckpoint ||
                               (error.code() == Code::kNotFound && error.place().tensor.empty());
    // The other subjects are those of Sealpoint's own checkpoints; the overview shows any.
    const std::string_view shows =
        options_.subject == Subject::kOverview ? "sealpoint ls" : "ckpt-inspect";
    const std::string hint = is_about_path ? HintForCheckpoint(options_.path, shows) : "";
    if (!hint.empty()) PrintError(kProgram, "hint: " + hint);
    return status;
  }

  const Options& options_;
  JsonWriter json_;
};

}  // namespace
}  // namespace sealpoint::tools

int main(int argc, char** argv) {
  using namespace sealpoint::tools;  // NOLINT: a program
  OpenStandardStreams();
  RegisterStorages();
  Options options;
  const std::optional<ExitStatus> status = ParseOptions(argc, argv, options);
  return static_cast<int>(FinishOutput(kProgram, status ? *status : Inspection(options).Run()));
}
