// SPDX-License-Identifier: Apache-2.0
#include "lib/compare/values.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

#include "lib/base/macros.h"
#include "lib/convert/element_converter.h"

namespace sealpoint::internal::compare {
namespace {

// Files are little-endian, as are the machines that the library supports.
template <typename T>
void Decode(ByteSpan bytes, double* values) {
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
}

void DecodeBf16(ByteSpan bytes, double* values) {
  for (std::size_t i = 0; i < bytes.size() / 2; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    values[i] = static_cast<double>(std::bit_cast<float>(std::uint32_t{bits} << 16u));
  }
}

void DecodeBool(ByteSpan bytes, double* values) {
  for (std::size_t i = 0; i < bytes.size(); ++i) values[i] = bytes[i] == std::byte{0} ? 0 : 1;
}

void DecodeFp4(ByteSpan bytes, double* values) {
  constexpr std::array kMagnitudes = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  for (std::size_t i = 0; i < 2 * bytes.size(); ++i) {
    const auto bits = std::to_integer<unsigned>(bytes[i / 2]) >> (4 * (i % 2));
    values[i] = (bits & 8u) != 0 ? -kMagnitudes.at(bits & 7u) : kMagnitudes.at(bits & 7u);
  }
}

// All values of a dtype of one or two bytes, by their bits.
template <typename Bits>
const std::vector<float>& TableOf(DType dtype) {
  static const auto make = [](DType of) {
    const auto converter = convert::ElementConverter::Make(of, {.to = DType::kF32});
    SEALPOINT_CHECK(converter.has_value());
    std::vector<float> table(std::size_t{1} << (8 * sizeof(Bits)));
    for (std::size_t i = 0; i < table.size(); ++i) {
      const auto bits = static_cast<Bits>(i);
      converter->Convert(reinterpret_cast<const std::byte*>(&bits), sizeof(Bits),
                         reinterpret_cast<std::byte*>(&table[i]), sizeof(float), 1);
    }
    return table;
  };
  if constexpr (sizeof(Bits) == 2) {
    static const std::vector<float> f16 = make(DType::kF16);
    return f16;
  } else {
    static const std::array tables = {make(DType::kF8E4M3Fn), make(DType::kF8E5M2),
                                      make(DType::kF8E4M3Fnuz), make(DType::kF8E5M2Fnuz),
                                      make(DType::kF8E8M0Fnu)};
    return tables.at(static_cast<std::size_t>(dtype) - static_cast<std::size_t>(DType::kF8E4M3Fn));
  }
}

template <typename Bits>
void Look(DType dtype, ByteSpan bytes, double* values) {
  const std::vector<float>& table = TableOf<Bits>(dtype);
  for (std::size_t i = 0; i < bytes.size() / sizeof(Bits); ++i) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i * sizeof(Bits), sizeof(Bits));
    values[i] = static_cast<double>(table[bits]);
  }
}

std::size_t ValuesPerElement(DType dtype) {
  switch (dtype) {
    case DType::kComplex32:
    case DType::kComplex64:
    case DType::kComplex128:
    case DType::kF4E2M1X2:
      return 2;
    default:
      return 1;
  }
}

void DecodeInteger(DType dtype, ByteSpan bytes, double* to) {
  switch (dtype) {
    case DType::kInt8:
      return Decode<std::int8_t>(bytes, to);
    case DType::kInt16:
      return Decode<std::int16_t>(bytes, to);
    case DType::kInt32:
      return Decode<std::int32_t>(bytes, to);
    case DType::kInt64:
      return Decode<std::int64_t>(bytes, to);
    case DType::kUInt8:
      return Decode<std::uint8_t>(bytes, to);
    case DType::kUInt16:
      return Decode<std::uint16_t>(bytes, to);
    case DType::kUInt32:
      return Decode<std::uint32_t>(bytes, to);
    default:
      return Decode<std::uint64_t>(bytes, to);
  }
}

}  // namespace

bool HasValues(DType dtype) { return FindDType(dtype).has_value(); }

void DecodeValues(DType dtype, ByteSpan elements, std::vector<double>& values) {
  values.resize(elements.size() / DTypeSizeBytes(dtype) * ValuesPerElement(dtype));
  double* const to = values.data();
  switch (dtype) {
    case DType::kBool:
      return DecodeBool(elements, to);
    case DType::kBf16:
      return DecodeBf16(elements, to);
    case DType::kF16:
    case DType::kComplex32:
      return Look<std::uint16_t>(dtype, elements, to);
    case DType::kF32:
    case DType::kComplex64:
      return Decode<float>(elements, to);
    case DType::kF64:
    case DType::kComplex128:
      return Decode<double>(elements, to);
    case DType::kF8E4M3Fn:
    case DType::kF8E5M2:
    case DType::kF8E4M3Fnuz:
    case DType::kF8E5M2Fnuz:
    case DType::kF8E8M0Fnu:
      return Look<std::uint8_t>(dtype, elements, to);
    case DType::kF4E2M1X2:
      return DecodeFp4(elements, to);
    default:
      return DecodeInteger(dtype, elements, to);
  }
}

}  // namespace sealpoint::internal::compare
