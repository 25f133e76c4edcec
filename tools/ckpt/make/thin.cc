// SPDX-License-Identifier: Apache-2.0
//
// ckpt thin: a checkpoint without some of its tensors and objects, in its place.
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

namespace sealpoint::tools::thin {
namespace {

constexpr const char* kFooter =
    "--remove deletes STEP after the new checkpoint is durable. It refuses the newest checkpoint "
    "of\n"
    "a series, and one pinned by ckpt keep. Without --remove the two are a fork if they are in "
    "the\n"
    "same series. After a crash, repeat the command to continue.\n";

class ThinCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.description(
        "Copies a checkpoint without some tensors, and optionally removes the original.");
    app.footer(std::string(kFooter) + kMadeStatuses);
    app.add_option("STEP", from_, "Directory of a checkpoint")->required()->type_name("");
    AddRepeatable(app, "--drop", options_.drop, "PATTERN",
                  "Tensors and objects to leave out: 'optimizer.*'");
    app.get_option("--drop")->required();
    app.add_option("--to", to_, "Directory of the result (default: STEP-thin)")->type_name("DIR");
    app.add_flag("--remove", options_.remove_source, "Delete STEP afterwards");
    AddRepackOptions(app, options_.repack);
    app.add_flag("--json", is_json_, "Print one JSON document, also after an error");
  }

  ExitStatus Run(std::string_view program) override {
    ProgressLine line;
    options_.repack.limits = TypedLimits();
    options_.repack.on_progress = ProgressOn(line, "thin");
    const Result<ThinReport> report = ThinCheckpoint({.from = from_, .to = to_}, options_);
    line.Clear();
    JsonWriter json;
    if (!report) {
      return Fail(program, report.error(), HintForCheckpoint(from_), is_json_ ? &json : nullptr);
    }
    const ExitStatus status =
        ShowMade(is_json_, report->path, report->made, options_.repack, [&](JsonWriter& document) {
          document.Field("is_source_removed", report->is_source_removed);
        });
    if (!is_json_ && report->is_source_removed) Print("removed {}\n", Printable(from_));
    return status;
  }

 private:
  std::string from_;
  std::string to_;
  ThinOptions options_;
  bool is_json_ = false;
};

const CommandEntry kThin("thin", MakeCommand<ThinCommand>);

}  // namespace
}  // namespace sealpoint::tools::thin
