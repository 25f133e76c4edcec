// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ckpt-inspect/print.h"
#include "tools/ckpt-inspect/stored.h"
#include "tools/ckpt-inspect/tree.h"
#include "tools/common/output.h"
#include "tools/common/terminal.h"
#include "tools/common/text.h"

namespace sealpoint::tools {
namespace {

// Lines are no longer than people read.
constexpr std::size_t kColumnsMax = 160;
constexpr std::size_t kDTypeWidth = 10;
constexpr std::size_t kShapeWidth = 17;
constexpr std::size_t kCodecWidth = 14;

// What the name has of `columns` that others do not use.
std::size_t NameWidth(std::size_t others) {
  constexpr std::size_t kLeast = 24;
  const std::size_t columns = std::min(OutputColumns(), kColumnsMax);
  return std::max(columns, others + kLeast) - others;
}

struct TreeRow {
  std::string name;
  std::string dtype;
  std::string shape;
  std::string bytes;
  std::string shards;
  // With --long.
  std::string codec;
  std::string stored;
  std::string ratio;
};

class TreePrinter {
 public:
  TreePrinter(const Checkpoint& checkpoint, const Options& options)
      : checkpoint_(checkpoint),
        options_(options),
        tree_(checkpoint),
        name_width_(NameWidth(OtherWidth())) {}

  Status Print() {
    tools::Print(
        "\n{}\n",
        Bold(Text({"tensor", "dtype", "shape", "bytes", "shards", "codec", "stored", "ratio"})));
    return tree_.ForEachLine(options_.depth_max,
                             [this](const TreeLine& line) { return PrintLine(line); });
  }

 private:
  std::size_t OtherWidth() const {
    constexpr std::size_t kShort = 1 + kDTypeWidth + 1 + kShapeWidth + 1 + 8 + 1 + 7;
    return kShort + (options_.is_long ? 1 + kCodecWidth + 1 + 8 + 1 + 6 : 0);
  }

  std::string Text(const TreeRow& row) const {
    std::string text =
        fmt::format("{} {:<{}} {:<{}} {:>8} {:>7}", Padded(row.name, name_width_), row.dtype,
                    kDTypeWidth, row.shape, kShapeWidth, row.bytes, row.shards);
    if (options_.is_long) {
      text += fmt::format(" {:<{}} {:>8} {:>6}", row.codec, kCodecWidth, row.stored, row.ratio);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

  // A name that is too long has a line of its own.
  void PrintRow(TreeRow row) const {
    if (Width(row.name) > name_width_) {
      tools::Print("{}\n", row.name);
      row.name.clear();
    }
    tools::Print("{}\n", Text(row));
  }

  Status PrintLine(const TreeLine& line) const {
    const std::string name = std::string(2 * line.depth, ' ') + Printable(line.label);
    // A prefix may be a tensor itself, which then has the first line of its own.
    if (line.tensor) {
      Status status = PrintTensorRow(name, checkpoint_.tensor(*line.tensor));
      if (!status.ok()) return status;
    }
    if (line.below() == 0) return {};
    const TensorTree::Sums sums = tree_.SumsOf(line.begin, line.end);
    PrintRow({.name = name + (line.tensor ? ".*" : ""),
              .shape = FormatCount(line.below(), "tensor"),
              .bytes = BytesText(sums.bytes),
              .shards = fmt::format("{}", sums.shard_count)});
    return {};
  }

  Status PrintTensorRow(const std::string& name, const TensorInfo& tensor) const {
    TreeRow row{.name = name,
                .dtype = DTypeText(tensor),
                .shape = ShapeToString(tensor.shape),
                .bytes = BytesText(tensor.raw_bytes),
                .shards = fmt::format("{}", tensor.shard_count)};
    if (options_.is_long) {
      const Result<StoredChunks> stored = checkpoint_.TensorChunks(tensor.name);
      if (!stored) return stored.error();
      row.codec = CodecName(*stored);
      row.stored = BytesText(stored->stored_bytes);
      row.ratio = RatioText(*stored);
    }
    PrintRow(std::move(row));
    return {};
  }

  const Checkpoint& checkpoint_;
  const Options& options_;
  const TensorTree tree_;
  const std::size_t name_width_;
};

void PrintObjects(const Checkpoint& checkpoint) {
  constexpr std::size_t kMediaTypeWidth = 28;
  const std::size_t name_width = NameWidth(1 + kMediaTypeWidth + 1 + 8);
  const auto print = [&](std::string_view name, std::string_view media_type, std::string_view bytes,
                         bool is_head) {
    const std::string line = fmt::format("{} {} {:>8}", Padded(name, name_width),
                                         Padded(media_type, kMediaTypeWidth), bytes);
    Print("{}\n", is_head ? Bold(line) : line);
  };
  Print("\n");
  print("object", "media type", "bytes", true);
  for (std::size_t i = 0; i < checkpoint.object_count(); ++i) {
    const ObjectInfo object = checkpoint.object(i);
    print(Printable(object.name), Printable(object.media_type), BytesText(object.size_bytes),
          false);
  }
}

std::string BlobsText(const CheckpointView& view) {
  const std::string text =
      fmt::format("{}, {} in {}", view.report.blob_count, BytesText(view.blob_bytes),
                  FormatCount(view.report.chunk_count, "chunk"));
  if (view.blob_bytes == 0) return text;
  // With tables, manifests and padding.
  const std::uint64_t raw_bytes = view.tensor_bytes + view.object_bytes;
  return fmt::format("{}, ratio {}", text, RatioText(raw_bytes, view.blob_bytes));
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
                        FormatCount(view.shard_count, "shard"), BytesText(view.tensor_bytes)));
  PrintFact("objects",
            fmt::format("{}, {}", checkpoint.object_count(), BytesText(view.object_bytes)));
  PrintFact("blobs", BlobsText(view));
  const std::string mesh = FormatMesh(checkpoint.mesh());
  if (!mesh.empty()) PrintFact("mesh", mesh);
  for (const auto& [key, value] : checkpoint.provenance()) {
    PrintFact("origin", fmt::format("{} = {}", Printable(key), Printable(value)));
  }
}

void PrintNotes(const VerifyReport& report, bool all) {
  constexpr std::size_t kNotesMax = 20;
  const std::size_t count = report.notes.size();
  const std::size_t shown = all || count <= kNotesMax + 1 ? count : kNotesMax;
  for (std::size_t i = 0; i < shown; ++i) PrintFact("note", Printable(report.notes[i]));
  if (shown < count) PrintFact("note", fmt::format("{} more (--all lists them)", count - shown));
}

void PrintViolations(const VerifyReport& report) {
  constexpr std::size_t kViolationsMax = 20;
  const std::size_t shown = std::min(report.violations.size(), kViolationsMax);
  for (std::size_t i = 0; i < shown; ++i) {
    PrintFact("because", report.violations[i].ToString());
  }
  if (shown < report.violation_count) {
    PrintFact("because", fmt::format("{} more violations (ckpt-verify --all lists them)",
                                     report.violation_count - shown));
  }
}

}  // namespace

std::string DTypeText(const TensorInfo& tensor) {
  if (FindDType(tensor.dtype)) return std::string(DTypeName(tensor.dtype));
  return fmt::format("#{} {} B", static_cast<unsigned>(tensor.dtype), tensor.element_size);
}

Status PrintCheckpoint(const CheckpointView& view, const Options& options) {
  const VerifyReport& report = view.report;
  PrintFact("checkpoint", Printable(report.path));
  PrintFact("verdict", fmt::format("{} ({})", Coloured(VerdictName(report.verdict), report.verdict),
                                   VerifyLevelName(report.level)));
  PrintViolations(report);
  if (view.checkpoint) PrintOpen(view);
  PrintFact("leftovers", report.leftover_bytes == 0 ? "none" : BytesText(report.leftover_bytes));
  PrintNotes(report, options.all);
  if (!view.checkpoint) return {};
  if (view.checkpoint->tensor_count() > 0) {
    if (Status status = TreePrinter(*view.checkpoint, options).Print(); !status.ok()) {
      return status;
    }
  }
  if (view.checkpoint->object_count() > 0) PrintObjects(*view.checkpoint);
  return {};
}

}  // namespace sealpoint::tools
