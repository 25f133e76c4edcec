// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_COMMON_TEXT_H_
#define SEALPOINT_TOOLS_COMMON_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sealpoint/id.h"

// How the tools write numbers and names for people.

namespace sealpoint::tools {

// "512 B", "15.4 MB": decimal units, as disks are sold.
std::string FormatBytes(std::uint64_t bytes);
// "4 MiB", "64 KiB": binary units, for sizes that are powers of two from 1 KiB on.
std::string FormatPowerOfTwo(std::uint64_t bytes);
// "1 blob", "4 blobs".
std::string FormatCount(std::uint64_t count, std::string_view noun);
// "0.02 s", "3:05", "2:10:07".
std::string FormatSeconds(double seconds);
// "2026-11-21 08:19:03 UTC".
std::string FormatTime(std::uint64_t unix_ns);
// "none" for kNoStep.
std::string FormatStep(std::uint64_t step);
// "none" for zero.
std::string FormatParent(const AttemptId& parent);

// The text with control characters as \xNN: a file's name must not write to the terminal.
std::string Printable(std::string_view text);
// Columns on a terminal, taking each code point for one.
std::size_t Width(std::string_view text);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_COMMON_TEXT_H_
