// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_COMMON_USAGE_H_
#define SEALPOINT_TOOLS_COMMON_USAGE_H_

#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "sealpoint/status.h"
#include "tools/common/exit_status.h"

namespace sealpoint::tools {

// Adds --raise-limits, --version and --help, which shows the options as all commands do. `program`:
// "ckpt ls".
void AddStandardFlags(CLI::App& app, const std::string& program);

// The subcommand that was called, else the program itself, and how messages name it: "ckpt ls".
const CLI::App& ChosenOf(const CLI::App& app);
std::string ProgramName(const CLI::App& app);

// Parses. What to return at once: after --help and --version, and after a usage error, which is
// reported (UsageError).
std::optional<ExitStatus> Parse(CLI::App& app, int argc, const char* const* argv);

// Reports wrong arguments: on standard error; if --json is among the arguments also as a document.
ExitStatus UsageError(const CLI::App& app, int argc, const char* const* argv,
                      std::string_view message);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_COMMON_USAGE_H_
