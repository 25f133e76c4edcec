// SPDX-License-Identifier: Apache-2.0
#include "lib/base/utf8.h"

namespace sealpoint::internal {
namespace {

struct Lead {
  std::size_t size;   // bytes of the sequence, 0 if the lead byte is illegal
  char32_t bits;      // payload bits of the lead byte
  char32_t smallest;  // code point that needs this size
};

Lead Classify(unsigned char byte) {
  if (byte < 0x80) return {1, byte, 0};
  if (byte >= 0xc2 && byte < 0xe0) return {2, byte & 0x1fu, 0x80};
  if (byte >= 0xe0 && byte < 0xf0) return {3, byte & 0x0fu, 0x800};
  if (byte >= 0xf0 && byte < 0xf5) return {4, byte & 0x07u, 0x10000};
  return {0, 0, 0};
}

bool IsControl(char32_t point) { return point < 0x20 || (point >= 0x7f && point <= 0x9f); }

template <typename Predicate>
bool HasOnlyCodePoints(std::string_view text, const Predicate& is_allowed) {
  while (!text.empty()) {
    const CodePoint point = DecodeCodePoint(text);
    if (point.size == 0 || !is_allowed(point.value)) return false;
    text.remove_prefix(point.size);
  }
  return true;
}

}  // namespace

CodePoint DecodeCodePoint(std::string_view text) {
  if (text.empty()) return {};
  const Lead lead = Classify(static_cast<unsigned char>(text.front()));
  if (lead.size == 0 || lead.size > text.size()) return {};
  char32_t point = lead.bits;
  for (std::size_t i = 1; i < lead.size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0u) != 0x80u) return {};
    point = (point << 6) | (byte & 0x3fu);
  }
  const bool is_surrogate = point >= 0xd800 && point <= 0xdfff;
  if (point < lead.smallest || point > 0x10ffff || is_surrogate) return {};
  return {.value = point, .size = lead.size};
}

bool IsUtf8(std::string_view text) {
  return HasOnlyCodePoints(text, [](char32_t) { return true; });
}

bool IsPrintableUtf8(std::string_view text) {
  return HasOnlyCodePoints(text, [](char32_t point) { return !IsControl(point); });
}

}  // namespace sealpoint::internal
