// SPDX-License-Identifier: Apache-2.0
//
// ckpt-inspect: shows what a checkpoint, or a series of them, holds.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "tools/ckpt-inspect/plan.h"
#include "tools/ckpt-inspect/print.h"
#include "tools/common/exit_status.h"
#include "tools/common/text.h"
#include "tools/common/usage.h"

namespace sealpoint::tools {
namespace {

struct Options {
  std::string path;
  std::string tensor;
  std::optional<std::size_t> depth_max;
  bool wants_plan = false;
  PlanOptions plan;
  bool json = false;
};

std::optional<ExitStatus> ParseOptions(int argc, const char* const* argv, Options& options) {
  CLI::App app("Shows what a checkpoint, or a series of them, holds. Reads no payload.",
               "ckpt-inspect");
  AddVersionFlag(app);
  app.footer(
      "Verdicts are at the level of files; ckpt-verify checks the content.\n"
      "Exit status: as ckpt-verify's; 0 for a series that could be listed.");
  app.add_option("PATH", options.path, "Directory of a checkpoint or of a series")
      ->required()
      ->type_name("");
  CLI::Option* const tensor =
      app.add_option("--tensor", options.tensor, "One tensor: shards, their regions and blobs")
          ->type_name("NAME");
  app.add_option("--depth", options.depth_max, "Levels of the tree of tensors")->type_name("N");
  CLI::Option* const plan = app.add_option("--plan", options.plan.mesh,
                                           "What each rank of a mesh would read, such as\n"
                                           "data=4,tensor=2. Tensors are placed as stored;\n"
                                           "an axis that is left out has one rank")
                                ->type_name("AXIS=N,...")
                                ->excludes(tensor);
  app.add_option("--place", options.plan.places,
                 "Other rules for some tensors, such as\n"
                 "'layers.*=shard(dim 0, tensor), replicate(data)'\n"
                 "Of several that fit a name the last counts")
      ->type_name("PATTERN=RULE,...")
      ->needs(plan)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--json", options.json, "Print one JSON document");
  const std::optional<ExitStatus> status = Parse(app, argc, argv);
  options.wants_plan = plan->count() > 0;
  return status;
}

ExitStatus Fail(const Status& error) {
  fmt::print(stderr, "ckpt-inspect: {}\n", Printable(error.ToString()));
  return ExitStatusOf(VerdictOf(error));
}

ExitStatus InspectTensor(const CheckpointView& view, const Options& options) {
  if (!view.checkpoint) return Fail(view.report.violations.front());
  const Status status = options.json ? PrintTensorJson(*view.checkpoint, options.tensor)
                                     : PrintTensor(*view.checkpoint, options.tensor);
  return status.ok() ? ExitStatus::kValid : Fail(status);
}

ExitStatus InspectPlan(const CheckpointView& view, const Options& options) {
  if (!view.checkpoint) return Fail(view.report.violations.front());
  const Result<PlanView> plan = ViewPlan(*view.checkpoint, options.plan);
  if (!plan && plan.error().code() == Code::kInvalidArgument) {
    Fail(plan.error());
    return ExitStatus::kUsage;
  }
  if (!plan) return Fail(plan.error());
  options.json ? PrintPlanJson(*view.checkpoint, *plan) : PrintPlan(*view.checkpoint, *plan);
  return ExitStatus::kValid;
}

ExitStatus Inspect(const Options& options) {
  const Result<CheckpointView> view = ViewCheckpoint(options.path);
  if (!view) return Fail(view.error());
  const VerifyReport& report = view->report;
  // A directory without any file of ours may be one of checkpoints.
  const bool is_none = report.verdict == Verdict::kUnreadable && report.violations.size() == 1 &&
                       report.violations.front().code() == Code::kNotACheckpoint;
  if (is_none && options.tensor.empty() && !options.wants_plan) {
    const Result<SeriesView> series = ViewSeries(options.path);
    if (series && !series->listing.entries.empty()) {
      options.json ? PrintSeriesJson(*series) : PrintSeries(*series);
      return ExitStatus::kValid;
    }
  }
  if (report.verdict == Verdict::kUnreadable) return Fail(report.violations.front());
  if (!options.tensor.empty()) return InspectTensor(*view, options);
  if (options.wants_plan) return InspectPlan(*view, options);
  options.json ? PrintCheckpointJson(*view) : PrintCheckpoint(*view, options.depth_max);
  return ExitStatusOf(report.verdict);
}

}  // namespace
}  // namespace sealpoint::tools

int main(int argc, char** argv) {
  sealpoint::tools::Options options;
  const auto status = sealpoint::tools::ParseOptions(argc, argv, options);
  return static_cast<int>(status ? *status : sealpoint::tools::Inspect(options));
}
