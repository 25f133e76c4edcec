// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_UTF8_H_
#define SEALPOINT_LIB_BASE_UTF8_H_

#include <string_view>

namespace sealpoint::internal {

// True for well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF) without
// control characters (U+0000–U+001F, U+007F–U+009F).
bool IsPrintableUtf8(std::string_view text);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_UTF8_H_
