// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_VERIFY_RUN_H_
#define SEALPOINT_TOOLS_CKPT_VERIFY_RUN_H_

#include "tools/ckpt-verify/options.h"
#include "tools/common/exit_status.h"

namespace sealpoint::tools {

// Checks all paths and series, and prints.
ExitStatus RunVerify(const Options& options);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_VERIFY_RUN_H_
