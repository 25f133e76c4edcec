// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_COMMON_USAGE_H_
#define SEALPOINT_TOOLS_COMMON_USAGE_H_

#include <optional>

#include <CLI/CLI.hpp>

#include "tools/common/exit_status.h"

namespace sealpoint::tools {

// Adds --version.
void AddVersionFlag(CLI::App& app);

// Parses. What to return at once: after --help and --version, and after a usage error, which is on
// stderr.
std::optional<ExitStatus> Parse(CLI::App& app, int argc, const char* const* argv);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_COMMON_USAGE_H_
