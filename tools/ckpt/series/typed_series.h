// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_SERIES_TYPED_SERIES_H_
#define SEALPOINT_TOOLS_CKPT_SERIES_TYPED_SERIES_H_

#include <string>

#include "sealpoint/status.h"
#include "tools/common/hint.h"

// What the commands share that change a series.

namespace sealpoint::tools {

inline constexpr const char* kDryRunHint = "nothing was changed; --yes does it";
// For HintForSeries.
inline constexpr const char* kSeriesAbove = "its series is the directory above";

// Why there is nothing to do at a path that somebody typed: for the library a series may be empty,
// or not exist.
Status NoSeries(const std::string& path);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_SERIES_TYPED_SERIES_H_
