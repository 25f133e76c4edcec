// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_COMMON_LIMITS_H_
#define SEALPOINT_TOOLS_COMMON_LIMITS_H_

#include <string>

#include <CLI/CLI.hpp>

#include "sealpoint/limits.h"
#include "sealpoint/status.h"

namespace sealpoint::tools {

// Adds --raise-limits.
void AddRaiseLimits(CLI::App& app);

// What every command reads with: the library's limits, as often as --raise-limits says.
const Limits& TypedLimits();

// Names the option, if the error is of a limit; else empty.
std::string HintForLimit(const Status& error);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_COMMON_LIMITS_H_
