// SPDX-License-Identifier: Apache-2.0
#include "lib/safetensors/json_text.h"

#include <algorithm>

#include "lib/base/utf8.h"

namespace sealpoint::internal::safetensors {
namespace {

void AppendUnit(std::string& out, char32_t unit) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out.append("\\u");
  for (int shift = 12; shift >= 0; shift -= 4) out.push_back(kDigits[unit >> shift & 0xf]);
}

void AppendEscaped(std::string& out, char32_t point) {
  if (point < 0x10000) return AppendUnit(out, point);
  AppendUnit(out, 0xd800 + ((point - 0x10000) >> 10));
  AppendUnit(out, 0xdc00 + ((point - 0x10000) & 0x3ff));
}

}  // namespace

void AppendJson(std::string& out, std::string_view text, JsonCharacters characters) {
  constexpr std::string_view kNamed = "\"\\\b\f\n\r\t";
  constexpr std::string_view kNames = "\"\\bfnrt";
  out.push_back('"');
  while (!text.empty()) {
    const CodePoint point = DecodeCodePoint(text);
    const std::size_t size = std::max<std::size_t>(point.size, 1);
    const std::size_t named = size == 1 ? kNamed.find(text.front()) : kNamed.npos;
    if (named != kNamed.npos) {
      out.push_back('\\');
      out.push_back(kNames[named]);
    } else if (point.value < 0x20 || (point.value > 0x7e && characters == JsonCharacters::kAscii)) {
      AppendEscaped(out, point.value);
    } else {
      out.append(text.substr(0, size));
    }
    text.remove_prefix(size);
  }
  out.push_back('"');
}

}  // namespace sealpoint::internal::safetensors
