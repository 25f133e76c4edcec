// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string_view>

#include "tools/ckpt/ls/print.h"
#include "tools/ckpt/ls/select.h"
#include "tools/common/output.h"
#include "tools/common/terminal.h"
#include "tools/common/text.h"

namespace sealpoint::tools::ls {
namespace {

// A terminal obeys what it is sent.
Status CheckForTerminal(std::string_view content) {
  if (!StdoutIsTerminal()) return {};
  std::string text;
  for (const char c : content) {
    if (c != '\n' && c != '\t' && c != '\r') text.push_back(c);
  }
  if (Printable(text) == text) return {};
  return {Code::kInvalidArgument,
          "the object is not text, and standard output is a terminal: redirect it to a file"};
}

}  // namespace

Status WriteObject(const Checkpoint& checkpoint, const std::vector<std::string>& patterns) {
  const Result<std::vector<ObjectInfo>> objects = SelectObjects(checkpoint, patterns);
  if (!objects) return objects.error();
  if (objects->size() > 1) {
    return {Code::kInvalidArgument,
            fmt::format("--object writes one object, {} match, such as {} and {}", objects->size(),
                        objects->at(0).name, objects->at(1).name)};
  }
  const Result<Bytes> bytes = checkpoint.ReadObject(objects->front().name);
  if (!bytes) return bytes.error();
  const std::string_view content(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (Status status = CheckForTerminal(content); !status.ok()) return status;
  Write(content);
  return {};
}

void WriteObject(JsonWriter& json, const ObjectInfo& object) {
  json.Element({{"name", object.name},
                {"media_type", object.media_type},
                {"size_bytes", object.size_bytes}});
}

Status PrintObjectsJson(const Checkpoint& checkpoint, const std::vector<std::string>& patterns,
                        JsonWriter& json) {
  const Result<std::vector<ObjectInfo>> objects = SelectObjects(checkpoint, patterns);
  if (!objects) return objects.error();
  json.BeginObject();
  json.BeginArray("objects");
  for (const ObjectInfo& object : *objects) WriteObject(json, object);
  json.End();
  return {};
}

}  // namespace sealpoint::tools::ls
