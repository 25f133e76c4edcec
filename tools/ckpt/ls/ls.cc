// SPDX-License-Identifier: Apache-2.0
//
// ckpt ls: shows what a checkpoint, or a series of them, holds.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/interop.h"
#include "tools/ckpt/command.h"
#include "tools/ckpt/content.h"
#include "tools/ckpt/ls/options.h"
#include "tools/ckpt/ls/plan.h"
#include "tools/ckpt/ls/print.h"
#include "tools/common/hint.h"
#include "tools/common/output.h"

namespace sealpoint::tools::ls {
namespace {

ForeignOptions ForeignOptionsOf(const Options& options) {
  return {.drop_unknown = true,
          .per_rank = options.per_rank,
          .allow_part = true,
          .base = options.base,
          .metadata_memory_bytes = options.metadata_memory_bytes};
}

class Inspection {
 public:
  Inspection(const Options& options, std::string_view program)
      : options_(options), program_(program) {}

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
    return status.ok() ? End(ExitStatusOf(report.verdict)) : Fail(status);
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
          ReadForeign(options_.path, ForeignOptionsOf(options_));
      if (!state || *state) return ShowForeign(state, none);
    }
    options_.json ? PrintSeriesJson(*series, json_) : PrintSeries(*series);
    return End(StatusOf(series->listing));
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
    return ShowForeign(ReadForeign(options_.path, ForeignOptionsOf(options_)), none);
  }

  ExitStatus ShowForeign(const Result<std::optional<ForeignCheckpoint>>& state,
                         const Status& none) {
    if (!state) return Fail(state.error());
    if (!*state) return Fail(none);
    const Result<std::vector<ForeignValue>> values = ForeignValues(**state);
    if (!values) return Fail(values.error());
    options_.json ? PrintForeignJson(**state, *values, json_) : PrintForeign(**state, *values);
    return End(ExitStatus::kValid);
  }

  ExitStatus Show(const Checkpoint& checkpoint) {
    const Status status = ShowSubject(checkpoint);
    return status.ok() ? End(ExitStatus::kValid) : Fail(status);
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

  ExitStatus End(ExitStatus status) {
    if (options_.json) json_.Finish(status);
    return status;
  }

  ExitStatus Fail(const Status& error) {
    const ExitStatus status = StatusOfError(error);
    if (options_.json) {
      json_.Fail(error, status);
      return status;
    }
    Flush();  // standard output comes first, if both are one file
    PrintError(program_, error.ToString());
    const bool is_about_path = error.code() == Code::kNotACheckpoint ||
                               (error.code() == Code::kNotFound && error.place().tensor.empty());
    const std::string hint = is_about_path ? HintForCheckpoint(options_.path) : "";
    if (!hint.empty()) PrintError(program_, "hint: " + hint);
    return status;
  }

  const Options& options_;
  const std::string_view program_;
  JsonWriter json_;
};

class LsCommand final : public Command {
 public:
  void Describe(CLI::App& app) override { AddOptions(app, options_); }
  ExitStatus Run(std::string_view program) override { return Inspection(options_, program).Run(); }

 private:
  Options options_;
};

const CommandEntry kLs("ls", MakeCommand<LsCommand>);

}  // namespace
}  // namespace sealpoint::tools::ls
