// SPDX-License-Identifier: Apache-2.0
//
// ckpt digest: the identity of what checkpoints hold.
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/compare.h"
#include "sealpoint/progress.h"
#include "tools/ckpt/command.h"
#include "tools/ckpt/content.h"
#include "tools/common/json.h"
#include "tools/common/limits.h"
#include "tools/common/output.h"
#include "tools/common/text.h"

namespace sealpoint::tools::digest {
namespace {

constexpr const char* kFooter =
    "The digest depends on names, dtypes, shapes and bytes of tensors and on names, media types\n"
    "and bytes of objects. It does not depend on mesh, shards, chunks, codecs or format. All "
    "bytes\n"
    "are verified. The digest is a checksum and does not protect against tampering.\n"
    "Exit status: 0 computed, 1 corrupt, 2 uncommitted, 3 unsupported, 4 could not be read or\n"
    "nothing found, 5 incomplete, 64 usage, 74 standard output could not be written. For several\n"
    "paths 1, 5, 4, 3, 2 win in this order.";

class DigestCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.description("Computes the content digest of checkpoints.");
    app.footer(kFooter);
    app.add_option("PATH", paths_, "Directories of checkpoints")->required()->type_name("");
    AddContentOptions(app, options_);
    app.add_flag("-l,--long", is_long_, "Print the digest of each tensor and object, too");
    app.add_flag("--json", json_, "Print one JSON document, also after an error");
  }

  ExitStatus Run(std::string_view program) override {
    ExitStatus status = ExitStatus::kValid;
    JsonWriter json;
    if (json_) {
      json.BeginObject();
      json.BeginArray("digests");
    }
    for (const std::string& path : paths_) {
      if (OutputFailed()) break;
      const Result<ContentDigest> content = Compute(path);
      if (!content) status = Worse(status, StatusOfError(content.error()));
      if (json_) {
        WriteOne(path, content, json);
      } else if (content) {
        PrintOne(path, *content);
      } else {
        Fail(program, content.error(), "", nullptr);
      }
    }
    if (json_) {
      json.End();
      json.Finish(status);
    }
    return status;
  }

 private:
  Result<ContentDigest> Compute(const std::string& path) {
    const auto checkpoint = Checkpoint::Open(path, {.limits = TypedLimits()});
    if (!checkpoint) return checkpoint.error();
    ProgressLine line;
    ContentOptions options = options_;
    options.on_progress = [&line](const PhaseEvent& event) {
      line.Set("digest", event.bytes_done, event.bytes_total);
    };
    return ComputeContentDigest(**checkpoint, options);
  }

  void PrintOne(const std::string& path, const ContentDigest& content) const {
    if (is_long_) {
      for (const auto& [name, digest] : content.tensors) {
        Print("{}       tensor {}\n", digest.ToHex(), Printable(name));
      }
      for (const auto& [name, digest] : content.objects) {
        Print("{}       object {}\n", digest.ToHex(), Printable(name));
      }
    }
    Print("{}  {}\n", content.ToString(), Printable(path));
  }

  static void WriteDigests(std::string_view key, const std::vector<NamedDigest>& digests,
                           JsonWriter& json) {
    json.BeginArray(key);
    for (const auto& [name, digest] : digests) {
      json.Element({{"name", name}, {"digest", digest.ToHex()}});
    }
    json.End();
  }

  void WriteOne(const std::string& path, const Result<ContentDigest>& content,
                JsonWriter& json) const {
    json.BeginObject();
    json.Field("path", path);
    if (content) {
      json.Field("content", content->ToString());
      json.Field("tensor_count", content->tensors.size());
      json.Field("object_count", content->objects.size());
      json.Field("raw_bytes", content->raw_bytes);
      if (is_long_) {
        WriteDigests("tensors", content->tensors, json);
        WriteDigests("objects", content->objects, json);
      }
    } else {
      json.Field("error", StatusToJson(content.error()));
    }
    json.End();
  }

  std::vector<std::string> paths_;
  ContentOptions options_;
  bool is_long_ = false;
  bool json_ = false;
};

const CommandEntry kDigest("digest", MakeCommand<DigestCommand>);

}  // namespace
}  // namespace sealpoint::tools::digest
