// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt-inspect/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/ckpt-inspect/box.h"
#include "tools/ckpt-inspect/element.h"
#include "tools/ckpt-inspect/print.h"
#include "tools/ckpt-inspect/select.h"
#include "tools/common/output.h"
#include "tools/common/terminal.h"
#include "tools/common/text.h"

namespace sealpoint::tools {
namespace {

constexpr std::uint64_t kValuesMax = 256;

// Narrow floating-point numbers are shown as the f32 that each of their values is, complex ones as
// two of them.
DType ShownAs(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBf16:
    case DType::kF8E4M3Fn:
    case DType::kF8E5M2:
    case DType::kF8E4M3Fnuz:
    case DType::kF8E5M2Fnuz:
    case DType::kF8E8M0Fnu:
      return DType::kF32;
    case DType::kComplex32:
      return DType::kComplex64;
    default:
      return dtype;
  }
}

// Verified elements that follow one another in the box.
struct Elements {
  std::uint64_t first = 0;  // number of the first one, row-major
  DType dtype{};
  std::size_t element_size = 0;
  std::span<const std::byte> bytes;

  std::size_t count() const { return bytes.size() / element_size; }
  std::span<const std::byte> operator[](std::size_t i) const {
    return bytes.subspan(i * element_size, element_size);
  }
};

// What of one tensor is shown, and its reading.
class Values {
 public:
  static Result<Values> Make(const Checkpoint& checkpoint, TensorInfo tensor,
                             const Options& options) {
    Result<Box> box = ParseBox(options.box, tensor.shape);
    if (!box) return Status(box.error()).AtTensor(tensor.name);
    return Values(checkpoint, std::move(tensor), *std::move(box), options.all);
  }

  const TensorInfo& tensor() const { return tensor_; }
  const Box& box() const { return box_; }
  std::uint64_t shown() const { return shown_; }
  std::uint64_t total() const { return total_; }

  // Calls `visit` with all elements that are shown, some at a time.
  template <typename Visit>
  Status ForEachPart(const Visit& visit) const {
    const std::uint64_t part_size = PartSize();
    for (std::uint64_t begin = 0; begin < shown_; begin += part_size) {
      const std::uint64_t end = std::min(shown_, begin + part_size);
      std::vector<std::byte> bytes((end - begin) * element_size());
      if (Status status = Read({.begin = begin, .end = end}, bytes); !status.ok()) return status;
      visit(Elements{
          .first = begin, .dtype = dtype(), .element_size = element_size(), .bytes = bytes});
      if (OutputFailed()) break;
    }
    return {};
  }

 private:
  Values(const Checkpoint& checkpoint, TensorInfo tensor, Box box, bool all)
      : checkpoint_(checkpoint),
        tensor_(std::move(tensor)),
        box_(std::move(box)),
        // Extents are in the shape, whose product fits.
        total_(ElementCount(box_.extent).value_or(0)),
        shown_(all ? total_ : std::min(total_, kValuesMax)) {}

  DType dtype() const { return ShownAs(tensor_.dtype); }
  std::size_t element_size() const {
    return dtype() == tensor_.dtype ? tensor_.element_size : DTypeSizeBytes(dtype());
  }

  // Each part reads whole chunks, so it is as large as a chunk at least.
  std::uint64_t PartSize() const {
    constexpr std::uint64_t kPartBytes = 8 * kMiB;
    return std::max(kPartBytes, tensor_.chunk_size_bytes) / tensor_.element_size;
  }

  Status Read(const Run& run, std::vector<std::byte>& bytes) const {
    ReadRequest request;
    request.Add(tensor_.name, Region(box_, run), MutableMemoryView::Host(bytes));
    if (dtype() != tensor_.dtype) request.items.front().convert = Conversion{dtype()};
    return checkpoint_.Load(request, LoadContract::Partial()).status();
  }

  const Checkpoint& checkpoint_;
  TensorInfo tensor_;
  Box box_;
  std::uint64_t total_;
  std::uint64_t shown_;
};

// Prints values in columns, and before each line the index of its first one.
class ValuePrinter {
 public:
  explicit ValuePrinter(const Values& values)
      : offset_(values.box().offset), extent_(values.box().extent) {
    std::vector<std::uint64_t> last;
    for (std::size_t d = 0; d < extent_.size(); ++d) last.push_back(offset_[d] + extent_[d] - 1);
    index_width_ = ShapeToString(last).size();
  }

  void operator()(const Elements& elements) const {
    std::vector<std::string> texts;
    std::size_t width = 0;
    for (std::size_t i = 0; i < elements.count(); ++i) {
      texts.push_back(ElementText(elements.dtype, elements[i]));
      width = std::max(width, texts.back().size());
    }
    const std::size_t room = OutputColumns() - std::min(OutputColumns(), index_width_);
    const std::size_t per_line = std::max<std::size_t>(room / (width + 2), 1);
    const std::uint64_t row_size = extent_.empty() ? 1 : extent_.back();
    for (std::size_t i = 0; i < texts.size();) {
      const std::uint64_t number = elements.first + i;
      const std::uint64_t row_left = row_size - number % row_size;
      const std::size_t count =
          std::min({per_line, texts.size() - i, static_cast<std::size_t>(row_left)});
      std::string line = fmt::format("{:<{}}", IndexText(number), index_width_);
      for (std::size_t k = i; k < i + count; ++k) line += fmt::format("  {:>{}}", texts[k], width);
      Print("{}\n", line);
      i += count;
    }
  }

 private:
  // "[3, 0]"
  std::string IndexText(std::uint64_t number) const {
    Shape index(extent_.size());
    for (std::size_t d = extent_.size(); d-- > 0;) {
      index[d] = offset_[d] + number % extent_[d];
      number /= extent_[d];
    }
    return ShapeToString(index);
  }

  const std::vector<std::uint64_t> offset_;
  const std::vector<std::uint64_t> extent_;
  std::size_t index_width_ = 0;
};

Status PrintOne(const Values& values) {
  const TensorInfo& tensor = values.tensor();
  PrintFact("tensor", Printable(tensor.name));
  PrintFact("dtype", DTypeText(tensor));
  PrintFact("shape", ShapeToString(tensor.shape));
  if (values.total() == 0) {
    PrintFact("values", "none");
    return {};
  }
  const bool is_all = values.shown() == values.total();
  PrintFact("values", fmt::format("{} of {}", is_all ? "all" : fmt::format("{}", values.shown()),
                                  FormatCount(values.total(), "element")));
  Print("\n");
  if (Status status = values.ForEachPart(ValuePrinter(values)); !status.ok()) return status;
  if (!is_all) Print("… {} more (--all prints them)\n", values.total() - values.shown());
  return {};
}

Status WriteOne(const Values& values, JsonWriter& json) {
  json.BeginObject();
  WriteTensor(json, values.tensor());
  json.Field("offset", values.box().offset);
  json.Field("extent", values.box().extent);
  json.Field("omitted_count", values.total() - values.shown());
  json.BeginLine("values");
  const Status status = values.ForEachPart([&](const Elements& elements) {
    for (std::size_t i = 0; i < elements.count(); ++i) {
      json.Element(ElementToJson(elements.dtype, elements[i]));
    }
  });
  if (!status.ok()) return status;
  json.End();
  json.End();
  return {};
}

template <typename Show>
Status ForEachSelected(const Checkpoint& checkpoint, const Options& options, const Show& show) {
  const Result<std::vector<std::size_t>> tensors = SelectTensors(checkpoint, options.patterns);
  if (!tensors) return tensors.error();
  for (const std::size_t tensor : *tensors) {
    const Result<Values> values = Values::Make(checkpoint, checkpoint.tensor(tensor), options);
    if (!values) return values.error();
    if (Status status = show(*values); !status.ok()) return status;
  }
  return {};
}

}  // namespace

Status PrintValues(const Checkpoint& checkpoint, const Options& options) {
  bool is_first = true;
  return ForEachSelected(checkpoint, options, [&](const Values& values) {
    Print("{}", is_first ? "" : "\n");
    is_first = false;
    return PrintOne(values);
  });
}

Status PrintValuesJson(const Checkpoint& checkpoint, const Options& options, JsonWriter& json) {
  json.BeginObject();
  json.BeginArray("tensors");
  const Status status = ForEachSelected(
      checkpoint, options, [&](const Values& values) { return WriteOne(values, json); });
  if (!status.ok()) return status;
  json.End();
  json.End();
  return {};
}

}  // namespace sealpoint::tools
