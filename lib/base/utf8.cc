// SPDX-License-Identifier: Apache-2.0
#include "lib/base/utf8.h"

#include <cstddef>
#include <cstdint>

namespace sealpoint::internal {
namespace {

struct Lead {
  std::size_t length;     // bytes of the sequence, 0 where the lead byte is illegal
  std::uint32_t bits;     // payload bits of the lead byte
  std::uint32_t minimum;  // smallest code point that needs this length
};

Lead Classify(unsigned char byte) {
  if (byte < 0x80) return {1, byte, 0};
  if (byte >= 0xc2 && byte < 0xe0) return {2, byte & 0x1fu, 0x80};
  if (byte >= 0xe0 && byte < 0xf0) return {3, byte & 0x0fu, 0x800};
  if (byte >= 0xf0 && byte < 0xf5) return {4, byte & 0x07u, 0x10000};
  return {0, 0, 0};
}

bool IsAllowed(std::uint32_t point, std::uint32_t minimum) {
  if (point < minimum || point > 0x10ffff) return false;
  if (point >= 0xd800 && point <= 0xdfff) return false;
  const bool is_control = point < 0x20 || (point >= 0x7f && point <= 0x9f);
  return !is_control;
}

}  // namespace

bool IsPrintableUtf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Lead lead = Classify(static_cast<unsigned char>(text[at]));
    if (lead.length == 0 || lead.length > text.size() - at) return false;
    std::uint32_t point = lead.bits;
    for (std::size_t i = 1; i < lead.length; ++i) {
      const auto byte = static_cast<unsigned char>(text[at + i]);
      if ((byte & 0xc0u) != 0x80u) return false;
      point = (point << 6) | (byte & 0x3fu);
    }
    if (!IsAllowed(point, lead.minimum)) return false;
    at += lead.length;
  }
  return true;
}

}  // namespace sealpoint::internal
