// SPDX-License-Identifier: Apache-2.0
#include "lib/convert/element_converter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "lib/base/errors.h"
#include "lib/convert/number.h"

namespace sealpoint::internal::convert {
namespace {

// Numbers decoded at a time, few enough to stay in the first-level cache.
constexpr std::size_t kBatch = 256;

template <typename Codec>
void DecodeAll(const std::byte* source, std::int64_t stride_bytes, std::size_t count,
               Number* numbers) {
  for (std::size_t i = 0; i < count; ++i) {
    typename Codec::Stored stored;
    std::memcpy(&stored, source + static_cast<std::int64_t>(i) * stride_bytes, sizeof(stored));
    numbers[i] = Codec::Decode(stored);
  }
}

template <typename Codec>
std::size_t EncodeAll(const Number* numbers, std::size_t count, Rounding rounding,
                      std::byte* target, std::int64_t stride_bytes) {
  for (std::size_t i = 0; i < count; ++i) {
    typename Codec::Stored stored;
    if (!Codec::Encode(numbers[i], rounding, stored)) return i;
    std::memcpy(target + static_cast<std::int64_t>(i) * stride_bytes, &stored, sizeof(stored));
  }
  return count;
}

template <typename From, typename To>
std::uint64_t ConvertAll(const std::byte* source, std::int64_t source_stride_bytes,
                         std::byte* target, std::int64_t target_stride_bytes, std::uint64_t count,
                         Rounding rounding) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    typename From::Stored from;
    typename To::Stored to;
    std::memcpy(&from, source + at * source_stride_bytes, sizeof(from));
    if (!To::Encode(From::Decode(from), rounding, to)) return i;
    std::memcpy(target + at * target_stride_bytes, &to, sizeof(to));
  }
  return count;
}

template <typename From>
ConvertRow RowFrom(DType to) {
  switch (to) {
    case DType::kF16:
    case DType::kComplex32:
      return ConvertAll<From, FloatCodec<kF16Format>>;
    case DType::kBf16:
      return ConvertAll<From, FloatCodec<kBf16Format>>;
    case DType::kF32:
    case DType::kComplex64:
      return ConvertAll<From, FloatCodec<kF32Format>>;
    case DType::kF64:
    case DType::kComplex128:
      return ConvertAll<From, FloatCodec<kF64Format>>;
    default:
      return nullptr;
  }
}

// The dtypes of most checkpoints are converted in one loop, which is three times as fast as going
// through an array of numbers; a loop for every pair would be too much code. Null for other pairs.
ConvertRow RowOf(DType from, DType to) {
  switch (from) {
    case DType::kF16:
    case DType::kComplex32:
      return RowFrom<FloatCodec<kF16Format>>(to);
    case DType::kBf16:
      return RowFrom<FloatCodec<kBf16Format>>(to);
    case DType::kF32:
    case DType::kComplex64:
      return RowFrom<FloatCodec<kF32Format>>(to);
    case DType::kF64:
    case DType::kComplex128:
      return RowFrom<FloatCodec<kF64Format>>(to);
    default:
      return nullptr;
  }
}

// Prints an integer with all its digits, other numbers with as many as identify a double.
std::string TextOf(const Number& number) {
  if (number.kind == Number::Kind::kNan) return "NaN";
  const std::string sign = number.is_negative ? "-" : "";
  if (number.kind == Number::Kind::kInfinite) return sign + "infinity";
  if (number.exponent == 0) return StrCat(sign, number.significand);
  char text[40];
  std::snprintf(text, sizeof(text), "%.17g",
                std::ldexp(static_cast<double>(number.significand), number.exponent));
  return sign + text;
}

}  // namespace

struct ElementConverter::Components {
  Decode decode = nullptr;
  Encode encode = nullptr;
  std::uint32_t size_bytes = 0;
  std::uint32_t count = 0;

  template <typename Codec>
  static Components Of(std::uint32_t count = 1) {
    return {DecodeAll<Codec>, EncodeAll<Codec>, sizeof(typename Codec::Stored), count};
  }
};

ElementConverter::Components ElementConverter::ComponentsOf(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return Components::Of<IntegerCodec<std::int8_t>>();
    case DType::kInt16:
      return Components::Of<IntegerCodec<std::int16_t>>();
    case DType::kInt32:
      return Components::Of<IntegerCodec<std::int32_t>>();
    case DType::kInt64:
      return Components::Of<IntegerCodec<std::int64_t>>();
    case DType::kUInt8:
      return Components::Of<IntegerCodec<std::uint8_t>>();
    case DType::kUInt16:
      return Components::Of<IntegerCodec<std::uint16_t>>();
    case DType::kUInt32:
      return Components::Of<IntegerCodec<std::uint32_t>>();
    case DType::kUInt64:
      return Components::Of<IntegerCodec<std::uint64_t>>();
    case DType::kF16:
      return Components::Of<FloatCodec<kF16Format>>();
    case DType::kBf16:
      return Components::Of<FloatCodec<kBf16Format>>();
    case DType::kF32:
      return Components::Of<FloatCodec<kF32Format>>();
    case DType::kF64:
      return Components::Of<FloatCodec<kF64Format>>();
    case DType::kComplex32:
      return Components::Of<FloatCodec<kF16Format>>(2);
    case DType::kComplex64:
      return Components::Of<FloatCodec<kF32Format>>(2);
    case DType::kComplex128:
      return Components::Of<FloatCodec<kF64Format>>(2);
    case DType::kF8E4M3Fn:
      return Components::Of<FloatCodec<kF8E4M3FnFormat>>();
    case DType::kF8E5M2:
      return Components::Of<FloatCodec<kF8E5M2Format>>();
    case DType::kF8E4M3Fnuz:
      return Components::Of<FloatCodec<kF8E4M3FnuzFormat>>();
    case DType::kF8E5M2Fnuz:
      return Components::Of<FloatCodec<kF8E5M2FnuzFormat>>();
    case DType::kF8E8M0Fnu:
      return Components::Of<F8E8M0FnuCodec>();
    case DType::kNone:
    case DType::kBool:
    case DType::kF4E2M1X2:
      return {};
  }
  return {};
}

std::optional<ElementConverter> ElementConverter::Make(DType from, const Conversion& conversion) {
  const Components source = ComponentsOf(from);
  const Components target = ComponentsOf(conversion.to);
  // Complex and real numbers do not convert into each other.
  if (source.count == 0 || source.count != target.count) return std::nullopt;
  ElementConverter converter;
  converter.from_ = from;
  converter.conversion_ = conversion;
  converter.convert_row_ = RowOf(from, conversion.to);
  converter.decode_ = source.decode;
  converter.encode_ = target.encode;
  converter.component_count_ = source.count;
  converter.source_component_size_ = source.size_bytes;
  converter.target_component_size_ = target.size_bytes;
  return converter;
}

std::uint64_t ElementConverter::Convert(const std::byte* source, std::int64_t source_stride_bytes,
                                        std::byte* target, std::int64_t target_stride_bytes,
                                        std::uint64_t count) const {
  std::uint64_t good = count;
  for (std::uint32_t i = 0; i < component_count_; ++i) {
    good = std::min(
        good, ConvertNumbers(source + std::size_t{i} * source_component_size_, source_stride_bytes,
                             target + std::size_t{i} * target_component_size_, target_stride_bytes,
                             count));
  }
  return good;
}

std::uint64_t ElementConverter::ConvertNumbers(const std::byte* source,
                                               std::int64_t source_stride_bytes, std::byte* target,
                                               std::int64_t target_stride_bytes,
                                               std::uint64_t count) const {
  if (convert_row_ != nullptr) {
    return convert_row_(source, source_stride_bytes, target, target_stride_bytes, count,
                        conversion_.rounding);
  }
  std::array<Number, kBatch> numbers;
  for (std::uint64_t done = 0; done < count;) {
    const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(kBatch, count - done));
    const auto at = static_cast<std::int64_t>(done);
    decode_(source + at * source_stride_bytes, source_stride_bytes, some, numbers.data());
    const std::size_t good = encode_(numbers.data(), some, conversion_.rounding,
                                     target + at * target_stride_bytes, target_stride_bytes);
    done += good;
    if (good < some) return done;
  }
  return count;
}

std::string ElementConverter::Describe(const std::byte* element) const {
  std::string value;
  for (std::uint32_t i = 0; i < component_count_; ++i) {
    Number number;
    decode_(element + std::size_t{i} * source_component_size_, 0, 1, &number);
    value += StrCat(i == 0 ? "" : ", ", TextOf(number));
  }
  return StrCat("the ", DTypeName(from_), " value ", value, " has no ", DTypeName(conversion_.to),
                " counterpart");
}

}  // namespace sealpoint::internal::convert
