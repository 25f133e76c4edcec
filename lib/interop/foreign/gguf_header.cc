// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/gguf_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "lib/interop/foreign/budget.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "lib/safetensors/json_text.h"

namespace sealpoint::internal::foreign {
namespace {

// From ggml.h and ggml-common.h of ggml, as in gguf-py 0.19. Numbers that are not here are unused
// or belong to types that ggml removed.
constexpr std::array kTypes = {
    GgufType{0, "F32", 1, 4, DType::kF32},
    GgufType{1, "F16", 1, 2, DType::kF16},
    GgufType{2, "Q4_0", 32, 18},
    GgufType{3, "Q4_1", 32, 20},
    GgufType{6, "Q5_0", 32, 22},
    GgufType{7, "Q5_1", 32, 24},
    GgufType{8, "Q8_0", 32, 34},
    GgufType{9, "Q8_1", 32, 40},
    GgufType{10, "Q2_K", 256, 84},
    GgufType{11, "Q3_K", 256, 110},
    GgufType{12, "Q4_K", 256, 144},
    GgufType{13, "Q5_K", 256, 176},
    GgufType{14, "Q6_K", 256, 210},
    GgufType{15, "Q8_K", 256, 292},
    GgufType{16, "IQ2_XXS", 256, 66},
    GgufType{17, "IQ2_XS", 256, 74},
    GgufType{18, "IQ3_XXS", 256, 98},
    GgufType{19, "IQ1_S", 256, 50},
    GgufType{20, "IQ4_NL", 32, 18},
    GgufType{21, "IQ3_S", 256, 110},
    GgufType{22, "IQ2_S", 256, 82},
    GgufType{23, "IQ4_XS", 256, 136},
    GgufType{24, "I8", 1, 1, DType::kInt8},
    GgufType{25, "I16", 1, 2, DType::kInt16},
    GgufType{26, "I32", 1, 4, DType::kInt32},
    GgufType{27, "I64", 1, 8, DType::kInt64},
    GgufType{28, "F64", 1, 8, DType::kF64},
    GgufType{29, "IQ1_M", 256, 56},
    GgufType{30, "BF16", 1, 2, DType::kBf16},
    GgufType{34, "TQ1_0", 256, 54},
    GgufType{35, "TQ2_0", 256, 66},
    GgufType{39, "MXFP4", 32, 17},
    GgufType{40, "NVFP4", 64, 36},
    GgufType{41, "Q1_0", 128, 18},
};

// By their numbers.
constexpr std::array<std::string_view, 13> kValueTypes = {
    "uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
    "bool",  "string", "array",  "uint64", "int64",  "float64"};
constexpr std::array<std::uint64_t, 13> kValueSizes = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
enum ValueType : std::uint8_t { kUint32 = 4, kFloat32 = 6, kBool, kString, kArray, kFloat64 = 12 };

constexpr std::string_view kAlignment = "general.alignment";
constexpr std::uint64_t kAlignmentDefault = 32;
constexpr std::uint64_t kNdimMax = 4;
constexpr int kDepthMax = 8;
// Numbers of an array that are in memory at once: 8 KiB for the largest.
constexpr std::uint64_t kNumbersMax = 1024;
// The least bytes of a key and of a tensor in a file, and memory for one beside its texts.
constexpr std::uint64_t kKeyBytes = 8 + 4 + 1;
constexpr std::uint64_t kTensorBytes = 8 + 4 + 4 + 8;
constexpr std::uint64_t kCostOfKey = 128;
constexpr std::uint64_t kCostOfTensor = 1024;
constexpr std::uint64_t kNameCopies = 8;
constexpr std::uint64_t kValueCopies = 3;

std::uint64_t Aligned(std::uint64_t size, std::uint64_t alignment) {
  return CappedAdd(size, alignment - 1) & ~(alignment - 1);
}

bool IsSigned(std::uint64_t type) { return type == 1 || type == 3 || type == 5 || type == 11; }

class HeaderReader {
 public:
  explicit HeaderReader(const SourceFile& file) : file_(file) {}

  GgufHeader Read() {
    at_ = kGguf.size();
    header_.version = TakeNumber(4);
    CheckVersion();
    const std::uint64_t tensors = TakeNumber(8);
    const std::uint64_t keys = TakeNumber(8);
    CheckCount(keys, kKeyBytes, "keys");
    for (std::uint64_t i = 0; i < keys; ++i) ReadKey();
    CheckCount(tensors, kTensorBytes, "tensors");
    names_.clear();
    for (std::uint64_t i = 0; i < tensors; ++i) ReadTensor();
    PlaceTensors();
    return std::move(header_);
  }

 private:
  [[noreturn]] void FailHere(Code code, std::uint64_t offset, const std::string& message,
                             const std::string& tensor = {}) const {
    Status status = Status(code, message).AtPath(file_.path()).AtOffset(offset);
    throw Failure{tensor.empty() ? std::move(status) : std::move(status).AtTensor(tensor)};
  }

  void CheckVersion() const {
    const std::uint64_t version = header_.version;
    if (version == 2 || version == 3) return;
    const char* const way = (version & 0xffff) == 0 && version > 0
                                ? "the file is big-endian, expected little-endian; "
                                  "gguf-convert-endian of gguf-py swaps it"
                                : "expected 2 or 3; make the file again with a newer llama.cpp";
    FailHere(Code::kUnsupported, kGguf.size(), StrCat("version of GGUF is ", version, ": ", way));
  }

  // That the file has room for so many items.
  void CheckCount(std::uint64_t count, std::uint64_t item_bytes, std::string_view what) const {
    const std::uint64_t left = file_.size() - at_;
    if (count <= left / item_bytes) return;
    FailHere(Code::kIncomplete, at_,
             StrCat(count, " ", what, " of ", item_bytes, " bytes at least are declared, and ",
                    left, " bytes of the file follow"));
  }

  std::string Take(std::uint64_t size, std::string_view what) {
    CheckCount(size, 1, what);
    std::string bytes = file_.Read(at_, size);
    at_ += size;
    return bytes;
  }
  std::uint64_t TakeNumber(std::size_t size) { return Number(Take(size, "bytes"), 0, size); }

  std::string TakeText() {
    const std::uint64_t begin = at_;
    const std::uint64_t size = TakeNumber(8);
    std::string text = Take(size, "bytes of text");
    if (!IsText(text, false)) FailHere(Code::kCorrupt, begin, "a text is not UTF-8");
    return text;
  }

  std::uint64_t TakeValueType() {
    const std::uint64_t type = TakeNumber(4);
    if (type < kValueTypes.size()) return type;
    FailHere(Code::kCorrupt, at_ - 4, StrCat("type of a value is ", type, ", expected 12 at most"));
  }

  void ReadKey() {
    const std::uint64_t begin = at_;
    GgufKey key{.name = TakeText(), .value = {}};
    if (!names_.insert(key.name).second) {
      FailHere(Code::kCorrupt, begin, StrCat("duplicate key ", Printable(key.name)));
    }
    file_.budget().Add(kCostOfKey + kNameCopies * CostOfText(key.name), file_.path());
    const std::uint64_t type = TakeValueType();
    if (key.name == kAlignment) ReadAlignment(type);
    key.value = StrCat("[\"", kValueTypes[type], "\", ");
    AppendValue(key.value, type, 0);
    key.value += ']';
    header_.keys.push_back(std::move(key));
  }

  void ReadAlignment(std::uint64_t type) {
    const std::uint64_t begin = at_;
    alignment_ = type == kUint32 ? TakeNumber(4) : 0;
    at_ = begin;
    if (std::has_single_bit(alignment_)) return;
    FailHere(Code::kCorrupt, begin,
             StrCat(kAlignment, " is ", type == kUint32 ? std::to_string(alignment_) : "no uint32",
                    ", expected a power of two as uint32"));
  }

  // Recursive, to a depth of kDepthMax.
  void AppendValue(std::string& out, std::uint64_t type, int depth) {
    if (type == kString) {
      const std::size_t before = out.size();
      safetensors::AppendJson(out, TakeText());
      Charge(out.size() - before);
    } else if (type == kArray) {
      AppendArray(out, depth + 1);
    } else {
      AppendNumbers(out, type, 1);
    }
  }

  void AppendArray(std::string& out, int depth) {
    if (depth > kDepthMax) {
      FailHere(Code::kLimitExceeded, at_,
               StrCat("arrays are nested more than ", kDepthMax, " deep"));
    }
    const std::uint64_t type = TakeValueType();
    const std::uint64_t count = TakeNumber(8);
    CheckCount(count, kValueSizes[type], "elements of an array");
    out += StrCat("[\"", kValueTypes[type], "\", [");
    const bool is_plain = type != kString && type != kArray;
    for (std::uint64_t i = 0; i < count;) {
      if (i > 0) out += ", ";
      const std::uint64_t step = is_plain ? std::min(count - i, kNumbersMax) : 1;
      if (is_plain) {
        AppendNumbers(out, type, step);
      } else {
        AppendValue(out, type, depth);
      }
      i += step;
    }
    out += "]]";
    Charge(kCostOfKey);
  }

  void AppendNumbers(std::string& out, std::uint64_t type, std::uint64_t count) {
    const std::size_t before = out.size();
    const std::size_t size = kValueSizes[type];
    const std::uint64_t begin = at_;
    const std::string bytes = Take(size * count, "bytes of numbers");
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      if (at > 0) out += ", ";
      const std::uint64_t bits = Number(bytes, at, size);
      if (type == kBool && bits > 1) {
        FailHere(Code::kCorrupt, begin + at, StrCat("a bool is ", bits, ", expected 0 or 1"));
      }
      out += NumberText(bits, type);
    }
    Charge(out.size() - before);
  }

  // Infinity and NaN, which JSON lacks, are the hexadecimal text of their bits.
  static std::string NumberText(std::uint64_t bits, std::uint64_t type) {
    if (type == kBool) return bits == 1 ? "true" : "false";
    if (type == kFloat32 || type == kFloat64) {
      const bool is_wide = type == kFloat64;
      const auto narrow = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      const double value = is_wide ? std::bit_cast<double>(bits) : static_cast<double>(narrow);
      if (std::isfinite(value)) return FloatText(value);
      const auto high = static_cast<std::uint32_t>(bits >> 32);
      const auto low = static_cast<std::uint32_t>(bits);
      return StrCat("\"", is_wide ? HexText(high, 8) : "", HexText(low, 8), "\"");
    }
    if (!IsSigned(type)) return std::to_string(bits);
    const auto shift = static_cast<int>(64 - 8 * kValueSizes[type]);
    return std::to_string(static_cast<std::int64_t>(bits << shift) >> shift);
  }

  void Charge(std::size_t text_bytes) {
    file_.budget().Add(kValueCopies * text_bytes, file_.path());
  }

  void ReadTensor() {
    const std::uint64_t begin = at_;
    GgufTensor tensor{.name = TakeText()};
    file_.budget().Add(kCostOfTensor + kNameCopies * CostOfText(tensor.name), file_.path());
    if (!names_.insert(tensor.name).second) {
      FailHere(Code::kCorrupt, begin, "duplicate tensor", tensor.name);
    }
    const std::uint64_t ndim = TakeNumber(4);
    if (ndim > kNdimMax) {
      FailHere(Code::kCorrupt, begin,
               StrCat("tensor has ", ndim, " dimensions, expected 4 at most"), tensor.name);
    }
    for (std::uint64_t i = 0; i < ndim; ++i) tensor.shape.push_back(TakeNumber(8));
    std::ranges::reverse(tensor.shape);
    const std::uint64_t id = TakeNumber(4);
    const auto type = std::ranges::find(kTypes, id, &GgufType::id);
    if (type == kTypes.end()) {
      FailHere(Code::kUnsupported, begin, StrCat("type ", id, " of the tensor is unknown"),
               tensor.name);
    }
    tensor.type = type;
    tensor.begin = TakeNumber(8);  // from the first tensor on
    SetSize(tensor, begin);
    header_.tensors.push_back(std::move(tensor));
  }

  void SetSize(GgufTensor& tensor, std::uint64_t begin) const {
    const GgufType& type = *tensor.type;
    if (type.block_elements > 1) {
      const std::uint64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
      if (row % type.block_elements != 0) {
        FailHere(Code::kCorrupt, begin,
                 StrCat("rows have ", row, " elements, expected a multiple of ",
                        type.block_elements, " as the type is ", type.name),
                 tensor.name);
      }
      tensor.shape.back() = CappedMul(row / type.block_elements, type.block_bytes);
    }
    const auto count = ElementCount(tensor.shape);
    tensor.size = count.ok() ? CappedMul(*count, DTypeSizeBytes(type.dtype))
                             : std::numeric_limits<std::uint64_t>::max();
    if (tensor.size < std::numeric_limits<std::uint64_t>::max()) return;
    FailHere(Code::kCorrupt, begin,
             StrCat("tensor ", ShapeToString(tensor.shape), " of ", type.name,
                    " has more than 2^64 bytes"),
             tensor.name);
  }

  // ggml reads only tensors that follow each other, each at a multiple of the alignment.
  void PlaceTensors() {
    const std::uint64_t base = Aligned(at_, alignment_);
    std::uint64_t expected = 0;
    std::uint64_t end = at_;
    for (GgufTensor& tensor : header_.tensors) {
      if (tensor.begin != expected) {
        FailHere(Code::kCorrupt, CappedAdd(base, tensor.begin),
                 StrCat("tensor begins ", tensor.begin, " bytes after the header, expected ",
                        expected, ", which is where the one before ends, aligned to ", alignment_),
                 tensor.name);
      }
      end = CappedAdd(CappedAdd(base, expected), tensor.size);
      if (end > file_.size()) {
        FailHere(Code::kIncomplete, CappedAdd(base, expected),
                 StrCat("the file has ", file_.size(), " bytes, and the tensor ends at ", end),
                 tensor.name);
      }
      tensor.begin = base + expected;
      expected = Aligned(CappedAdd(expected, tensor.size), alignment_);
    }
    if (file_.size() <= Aligned(end, alignment_)) return;
    FailHere(Code::kCorrupt, end,
             StrCat(file_.size() - end, " bytes follow the last tensor, expected padding to ",
                    alignment_, " at most"));
  }

  const SourceFile& file_;
  GgufHeader header_;
  std::uint64_t at_ = 0;
  std::uint64_t alignment_ = kAlignmentDefault;
  std::set<std::string> names_;  // of keys, then of tensors
};

}  // namespace

GgufHeader ReadGgufHeader(const SourceFile& file) { return HeaderReader(file).Read(); }

}  // namespace sealpoint::internal::foreign

namespace sealpoint {

std::span<const GgufType> GgufTypes() { return internal::foreign::kTypes; }
std::span<const std::string_view> GgufValueTypes() { return internal::foreign::kValueTypes; }

}  // namespace sealpoint
