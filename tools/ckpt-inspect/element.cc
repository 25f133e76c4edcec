// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt-inspect/element.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace sealpoint::tools {
namespace {

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

}  // namespace

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

}  // namespace sealpoint::tools
