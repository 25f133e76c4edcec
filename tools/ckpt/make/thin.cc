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
    "The source goes, if it is to, when the new one is durable, in the safe order of a deletion.\n"
    "The newest checkpoint of a series is not removed, nor one that ckpt keep pins. Without\n"
    "--remove and in the same series both are a fork. Called again after a crash it goes on.\n";

class ThinCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.description("Makes a checkpoint without some of its tensors, and may remove the old one.");
    app.footer(std::string(kFooter) + kMadeStatuses);
    app.add_option("STEP", from_, "Directory of a checkpoint")->required()->type_name("");
    AddPatterns(app, "--drop", options_.drop, "Tensors and objects that go: 'optimizer.*'");
    app.get_option("--drop")->required();
    app.add_option("--to", to_, "Directory of the new one; default: STEP-thin")->type_name("DIR");
    app.add_flag("--remove", options_.remove_source, "Then delete STEP");
    AddRepackOptions(app, options_.repack);
    app.add_flag("--json", is_json_, "Print one JSON document, also after an error");
  }

  ExitStatus Run(std::string_view program) override {
    ProgressLine line;
    options_.repack.limits = TypedLimits();
    options_.repack.on_progress = ProgressOn(line, "thin");
    const Result<ThinReport> report = ThinCheckpoint(from_, to_, options_);
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
