// SPDX-License-Identifier: Apache-2.0
//
// ckpt keep, ckpt unkeep: make and remove the file that pins a checkpoint.
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/series.h"
#include "sealpoint/storage.h"
#include "tools/ckpt/command.h"
#include "tools/ckpt/content.h"
#include "tools/common/hint.h"
#include "tools/common/json.h"
#include "tools/common/limits.h"
#include "tools/common/output.h"
#include "tools/common/text.h"

namespace sealpoint::tools::keep {
namespace {

constexpr const char* kFooter =
    "A pin is a file KEEP in the directory of the checkpoint. ckpt prune, ckpt clean, ckpt thin "
    "and\n"
    "the library refuse to remove a pinned checkpoint. The change is durable when the command "
    "ends.\n"
    "Exit status: 0 done, 1 corrupt, 2 uncommitted, 3 unsupported, 4 could not be read or "
    "written,\n"
    "or nothing found, 5 incomplete, 64 usage, 74 standard output could not be written.";

// A file in a directory that has no checkpoint would pin nothing.
Status CheckIsCheckpoint(const std::string& path) {
  const auto opened = Checkpoint::Open(path, {.limits = TypedLimits()});
  const Code code = opened ? Code::kOk : opened.error().code();
  const bool is_none =
      code == Code::kNotACheckpoint || code == Code::kNotFound || code == Code::kIo;
  // Damaged ones, and attempts, may be pinned as well.
  return is_none ? opened.error() : Status();
}

// Yields whether the directory was changed.
Result<bool> SetKeptAt(const std::string& path, bool is_kept) {
  if (Status status = CheckIsCheckpoint(path); !status.ok()) return status;
  Result<bool> changed = SetKept(*DefaultStorage(), path, is_kept);
  return changed ? changed : Status(changed.error()).AtPath(path);
}

class KeepCommand : public Command {
 public:
  explicit KeepCommand(bool is_kept) : is_kept_(is_kept) {}

  void Describe(CLI::App& app) override {
    app.description(is_kept_ ? "Pins checkpoints, so that no command removes them."
                             : "Unpins checkpoints.");
    app.footer(kFooter);
    app.add_option("PATH", paths_, "Directories of checkpoints")->required()->type_name("");
    app.add_flag("--json", is_json_, "Print one JSON document, also after an error");
  }

  ExitStatus Run(std::string_view program) override {
    ExitStatus status = ExitStatus::kValid;
    JsonWriter json;
    if (is_json_) {
      json.BeginObject();
      json.BeginArray("checkpoints");
    }
    for (const std::string& path : paths_) {
      const Result<bool> changed = SetKeptAt(path, is_kept_);
      if (!changed) status = Worse(status, StatusOfError(changed.error()));
      if (is_json_) {
        Json one = {{"path", path}, {"is_changed", changed && *changed}};
        if (!changed) one["error"] = StatusToJson(changed.error());
        json.Element(one);
      } else if (!changed) {
        Fail(program, changed.error(), HintForCheckpoint(path), nullptr);
      } else {
        Print("{}: {}{}\n", Printable(path), *changed ? "" : "was ",
              is_kept_ ? "kept" : "not kept");
      }
    }
    if (is_json_) {
      json.End();
      json.Finish(status);
    }
    return status;
  }

 private:
  const bool is_kept_;
  std::vector<std::string> paths_;
  bool is_json_ = false;
};

struct Keep final : KeepCommand {
  Keep() : KeepCommand(true) {}
};
struct Unkeep final : KeepCommand {
  Unkeep() : KeepCommand(false) {}
};

const CommandEntry kKeep("keep", MakeCommand<Keep>);
const CommandEntry kUnkeep("unkeep", MakeCommand<Unkeep>);

}  // namespace
}  // namespace sealpoint::tools::keep
