// SPDX-License-Identifier: Apache-2.0
//
// ckpt copy: a checkpoint elsewhere, also in another form, or some of it.
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

namespace sealpoint::tools::copy {
namespace {

constexpr const char* kFooter =
    "With no option that chooses something it is the same checkpoint, byte for byte; else a new\n"
    "attempt of the same content in the same place of a series: copy into another series then.\n"
    "A checkpoint of format version 0, the draft, becomes one of version 1, a new attempt as "
    "well.\n"
    "All is verified while it is read; DST is a checkpoint when all of it is durable. Called "
    "again\n"
    "after a crash it goes on.\n";

class CopyCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.description("Copies a checkpoint, also in another form, or a part of it.");
    app.footer(std::string(kFooter) + kMadeStatuses);
    app.add_option("SRC", from_, "Directory of a checkpoint")->required()->type_name("");
    app.add_option("DST", to_, "Directory of the copy")->required()->type_name("");
    AddPatterns(app, "--match", options_.match, "These tensors and objects alone");
    AddPatterns(app, "--drop", options_.drop, "All but these");
    AddRepackOptions(app, options_.repack);
    app.add_flag("--json", is_json_, "Print one JSON document, also after an error");
  }

  ExitStatus Run(std::string_view program) override {
    ProgressLine line;
    options_.repack.limits = TypedLimits();
    options_.repack.on_progress = ProgressOn(line, "copy");
    const Result<RepackReport> report = CopyCheckpoint(from_, to_, options_);
    line.Clear();
    JsonWriter json;
    if (!report) {
      return Fail(program, report.error(), HintForCheckpoint(from_), is_json_ ? &json : nullptr);
    }
    return ShowMade(is_json_, to_, *report, options_.repack);
  }

 private:
  std::string from_;
  std::string to_;
  CopyOptions options_;
  bool is_json_ = false;
};

const CommandEntry kCopy("copy", MakeCommand<CopyCommand>);

}  // namespace
}  // namespace sealpoint::tools::copy
