// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/bytes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <vector>

#include "lib/base/errors.h"
#include "lib/interop/base64.h"

namespace sealpoint::internal::foreign {
namespace {

constexpr std::array<std::uint32_t, 256> MakeCrcTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
    table[i] = crc;
  }
  return table;
}

// Bytes of the sequence that begins with this one; 0 if none does.
std::size_t SequenceSize(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

}  // namespace

std::uint64_t Number(std::string_view bytes, std::size_t offset, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[offset + i - 1]);
  }
  return value;
}

std::uint32_t Crc32(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = MakeCrcTable();
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) {
    crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 255];
  }
  return ~crc;
}

std::string Base64(std::string_view bytes) {
  return interop::EncodeBase64(std::as_bytes(std::span(bytes)));
}

bool IsText(std::string_view bytes, bool may_have_surrogates) {
  constexpr std::array<std::uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  for (std::size_t at = 0; at < bytes.size();) {
    const auto lead = static_cast<unsigned char>(bytes[at]);
    const std::size_t size = SequenceSize(lead);
    if (size == 0 || size > bytes.size() - at) return false;
    std::uint32_t point = size == 1 ? lead : lead & (0x7fu >> size);
    for (std::size_t i = 1; i < size; ++i) {
      const auto byte = static_cast<unsigned char>(bytes[at + i]);
      if ((byte & 0xc0) != 0x80) return false;
      point = point << 6 | (byte & 0x3f);
    }
    const bool is_surrogate = point >= 0xd800 && point < 0xe000;
    if (point < kSmallest[size] || point > 0x10ffff) return false;
    if (is_surrogate && !may_have_surrogates) return false;
    at += size;
  }
  return true;
}

std::string Padded(std::uint64_t number, std::size_t width) {
  const std::string digits = std::to_string(number);
  return std::string(width - std::min(width, digits.size()), '0') + digits;
}

std::string HexText(std::uint32_t number, std::size_t width) {
  std::string digits;
  for (std::size_t i = width; i > 0; --i) {
    digits.push_back("0123456789abcdef"[number >> (4 * (i - 1)) & 0xf]);
  }
  return digits;
}

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer{};
  const auto end =
      std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::scientific).ptr;
  const std::string_view shortest(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t e = shortest.find('e');
  int exponent = 0;
  const char* const first = shortest.data() + e + (shortest[e + 1] == '+' ? 2 : 1);
  std::from_chars(first, shortest.data() + shortest.size(), exponent);
  if (exponent < -4 || exponent >= 16) {
    return StrCat(shortest.substr(0, e), exponent < 0 ? "e-" : "e+",
                  Padded(static_cast<std::uint64_t>(std::abs(exponent)), 2));
  }
  const auto fixed = std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::fixed);
  std::string text(buffer.data(), fixed.ptr);
  if (text.find('.') == text.npos) text += ".0";
  return text;
}

std::string QuotedText(std::string_view text) {
  const bool is_double = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = is_double ? '"' : '\'';
  std::string quoted(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  return quoted + quote;
}

std::string DecimalText(std::string_view bytes) {
  const bool is_negative = !bytes.empty() && static_cast<unsigned char>(bytes.back()) >= 0x80;
  std::vector<unsigned> magnitude;
  unsigned carry = is_negative ? 1 : 0;
  for (const char byte : bytes) {
    const unsigned plain = static_cast<unsigned char>(byte);
    const unsigned sum = (is_negative ? 255 - plain : plain) + carry;
    magnitude.push_back(sum & 255);
    carry = sum >> 8;
  }
  std::string digits;
  while (!magnitude.empty()) {
    unsigned rest = 0;
    for (std::size_t i = magnitude.size(); i > 0; --i) {
      const unsigned value = rest << 8 | magnitude[i - 1];
      magnitude[i - 1] = value / 10;
      rest = value % 10;
    }
    digits.push_back(static_cast<char>('0' + rest));
    while (!magnitude.empty() && magnitude.back() == 0) magnitude.pop_back();
  }
  if (digits.empty()) digits.push_back('0');
  if (is_negative) digits.push_back('-');
  std::ranges::reverse(digits);
  return digits;
}

}  // namespace sealpoint::internal::foreign
