// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>

#include "lib/base/utf8.h"
#include "sealpoint/bytes.h"

namespace sealpoint {
namespace {

struct PointRange {
  char32_t first;
  char32_t last;
};

// Controls (Cc beyond ASCII), Default_Ignorable_Code_Point of Unicode 15
// (DerivedCoreProperties.txt), the line and paragraph separators and the interlinear annotation
// characters.
constexpr std::array kHidden = {
    PointRange{0x0080, 0x009f},   PointRange{0x00ad, 0x00ad},   PointRange{0x034f, 0x034f},
    PointRange{0x061c, 0x061c},   PointRange{0x115f, 0x1160},   PointRange{0x17b4, 0x17b5},
    PointRange{0x180b, 0x180f},   PointRange{0x200b, 0x200f},   PointRange{0x2028, 0x202e},
    PointRange{0x2060, 0x206f},   PointRange{0x3164, 0x3164},   PointRange{0xfe00, 0xfe0f},
    PointRange{0xfeff, 0xfeff},   PointRange{0xffa0, 0xffa0},   PointRange{0xfff0, 0xfffb},
    PointRange{0x1bca0, 0x1bca3}, PointRange{0x1d173, 0x1d17a}, PointRange{0xe0000, 0xe0fff}};

bool IsHidden(char32_t point) {
  if (point < 0x20 || point == 0x7f) return true;
  return std::any_of(kHidden.begin(), kHidden.end(), [point](const PointRange& range) {
    return range.first <= point && point <= range.last;
  });
}

std::string Hex(char32_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  do {
    digits.insert(digits.begin(), kDigits[value % 16]);
    value /= 16;
  } while (value != 0);
  return digits;
}

void AppendByte(std::string& out, unsigned char byte) {
  out.append(byte < 16 ? "\\x0" : "\\x").append(Hex(byte));
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const internal::CodePoint point = internal::DecodeCodePoint(text);
    const auto byte = static_cast<unsigned char>(text.front());
    if (point.size == 0 || (point.size == 1 && IsHidden(byte))) {
      AppendByte(out, byte);
    } else if (IsHidden(point.value)) {
      out.append("\\u{").append(Hex(point.value)).append("}");
    } else {
      out.append(text.substr(0, point.size));
    }
    text.remove_prefix(std::max<std::size_t>(point.size, 1));
  }
  return out;
}

std::string BytesText(std::uint64_t bytes) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return std::to_string(bytes) + " B";
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 999950 would be printed as 1000.0 of the smaller unit.
  for (; value >= 999.95 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, kUnits.at(unit));
  return text.data();
}

}  // namespace sealpoint
