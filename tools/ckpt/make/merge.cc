// SPDX-License-Identifier: Apache-2.0
//
// ckpt merge: one checkpoint of several.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/repack.h"
#include "tools/ckpt/command.h"
#include "tools/ckpt/content.h"
#include "tools/ckpt/make/made.h"
#include "tools/common/hint.h"
#include "tools/common/json.h"
#include "tools/common/limits.h"
#include "tools/common/output.h"
#include "tools/common/text.h"

namespace sealpoint::tools::merge {
namespace {

constexpr const char* kFooter =
    "Floating-point tensors become w[0] * A + w[1] * B + ..., summed from left to right; all "
    "other\n"
    "tensors must be equal. Weights are not normalised; each is 1/n by default. With --union the\n"
    "result has every tensor of every source, and tensors in several sources must be equal.\n"
    "Layout, chunks and codec of a tensor come from the first source that has it.\n";

class MergeCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.description("Merges several checkpoints: their average, or the union of their tensors.");
    app.footer(std::string(kFooter) + kMadeStatuses);
    app.add_option("SOURCE", sources_, "Directories of checkpoints")->required()->type_name("");
    AddDestination(app, to_);
    auto* const weights = app.add_option_function<std::string>(
                                 "--weights", [this](const std::string& text) { SetWeights(text); },
                                 "One weight per source: 0.5,0.3,0.2")
                              ->type_name("W,...");
    const auto set_accumulate = [this](const std::string& dtype) {
      options_.accumulate =
          dtype == "f64" ? MergeOptions::Accumulate::kF64 : MergeOptions::Accumulate::kF32;
    };
    auto* const accumulate =
        app.add_option_function<std::string>("--accumulate", set_accumulate,
                                             "Precision of the sum: f32 (default) or f64")
            ->type_name("DTYPE")
            ->check(CLI::IsMember({"f32", "f64"}));
    const auto set_union = [this](std::int64_t) { options_.mode = MergeOptions::Mode::kUnion; };
    app.add_flag_function("--union", set_union, "Combine tensors without averaging")
        ->excludes(weights)
        ->excludes(accumulate);
    const auto set_first = [this](std::int64_t) {
      options_.objects = MergeOptions::Objects::kFirst;
    };
    app.add_flag_function("--first-objects", set_first,
                          "Take objects from the first source (default: they must be\nequal)");
    app.add_option("--step", options_.commit.step,
                   "Step of the result (default: step of the first source)")
        ->type_name("N")
        ->check(AtLeast(0));
    AddRepackOptions(app, options_.repack);
    app.add_flag("--json", is_json_, "Print one JSON document, also after an error");
  }

  ExitStatus Run(std::string_view program) override {
    ProgressLine line;
    options_.repack.limits = TypedLimits();
    options_.repack.on_progress = ProgressOn(line, "merge");
    const Result<RepackReport> report = MergeCheckpoints(sources_, to_, options_);
    line.Clear();
    JsonWriter json;
    if (!report) return Fail(program, report.error(), Hint(), is_json_ ? &json : nullptr);
    return ShowMade(is_json_, to_, *report, options_.repack);
  }

 private:
  void SetWeights(const std::string& text) {
    for (const std::string& word : CLI::detail::split(text, ',')) {
      double weight = 0;
      if (!CLI::detail::lexical_cast(word, weight)) throw CLI::ConversionError(text, "--weights");
      options_.weights.push_back(weight);
    }
  }
  // For the first source that something comes to mind for.
  std::string Hint() const {
    for (const std::string& source : sources_) {
      if (std::string hint = HintForCheckpoint(source); !hint.empty()) return hint;
    }
    return "";
  }

  std::vector<std::string> sources_;
  std::string to_;
  MergeOptions options_;
  bool is_json_ = false;
};

const CommandEntry kMerge("merge", MakeCommand<MergeCommand>);

}  // namespace
}  // namespace sealpoint::tools::merge
