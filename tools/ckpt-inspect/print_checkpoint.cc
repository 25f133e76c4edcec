// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tools/ckpt-inspect/print.h"
#include "tools/ckpt-inspect/tree.h"
#include "tools/common/terminal.h"
#include "tools/common/text.h"

namespace sealpoint::tools {
namespace {

// Columns: name, dtype, shape, bytes, shards: 80 in all.
constexpr std::size_t kNameWidth = 34;
constexpr std::size_t kDTypeWidth = 10;
constexpr std::size_t kShapeWidth = 17;

std::string Padded(std::string_view text, std::size_t width) {
  const std::size_t used = Width(text);
  return std::string(text) + std::string(used < width ? width - used : 0, ' ');
}

std::string Row(std::string_view name, std::string_view dtype, std::string_view shape,
                std::string_view bytes, std::string_view shards) {
  return fmt::format("{} {:<{}} {:<{}} {:>8} {:>7}", Padded(name, kNameWidth), dtype, kDTypeWidth,
                     shape, kShapeWidth, bytes, shards);
}

void PrintRow(std::string name, std::string_view dtype, std::string_view shape,
              std::string_view bytes, std::string_view shards) {
  if (Width(name) > kNameWidth) {
    fmt::print("{}\n", name);
    name.clear();
  }
  fmt::print("{}\n", Row(name, dtype, shape, bytes, shards));
}

std::string DTypeText(const TensorInfo& tensor) {
  if (FindDType(tensor.dtype)) return std::string(DTypeName(tensor.dtype));
  return fmt::format("#{} {} B", static_cast<unsigned>(tensor.dtype), tensor.element_size);
}

void PrintTree(const std::vector<TensorInfo>& tensors, std::optional<std::size_t> depth_max) {
  const TreeNode root = BuildTree(tensors);
  fmt::print("\n{}\n", Bold(Row("tensor", "dtype", "shape", "bytes", "shards")));
  for (const TreeLine& line : FlattenTree(root, depth_max)) {
    const TreeNode& node = *line.node;
    const std::string name = std::string(2 * line.depth, ' ') + Printable(line.label);
    const bool is_leaf = node.tensor && node.children.empty();
    // A prefix may be a tensor itself, which then has the first line of its own.
    if (node.tensor) {
      PrintRow(name, DTypeText(*node.tensor), ShapeToString(node.tensor->shape),
               FormatBytes(node.tensor->raw_bytes), fmt::format("{}", node.tensor->shard_count));
    }
    if (!is_leaf) {
      PrintRow(name + (node.tensor ? ".*" : ""), "", FormatCount(node.tensor_count, "tensor"),
               FormatBytes(node.bytes), fmt::format("{}", node.shard_count));
    }
  }
}

void PrintObjects(const std::vector<ObjectInfo>& objects) {
  fmt::print("\n{}\n",
             Bold(fmt::format("{:<{}} {:<28} {:>8}", "object", kNameWidth, "media type", "bytes")));
  for (const ObjectInfo& object : objects) {
    fmt::print("{} {:<28} {:>8}\n", Padded(Printable(object.name), kNameWidth),
               Printable(object.media_type), FormatBytes(object.size_bytes));
  }
}

void PrintOpen(const CheckpointView& view) {
  const Checkpoint& checkpoint = *view.checkpoint;
  PrintFact("step", FormatStep(checkpoint.step()));
  PrintFact("sequence", fmt::format("{}", checkpoint.sequence()));
  PrintFact("attempt", checkpoint.attempt().ToHex());
  PrintFact("parent", FormatParent(checkpoint.parent()));
  PrintFact("created", FormatTime(checkpoint.created_unix_ns()));
  PrintFact("tensors",
            fmt::format("{} in {}, {}", checkpoint.tensor_count(),
                        FormatCount(view.shard_count, "shard"), FormatBytes(view.tensor_bytes)));
  PrintFact("objects",
            fmt::format("{}, {}", checkpoint.object_count(), FormatBytes(view.object_bytes)));
  PrintFact("blobs",
            fmt::format("{}, {} in {}", view.report.blob_count, FormatBytes(view.blob_bytes),
                        FormatCount(view.report.chunk_count, "chunk")));
  std::string mesh;
  for (const auto& [axis, size] : checkpoint.mesh()) {
    mesh += fmt::format("{}{} {}", mesh.empty() ? "" : " x ", Printable(axis), size);
  }
  if (!mesh.empty()) PrintFact("mesh", mesh);
  for (const auto& [key, value] : checkpoint.provenance()) {
    PrintFact("origin", fmt::format("{} = {}", Printable(key), Printable(value)));
  }
}

}  // namespace

void PrintFact(std::string_view label, std::string_view value) {
  fmt::print("{:<11} {}\n", label, value);
}

void PrintCheckpoint(const CheckpointView& view, std::optional<std::size_t> depth_max) {
  const VerifyReport& report = view.report;
  PrintFact("checkpoint", Printable(report.path));
  PrintFact("verdict", fmt::format("{} ({})", Coloured(VerdictName(report.verdict), report.verdict),
                                   VerifyLevelName(report.level)));
  for (const Status& violation : report.violations) {
    PrintFact("because", Printable(violation.ToString()));
  }
  if (view.checkpoint) PrintOpen(view);
  PrintFact("leftovers", report.leftover_bytes == 0 ? "none" : FormatBytes(report.leftover_bytes));
  for (const std::string& note : report.notes) PrintFact("note", Printable(note));
  if (!view.checkpoint) return;
  const std::vector<TensorInfo> tensors = view.checkpoint->tensors();
  if (!tensors.empty()) PrintTree(tensors, depth_max);
  const std::vector<ObjectInfo> objects = view.checkpoint->objects();
  if (!objects.empty()) PrintObjects(objects);
}

Status PrintTensor(const Checkpoint& checkpoint, const std::string& name) {
  const std::optional<TensorInfo> tensor = checkpoint.FindTensor(name);
  const Result<std::vector<ShardInfo>> shards = checkpoint.Shards(name);
  if (!shards) return shards.error();
  PrintFact("tensor", Printable(tensor->name));
  PrintFact("dtype", fmt::format("{}, {} per element", DTypeText(*tensor),
                                 FormatBytes(tensor->element_size)));
  PrintFact("shape", ShapeToString(tensor->shape));
  PrintFact("bytes", FormatBytes(tensor->raw_bytes));
  PrintFact("chunks of", FormatPowerOfTwo(tensor->chunk_size_bytes));
  for (const std::string& placement : tensor->placement) {
    PrintFact("placement", Printable(placement));
  }
  PrintFact("shards", fmt::format("{}", shards->size()));
  if (shards->empty()) return {};
  std::size_t width = 0;
  for (const ShardInfo& shard : *shards) width = std::max(width, Width(shard.region.ToString()));
  fmt::print("\n{:<{}}  {}\n", "region", width, "blob");
  for (const ShardInfo& shard : *shards) {
    fmt::print("{:<{}}  {}\n", shard.region.ToString(), width, shard.blob.ToHex());
  }
  return {};
}

}  // namespace sealpoint::tools
