// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_COMMON_EXIT_STATUS_H_
#define SEALPOINT_TOOLS_COMMON_EXIT_STATUS_H_

#include "sealpoint/status.h"

namespace sealpoint::tools {

// What a tool returns to the shell.
enum class ExitStatus : int {
  kValid = 0,
  kCorrupt = 1,
  // The answer of a command that asks whether something is so; corrupt is then kUnreadable.
  kDifferent = 1,
  kNonfinite = 1,
  kUncommitted = 2,
  kUnsupported = 3,
  kUnreadable = 4,  // or nothing found
  kIncomplete = 5,
  kUsage = 64,   // EX_USAGE of sysexits.h
  kOutput = 74,  // EX_IOERR: standard output could not be written
};

ExitStatus ExitStatusOf(Verdict verdict);

// The status for several paths: corrupt, incomplete, unreadable, unsupported, uncommitted and wrong
// usage win in this order.
ExitStatus Worse(ExitStatus a, ExitStatus b);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_COMMON_EXIT_STATUS_H_
