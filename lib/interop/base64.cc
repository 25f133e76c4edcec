// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/base64.h"

#include <cstdint>

namespace sealpoint::internal::interop {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string EncodeBase64(ByteSpan bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    const std::size_t count = bytes.size() - at < 3 ? bytes.size() - at : 3;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < count ? std::to_integer<std::uint32_t>(bytes[at + i]) : 0);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text.push_back(i <= count ? kDigits[group >> (18 - 6 * i) & 63] : '=');
    }
  }
  return text;
}

std::optional<Bytes> DecodeBase64(std::string_view text) {
  Bytes bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  int bits = 0;
  const std::size_t end = text.find('=');
  for (const char digit : text.substr(0, end)) {
    group = group << 6 | static_cast<std::uint32_t>(kDigits.find(digit));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<std::byte>(group >> bits & 255));
  }
  // Whatever is no digit, bits that are left over, and the padding: only one text is right.
  if (EncodeBase64(bytes) != text) return std::nullopt;
  return bytes;
}

}  // namespace sealpoint::internal::interop
