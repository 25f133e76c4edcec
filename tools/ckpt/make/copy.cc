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
    "Without options that select or convert, DST is the same checkpoint, byte for byte. Otherwise\n"
    "it is a new attempt with the same step and sequence: copy into another series then. A draft\n"
    "(format version 0) always becomes a new attempt of version 1. All data is verified during\n"
    "the copy, and DST is committed after all of it is durable. After a crash, repeat the command\n"
    "to continue.\n";

constexpr const char* kFlattenFooter =
    "SRC was saved as changes to another checkpoint, its base. DST needs no base and is a new\n"
    "attempt with the same content, step and sequence. A checkpoint without a base is copied\n"
    "byte for byte. All data is verified during the copy. After a crash, repeat the command to\n"
    "continue.\n";

class CopyCommand : public Command {
 public:
  explicit CopyCommand(bool is_flattened = false) { options_.flatten = is_flattened; }

  void Describe(CLI::App& app) override {
    app.description(options_.flatten ? "Copies a delta as a checkpoint that needs no base."
                                     : "Copies a checkpoint, optionally converted or in part.");
    app.footer(std::string(options_.flatten ? kFlattenFooter : kFooter) + kMadeStatuses);
    app.add_option("SRC", from_, "Directory of a checkpoint")->required()->type_name("");
    app.add_option("DST", to_, "Directory of the copy")->required()->type_name("");
    AddRepeatable(app, "--match", options_.match, "PATTERN", "Copy only these tensors and objects");
    AddRepeatable(app, "--drop", options_.drop, "PATTERN", "Copy all except these");
    // With this option the words never come here: they are for `ckpt convert`.
    app.add_option_function<std::string>(
           "--to", [](const std::string&) {},
           "Write another format, such as hdf5, with the options of ckpt convert")
        ->type_name("FORMAT");
    AddRepackOptions(app, options_.repack);
    app.add_flag("--json", is_json_, "Print one JSON document, also after an error");
  }

  ExitStatus Run(std::string_view program) override {
    ProgressLine line;
    options_.repack.limits = TypedLimits();
    options_.repack.on_progress = ProgressOn(line, "copy");
    const Result<RepackReport> report = CopyCheckpoint({.from = from_, .to = to_}, options_);
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

struct Flatten final : CopyCommand {
  Flatten() : CopyCommand(true) {}
};

const CommandEntry kCopy("copy", MakeCommand<CopyCommand>);
const CommandEntry kFlatten("flatten", MakeCommand<Flatten>);

}  // namespace
}  // namespace sealpoint::tools::copy
