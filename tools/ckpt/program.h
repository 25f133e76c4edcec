// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_PROGRAM_H_
#define SEALPOINT_TOOLS_CKPT_PROGRAM_H_

#include <optional>
#include <span>

#include "tools/common/exit_status.h"

namespace sealpoint::tools {

// Runs `ckpt` with these words, those behind the name of the program, to its end: standard output
// is flushed and closed. Nothing if they begin with a command of the Python package; then nothing
// was done. Once in a process.
std::optional<ExitStatus> RunProgram(std::span<const char* const> words);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_PROGRAM_H_
