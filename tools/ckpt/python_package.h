// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_PYTHON_PACKAGE_H_
#define SEALPOINT_TOOLS_CKPT_PYTHON_PACKAGE_H_

#include <span>

#include "tools/common/exit_status.h"

namespace sealpoint::tools {

// Becomes the command of the Python package, with these words, in the `python3` that PATH leads to.
// Returns only if that has no such package, which is reported.
ExitStatus RunInPython(std::span<const char* const> words);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_PYTHON_PACKAGE_H_
