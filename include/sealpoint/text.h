// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TEXT_H_
#define SEALPOINT_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "sealpoint/export.h"

// How the library and its tools write for people. Thread safety: all functions.

namespace sealpoint {

// The text as one line that cannot write to a terminal, whatever it holds: names in checkpoints and
// in directories come from strangers. What could hide or move other text is escaped: bytes that are
// not UTF-8 and the ASCII controls as \xNN, other controls, bidirectional controls, line separators
// and all that Unicode calls default-ignorable (zero-width characters, fillers, variation
// selectors, tags) as \u{NNNN}. All else stays, also backslashes, so that applying it twice changes
// nothing. At most eight times as long as `text`.
SEALPOINT_EXPORT std::string Printable(std::string_view text);

// "512 B", "15.4 MB": decimal units, as disks are sold.
SEALPOINT_EXPORT std::string BytesText(std::uint64_t bytes);

}  // namespace sealpoint

#endif  // SEALPOINT_TEXT_H_
