// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_COMMON_TERMINAL_H_
#define SEALPOINT_TOOLS_COMMON_TERMINAL_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "sealpoint/status.h"

namespace sealpoint::tools {

bool StdoutIsTerminal();
// The width of the terminal that stdout is, at least 40; else 80.
std::size_t OutputColumns();

// The text in the colour of the verdict, if stdout is a terminal and NO_COLOR is not set
// (https://no-color.org).
std::string Coloured(std::string_view text, Verdict verdict);
// The text in bold, likewise.
std::string Bold(std::string_view text);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_COMMON_TERMINAL_H_
