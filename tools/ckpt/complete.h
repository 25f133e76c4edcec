// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_COMPLETE_H_
#define SEALPOINT_TOOLS_CKPT_COMPLETE_H_

#include <span>

#include <CLI/CLI.hpp>

namespace sealpoint::tools {

// For the completion files of shells: prints what may stand in the place of the last word, one per
// line, with a tab and a description behind it. A line ":" stands for the names of files.
void Complete(const CLI::App& app, std::span<const char* const> words);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_COMPLETE_H_
