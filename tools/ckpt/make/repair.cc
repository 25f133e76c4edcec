// SPDX-License-Identifier: Apache-2.0
//
// ckpt repair: a whole checkpoint of damaged ones.
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

namespace sealpoint::tools::repair {
namespace {

constexpr const char* kFooter =
    "Takes each file from the first directory with a valid copy: PATH, then the --from "
    "directories\n"
    "in their order. Each of these may hold only some of the files; none is changed. If a blob "
    "has\n"
    "no valid copy, the command lists the lost tensors and objects, and keeps the other blobs in\n"
    "DIR. To continue, repeat it with another copy.\n";

class Repair {
 public:
  Repair(std::string_view program, bool is_json) : program_(program), is_json_(is_json) {}

  ExitStatus Run(const std::string& path, const std::vector<std::string>& replicas,
                 const std::string& to, RepairOptions options) {
    ProgressLine line;
    options.on_progress = ProgressOn(line, "repair");
    report_ = RepairCheckpoint({.damaged = path, .replicas = replicas, .to = to}, options);
    line.Clear();
    is_json_ ? WriteReport(to) : PrintReport(to);
    if (!report_.status.ok()) {
      const bool has_looked = !report_.blobs.empty();  // then the report says it all
      return Fail(program_, report_.status, has_looked ? "" : HintForCheckpoint(path),
                  is_json_ ? &json_ : nullptr);
    }
    if (is_json_) json_.Finish(ExitStatus::kValid);
    return ExitStatus::kValid;
  }

 private:
  static void PrintBlob(const RepairedBlob& blob) {
    Print("blob {}: {}, {}\n", blob.id.ToHex(), BytesText(blob.size_bytes),
          blob.from.empty() ? "nowhere whole" : "from " + Printable(blob.from));
    for (const Status& problem : blob.problems) Print("  {}\n", problem.ToString());
  }

  void PrintReport(const std::string& to) const {
    if (!report_.marker_from.empty()) {
      Print("marker: from {}\n", Printable(report_.marker_from));
      if (!report_.index_from.empty()) {
        Print("index: from {}\n", Printable(report_.index_from));
      } else if (report_.status.ok() && !report_.was_committed) {
        Print("index: rebuilt, without mesh and provenance; attempt {}\n", report_.attempt.ToHex());
      }
    }
    for (const RepairedBlob& blob : report_.blobs) PrintBlob(blob);
    for (const std::string& name : report_.lost_tensors)
      Print("lost: tensor {}\n", Printable(name));
    for (const std::string& name : report_.lost_objects)
      Print("lost: object {}\n", Printable(name));
    if (!report_.status.ok()) return;
    Print("{} {}\n", report_.was_committed ? "already exists:" : "created", Printable(to));
  }

  void WriteBlobs() {
    json_.BeginArray("blobs");
    for (const RepairedBlob& blob : report_.blobs) {
      Json problems = Json::array();
      for (const Status& problem : blob.problems) problems.push_back(StatusToJson(problem));
      json_.Element({{"id", blob.id.ToHex()},
                     {"size_bytes", blob.size_bytes},
                     {"from", blob.from},
                     {"problems", problems}});
    }
    json_.End();
  }

  void WriteNames(std::string_view key, const std::vector<std::string>& names) {
    json_.BeginArray(key);
    for (const std::string& name : names) json_.Element(name);
    json_.End();
  }

  void WriteReport(const std::string& to) {
    json_.BeginObject();
    json_.Field("path", to);
    json_.Field("attempt", IdToJson(report_.attempt));
    json_.Field("step", StepToJson(report_.step));
    json_.Field("marker_from", report_.marker_from);
    json_.Field("index_from", report_.index_from);
    WriteBlobs();
    WriteNames("lost_tensors", report_.lost_tensors);
    WriteNames("lost_objects", report_.lost_objects);
    json_.Field("was_committed", report_.was_committed);
  }

  const std::string_view program_;
  const bool is_json_;
  RepairReport report_;
  JsonWriter json_;
};

class RepairCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.description("Restores a damaged checkpoint from copies.");
    app.footer(std::string(kFooter) + kMadeStatuses);
    app.add_option("PATH", path_, "Directory of the checkpoint")->required()->type_name("");
    app.add_option("--from", replicas_, "Copies of it, or of some of its files")
        ->required()
        ->type_name("DIR")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    AddDestination(app, to_);
    app.add_flag("--rebuild-index", options_.rebuild_index,
                 "If no copy has the index, rebuild it from the blobs'\nmanifests");
    AddThreads(app, options_.threads);
    AddMemory(app, options_.memory_budget_bytes);
    app.add_flag("--json", is_json_, "Print one JSON document, also after an error");
  }
  ExitStatus Run(std::string_view program) override {
    options_.limits = TypedLimits();
    return Repair(program, is_json_).Run(path_, replicas_, to_, options_);
  }

 private:
  std::string path_;
  std::vector<std::string> replicas_;
  std::string to_;
  RepairOptions options_;
  bool is_json_ = false;
};

const CommandEntry kRepair("repair", MakeCommand<RepairCommand>);

}  // namespace
}  // namespace sealpoint::tools::repair
