// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_COMMON_HINT_H_
#define SEALPOINT_TOOLS_COMMON_HINT_H_

#include <string>
#include <string_view>

namespace sealpoint::tools {

// Describes what is at a path where no checkpoint (no series) was found, by DescribePlace of
// interop.h. Empty if nothing is to be said.
std::string HintForCheckpoint(const std::string& path);
// `otherwise`: what to do with a checkpoint that was given as a series.
std::string HintForSeries(const std::string& path,
                          std::string_view otherwise = "pass it without --series");

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_COMMON_HINT_H_
