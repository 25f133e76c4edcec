// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sealpoint/dtype.h"
#include "sealpoint/region.h"
#include "tools/ckpt/ls/options.h"
#include "tools/ckpt/ls/print.h"
#include "tools/ckpt/ls/select.h"
#include "tools/common/json.h"
#include "tools/common/output.h"
#include "tools/common/terminal.h"
#include "tools/common/text.h"

namespace sealpoint::tools::ls {
namespace {

template <typename... Args>
Status BoxError(fmt::format_string<Args...> format, Args&&... args) {
  return {Code::kInvalidArgument, "--box: " + fmt::format(format, std::forward<Args>(args)...)};
}

std::string WithoutSpaces(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ') out.push_back(c);
  }
  if (out.size() >= 2 && out.front() == '[' && out.back() == ']') {
    out = out.substr(1, out.size() - 2);
  }
  return out;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// One dimension; nothing if the text is of another form.
std::optional<std::pair<std::uint64_t, std::uint64_t>> ParseRange(std::string_view text,
                                                                  std::uint64_t extent) {
  const std::size_t colon = text.find(':');
  const std::string_view first = text.substr(0, colon);
  const auto begin = first.empty() && colon == 0 ? 0 : ParseNumber(first);
  if (!begin) return std::nullopt;
  if (colon == std::string_view::npos) return std::pair(*begin, *begin + 1);
  const std::string_view last = text.substr(colon + 1);
  const auto end = last.empty() ? extent : ParseNumber(last);
  if (!end) return std::nullopt;
  return std::pair(*begin, *end);
}

// "0:4,7" of a tensor of this shape, also as regions are printed: "[0:4, 7]". Per dimension a range
// (its end not included; a missing side is that of the shape) or one index; dimensions that are
// left out at the end are whole. Errors: InvalidArgument (not of this form, more dimensions than
// the shape, empty, outside).
Result<Box> ParseBox(std::string_view text, const Shape& shape) {
  Box box{.offset = std::vector<std::uint64_t>(shape.size()), .extent = shape};
  const std::string plain = WithoutSpaces(text);
  if (plain.empty()) return box;
  const std::vector<std::string_view> parts = Split(plain, ',');
  if (parts.size() > shape.size()) {
    return BoxError("{} has {} dimensions, the shape is {}", text, parts.size(),
                    ShapeToString(shape));
  }
  for (std::size_t d = 0; d < parts.size(); ++d) {
    const auto range = ParseRange(parts[d], shape[d]);
    if (!range) return BoxError("{} is not a range, expected one such as 0:4, 7 or 2:", parts[d]);
    const auto [begin, end] = *range;
    if (begin >= end || end > shape[d]) {
      return BoxError("{} is empty or outside of the shape {}", parts[d], ShapeToString(shape));
    }
    box.offset[d] = begin;
    box.extent[d] = end - begin;
  }
  return box;
}

struct Fp4Pair {
  float low;
  float high;
};

float Fp4Value(unsigned bits) {
  constexpr std::array kMagnitudes = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  const float magnitude = kMagnitudes.at(bits & 7u);
  return (bits & 8u) != 0 ? -magnitude : magnitude;
}

// Files are little-endian, as are the machines that the library supports.
template <typename T>
T As(std::span<const std::byte> element) {
  T value;
  std::memcpy(&value, element.data(), sizeof(T));
  return value;
}

// Calls `visit` with the value in a C++ type, or with the bytes.
template <typename Visit>
auto VisitElement(DType dtype, std::span<const std::byte> element, const Visit& visit) {
  switch (dtype) {
    case DType::kInt8:
      return visit(std::int64_t{As<std::int8_t>(element)});
    case DType::kInt16:
      return visit(std::int64_t{As<std::int16_t>(element)});
    case DType::kInt32:
      return visit(std::int64_t{As<std::int32_t>(element)});
    case DType::kInt64:
      return visit(As<std::int64_t>(element));
    case DType::kUInt8:
      return visit(std::uint64_t{As<std::uint8_t>(element)});
    case DType::kUInt16:
      return visit(std::uint64_t{As<std::uint16_t>(element)});
    case DType::kUInt32:
      return visit(std::uint64_t{As<std::uint32_t>(element)});
    case DType::kUInt64:
      return visit(As<std::uint64_t>(element));
    case DType::kF32:
      return visit(As<float>(element));
    case DType::kF64:
      return visit(As<double>(element));
    case DType::kComplex64:
      return visit(As<std::complex<float>>(element));
    case DType::kComplex128:
      return visit(As<std::complex<double>>(element));
    case DType::kF4E2M1X2: {
      const auto byte = As<std::uint8_t>(element);
      return visit(Fp4Pair{Fp4Value(byte & 15u), Fp4Value(byte >> 4u)});
    }
    case DType::kBool:
      // Any other byte than these two is shown as it is.
      if (As<std::uint8_t>(element) <= 1) return visit(As<std::uint8_t>(element) == 1);
      return visit(element);
    default:
      return visit(element);
  }
}

std::string HexText(std::span<const std::byte> bytes) {
  std::string text = "0x";
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

// fmt has a sign for some NaN, which says nothing.
template <typename Float>
std::string FloatText(Float value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

template <typename Float>
Json FloatToJson(Float value) {
  if (!std::isfinite(value)) return FloatText(value);
  // The shortest digits of this type, which as a double's would be more.
  return Json::parse(FloatText(value));
}

// One element in the bytes of its dtype, for people: "0.5", "-3", "true", "1.5-2j", of f4_e2m1x2
// its two values, first the low half: "0.5|-6"; of other dtypes its bytes: "0x0f2a". The shortest
// digits that yield the same value again; f16, bf16 and f8 have to be converted to f32 before.
std::string ElementText(DType dtype, std::span<const std::byte> element) {
  return VisitElement(dtype, element, [](const auto& value) -> std::string {
    using T = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<T, Fp4Pair>) {
      return FloatText(value.low) + "|" + FloatText(value.high);
    } else if constexpr (std::is_same_v<T, std::span<const std::byte>>) {
      return HexText(value);
    } else if constexpr (requires { value.imag(); }) {
      const std::string imaginary = FloatText(value.imag());
      return FloatText(value.real()) + (imaginary.front() == '-' ? "" : "+") + imaginary + "j";
    } else if constexpr (std::is_floating_point_v<T>) {
      return FloatText(value);
    } else {
      return fmt::format("{}", value);
    }
  });
}

// The same for programs: numbers and booleans; [real, imaginary]; of f4_e2m1x2 [low, high]; "nan",
// "inf" and "-inf", for which JSON has no numbers; other bytes as text.
Json ElementToJson(DType dtype, std::span<const std::byte> element) {
  return VisitElement(dtype, element, [](const auto& value) -> Json {
    using T = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<T, Fp4Pair>) {
      return Json::array({FloatToJson(value.low), FloatToJson(value.high)});
    } else if constexpr (std::is_same_v<T, std::span<const std::byte>>) {
      return HexText(value);
    } else if constexpr (requires { value.imag(); }) {
      return Json::array({FloatToJson(value.real()), FloatToJson(value.imag())});
    } else if constexpr (std::is_floating_point_v<T>) {
      return FloatToJson(value);
    } else {
      return value;
    }
  });
}

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
  return {};
}

}  // namespace sealpoint::tools::ls
