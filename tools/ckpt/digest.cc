// SPDX-License-Identifier: Apache-2.0
//
// ckpt digest: the identity of what checkpoints hold, by digests or fingerprints.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/content.h"
#include "sealpoint/phases.h"
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
    app.add_flag("--fingerprints", fingerprints_,
                 "Print the fingerprint of the tensors instead; no payload is\n"
                 "read if the writer stored the fingerprints");
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
      const Result<Content> content = Compute(path);
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
  // What is printed: digests or fingerprints.
  struct Named {
    std::string name;
    std::string value;
  };
  struct Content {
    std::string value;
    std::vector<Named> tensors;
    std::vector<Named> objects;
    std::optional<std::uint64_t> raw_bytes;  // of what was read
  };

  Result<Content> Compute(const std::string& path) {
    const auto checkpoint = Checkpoint::Open(path, {.limits = TypedLimits()});
    if (!checkpoint) return checkpoint.error();
    ProgressLine line;
    ContentOptions options = options_;
    options.on_progress = [&line](const PhaseEvent& event) {
      line.Set("digest", event.bytes_done, event.bytes_total);
    };
    return fingerprints_ ? Fingerprints(**checkpoint, options) : Digests(**checkpoint, options);
  }

  static Result<Content> Digests(const Checkpoint& checkpoint, const ContentOptions& options) {
    const Result<ContentDigest> digest = ComputeContentDigest(checkpoint, options);
    if (!digest) return digest.error();
    Content content{.value = digest->ToString(), .raw_bytes = digest->raw_bytes};
    for (const auto& [name, of_tensor] : digest->tensors) {
      content.tensors.push_back({name, of_tensor.ToHex()});
    }
    for (const auto& [name, of_object] : digest->objects) {
      content.objects.push_back({name, of_object.ToHex()});
    }
    return content;
  }

  static Result<Content> Fingerprints(const Checkpoint& checkpoint, const ContentOptions& options) {
    Result<ContentFingerprint> found = StoredContentFingerprint(checkpoint, options);
    if (!found && found.error().place().tensor.empty()) return found.error();
    if (!found) found = ComputeContentFingerprint(checkpoint, options);
    if (!found) return found.error();
    Content content{.value = found->ToString()};
    for (const auto& [name, fingerprint] : found->tensors) {
      content.tensors.push_back({name, fingerprint.ToString()});
    }
    return content;
  }

  void PrintOne(const std::string& path, const Content& content) const {
    if (is_long_) {
      for (const auto& [name, value] : content.tensors) {
        Print("{}{} tensor {}\n", value, Gap(), Printable(name));
      }
      for (const auto& [name, value] : content.objects) {
        Print("{}{} object {}\n", value, Gap(), Printable(name));
      }
    }
    Print("{}  {}\n", content.value, Printable(path));
  }
  // As wide as the prefix of the last line.
  std::string_view Gap() const { return fingerprints_ ? "  " : "      "; }

  static void WriteValues(std::string_view key, std::string_view value_key,
                          const std::vector<Named>& all, JsonWriter& json) {
    json.BeginArray(key);
    for (const auto& [name, value] : all) json.Element({{"name", name}, {value_key, value}});
    json.End();
  }

  void WriteOne(const std::string& path, const Result<Content>& content, JsonWriter& json) const {
    json.BeginObject();
    json.Field("path", path);
    if (content) {
      const std::string_view value_key = fingerprints_ ? "fingerprint" : "digest";
      json.Field(fingerprints_ ? "fingerprint" : "content", content->value);
      json.Field("tensor_count", content->tensors.size());
      if (!fingerprints_) json.Field("object_count", content->objects.size());
      if (content->raw_bytes) json.Field("raw_bytes", *content->raw_bytes);
      if (is_long_) {
        WriteValues("tensors", value_key, content->tensors, json);
        if (!fingerprints_) WriteValues("objects", value_key, content->objects, json);
      }
    } else {
      json.Field("error", StatusToJson(content.error()));
    }
    json.End();
  }

  std::vector<std::string> paths_;
  ContentOptions options_;
  bool is_long_ = false;
  bool fingerprints_ = false;
  bool json_ = false;
};

const CommandEntry kDigest("digest", MakeCommand<DigestCommand>);

}  // namespace
}  // namespace sealpoint::tools::digest
