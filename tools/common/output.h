// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_COMMON_OUTPUT_H_
#define SEALPOINT_TOOLS_COMMON_OUTPUT_H_

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "tools/common/exit_status.h"

// Standard output of a tool. All of it goes through here, so that what could not be written is an
// error with an exit status of its own. One thread at a time.

namespace sealpoint::tools {

// To be called first: puts a file that cannot be written in the place of each closed standard
// stream, so that no file of a checkpoint takes its number.
void OpenStandardStreams();

// Buffered but on a terminal. After an error nothing more is written.
void Write(std::string_view text);
void Flush();
// True if some of the output could not be written: further work is of no use to anybody.
bool OutputFailed();

template <typename... Args>
void Print(fmt::format_string<Args...> format, Args&&... args) {
  Write(fmt::format(format, std::forward<Args>(args)...));
}

// "ckpt verify: MESSAGE" on standard error, whose own errors cannot be reported anywhere.
void PrintError(std::string_view program, std::string_view message);

// To be called last: flushes and closes standard output. Yields `status`, or kOutput after an
// error, which is then reported on standard error.
ExitStatus FinishOutput(std::string_view program, ExitStatus status);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_COMMON_OUTPUT_H_
