// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TEXT_H_
#define SEALPOINT_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "sealpoint/export.h"

// Text output of the library and its tools for people. Thread safety: all functions.

namespace sealpoint {

// Makes any text safe to print as one terminal line, for untrusted names in checkpoints and
// directories. Characters that could hide or move other text are escaped. Bytes that are not UTF-8
// and ASCII controls become \xNN. Other controls, bidirectional controls, line separators and all
// default-ignorable characters of Unicode (zero-width characters, fillers, variation selectors,
// tags) become \u{NNNN}. Everything else, including backslashes, is unchanged, so applying it twice
// has no further effect. The result is at most eight times as long as `text`.
SEALPOINT_EXPORT std::string Printable(std::string_view text);

// "512 B", "15.4 MB": decimal units, as used for disks.
SEALPOINT_EXPORT std::string BytesText(std::uint64_t bytes);

}  // namespace sealpoint

#endif  // SEALPOINT_TEXT_H_
