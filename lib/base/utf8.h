// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_UTF8_H_
#define SEALPOINT_LIB_BASE_UTF8_H_

#include <cstddef>
#include <string_view>

namespace sealpoint::internal {

struct CodePoint {
  char32_t value = 0;
  std::size_t size = 0;  // bytes of its sequence; 0 if the text does not begin with one
};

// The code point with which the text begins, as RFC 3629 has it: no overlong forms, no surrogates,
// at most U+10FFFF.
CodePoint DecodeCodePoint(std::string_view text);

// True for well-formed UTF-8.
bool IsUtf8(std::string_view text);

// True for well-formed UTF-8 without control characters (U+0000–U+001F, U+007F–U+009F).
bool IsPrintableUtf8(std::string_view text);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_UTF8_H_
