// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_BYTES_H_
#define SEALPOINT_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/export.h"

namespace sealpoint {

// Borrowed bytes. A function that accepts a span documents how long the caller must keep the memory
// alive.
using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;
using Bytes = std::vector<std::byte>;

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

inline ByteSpan AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view AsText(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns `text` as one line that is safe to print on a terminal. Use this function for untrusted
// names in checkpoints and directories. It escapes all characters that could hide or move other
// text. ASCII controls, and bytes that are not valid UTF-8, become \xNN. Other controls,
// bidirectional controls, line separators and all default-ignorable Unicode characters (zero-width
// characters, fillers, variation selectors, tags) become \u{NNNN}. All other characters, including
// backslashes, are unchanged. A second call therefore does not change the result of the first call.
// The result is at most eight times as long as `text`. Thread-safe.
SEALPOINT_EXPORT std::string Printable(std::string_view text);

// Formats a size in decimal units, as disk vendors do, for example "512 B" or "15.4 MB".
// Thread-safe.
SEALPOINT_EXPORT std::string BytesText(std::uint64_t bytes);

}  // namespace sealpoint

#endif  // SEALPOINT_BYTES_H_
