// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "tools/ckpt/ls/print.h"
#include "tools/ckpt/ls/stored.h"
#include "tools/common/output.h"
#include "tools/common/terminal.h"
#include "tools/common/text.h"

namespace sealpoint::tools::ls {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes the digits off the front, without leading zeros.
std::string_view TakeNumber(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsDigit);
  std::string_view number = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(number.size());
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

// Sums are kept for each block; within one they are added up again.
constexpr std::size_t kBlock = 8;

// Numbers in names count as numbers: "layers.2" comes before "layers.10". Else as UTF-8 sorts.
struct NaturalLess {
  bool operator()(std::string_view a, std::string_view b) const;
};

// One line of the printed tree.
struct TreeLine {
  std::size_t depth = 0;
  std::string label;                  // parts of a chain without branches are joined by dots
  std::optional<std::size_t> tensor;  // whose name ends here
  // Tensors whose names go on after a dot, without the one above.
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t below() const { return end - begin; }
};

// Tensors by the parts of their names between dots. Names ascend, so the tensors below a node have
// numbers that follow one another; the tree is made of these ranges as it is walked, and takes some
// 12 bytes for each tensor. Borrows the checkpoint.
class TensorTree {
 public:
  explicit TensorTree(const Checkpoint& checkpoint);

  // Calls `visit` for all lines, depth first, down to `depth_max` levels, until it fails.
  Status ForEachLine(std::optional<std::size_t> depth_max,
                     const std::function<Status(const TreeLine&)>& visit) const;

  // Sums over the tensors [begin, end).
  struct Sums {
    std::uint64_t bytes = 0;
    std::uint64_t shard_count = 0;
  };
  Sums SumsOf(std::size_t begin, std::size_t end) const;

 private:
  struct Child {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;  // equal to `begin`: the name of that tensor ends with this part
  };
  struct Walk;

  std::string_view PartOf(std::size_t tensor, std::size_t prefix_size) const;
  std::vector<Child> Children(std::size_t begin, std::size_t end, std::size_t prefix_size) const;
  TreeLine TakeLine(const std::vector<Child>& children, std::size_t& next,
                    std::size_t prefix_size) const;
  Status VisitBelow(const Walk& walk, std::size_t begin, std::size_t end, std::size_t prefix_size,
                    std::size_t depth) const;
  Sums SumsUpTo(std::size_t end) const;

  const Checkpoint& checkpoint_;
  std::vector<Sums> sums_;  // of the tensors before each kBlock-th
};

bool NaturalLess::operator()(std::string_view a, std::string_view b) const {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (IsDigit(a.front()) && IsDigit(b.front())) {
      const std::string_view x = TakeNumber(a);
      const std::string_view y = TakeNumber(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    // As UTF-8 sorts: non-ASCII characters after ASCII.
    const auto x = static_cast<unsigned char>(a.front());
    const auto y = static_cast<unsigned char>(b.front());
    if (x != y) return x < y;
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;  // "01" and "1" are different names
}

struct TensorTree::Walk {
  std::optional<std::size_t> depth_max;
  const std::function<Status(const TreeLine&)>& visit;
};

TensorTree::TensorTree(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
  Sums sums;
  for (std::size_t i = 0; i < checkpoint.tensor_count(); ++i) {
    if (i % kBlock == 0) sums_.push_back(sums);
    const TensorInfo tensor = checkpoint.tensor(i);
    sums.bytes += tensor.raw_bytes;
    sums.shard_count += tensor.shard_count;
  }
  sums_.push_back(sums);
}

TensorTree::Sums TensorTree::SumsUpTo(std::size_t end) const {
  if (end == checkpoint_.tensor_count()) return sums_.back();
  Sums sums = sums_[end / kBlock];
  for (std::size_t i = end / kBlock * kBlock; i < end; ++i) {
    const TensorInfo tensor = checkpoint_.tensor(i);
    sums.bytes += tensor.raw_bytes;
    sums.shard_count += tensor.shard_count;
  }
  return sums;
}

TensorTree::Sums TensorTree::SumsOf(std::size_t begin, std::size_t end) const {
  const Sums before = SumsUpTo(begin);
  const Sums all = SumsUpTo(end);
  return {.bytes = all.bytes - before.bytes, .shard_count = all.shard_count - before.shard_count};
}

// The part of the name after the prefix, up to the next dot.
std::string_view TensorTree::PartOf(std::size_t tensor, std::size_t prefix_size) const {
  const std::string_view rest = checkpoint_.tensor_name(tensor).substr(prefix_size);
  return rest.substr(0, rest.find('.'));
}

// The children of tensors [begin, end), whose names share a prefix that ends with a dot or is
// empty.
std::vector<TensorTree::Child> TensorTree::Children(std::size_t begin, std::size_t end,
                                                    std::size_t prefix_size) const {
  std::vector<Child> children;
  for (std::size_t i = begin; i < end;) {
    const std::string_view part = PartOf(i, prefix_size);
    const std::size_t size = prefix_size + part.size();
    const auto first = static_cast<std::uint32_t>(i);
    const bool ends_here = checkpoint_.tensor_name(i++).size() == size;
    if (!ends_here) {
      while (i < end && checkpoint_.tensor_name(i).size() > size &&
             PartOf(i, prefix_size) == part) {
        ++i;
      }
    }
    children.push_back({.begin = first, .end = ends_here ? first : static_cast<std::uint32_t>(i)});
  }
  // A tensor and what goes on after its name need not follow one another: "a", "a-b", "a.c".
  std::stable_sort(children.begin(), children.end(), [&](const Child& a, const Child& b) {
    return NaturalLess()(PartOf(a.begin, prefix_size), PartOf(b.begin, prefix_size));
  });
  return children;
}

// The line of the next child; a tensor and what goes on after its name are one.
TreeLine TensorTree::TakeLine(const std::vector<Child>& children, std::size_t& next,
                              std::size_t prefix_size) const {
  const std::string_view part = PartOf(children[next].begin, prefix_size);
  TreeLine line{.label = std::string(part)};
  for (; next < children.size() && PartOf(children[next].begin, prefix_size) == part; ++next) {
    const Child& child = children[next];
    if (child.begin == child.end) {
      line.tensor = child.begin;
    } else {
      line.begin = child.begin;
      line.end = child.end;
    }
  }
  return line;
}

Status TensorTree::VisitBelow(const Walk& walk, std::size_t begin, std::size_t end,
                              std::size_t prefix_size, std::size_t depth) const {
  if (walk.depth_max && depth >= *walk.depth_max) return {};
  const std::vector<Child> children = Children(begin, end, prefix_size);
  for (std::size_t next = 0; next < children.size();) {
    TreeLine line = TakeLine(children, next, prefix_size);
    while (!line.tensor) {
      const std::size_t size = prefix_size + line.label.size() + 1;
      const std::vector<Child> below = Children(line.begin, line.end, size);
      std::size_t used = 0;
      const TreeLine only = TakeLine(below, used, size);
      if (used < below.size()) break;
      line = {.label = line.label + "." + only.label,
              .tensor = only.tensor,
              .begin = only.begin,
              .end = only.end};
    }
    line.depth = depth;
    if (Status status = walk.visit(line); !status.ok()) return status;
    if (line.below() == 0) continue;
    Status status =
        VisitBelow(walk, line.begin, line.end, prefix_size + line.label.size() + 1, depth + 1);
    if (!status.ok()) return status;
  }
  return {};
}

Status TensorTree::ForEachLine(std::optional<std::size_t> depth_max,
                               const std::function<Status(const TreeLine&)>& visit) const {
  return VisitBelow({.depth_max = depth_max, .visit = visit}, 0, checkpoint_.tensor_count(), 0, 0);
}

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
  if (const std::optional<BaseRef> base = checkpoint.base()) {
    PrintFact("base", fmt::format("{}, step {}, {} below it", base->attempt.ToHex(),
                                  FormatStep(base->step), FormatCount(base->depth - 1, "base")));
  }
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
  PrintAttributes(checkpoint.attributes());
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
    PrintFact("because", fmt::format("{} more violations (ckpt verify --all lists them)",
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

}  // namespace sealpoint::tools::ls
