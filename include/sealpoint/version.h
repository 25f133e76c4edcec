// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_VERSION_H_
#define SEALPOINT_VERSION_H_

#include <cstdint>
#include <string_view>

#include "sealpoint/export.h"

namespace sealpoint {

// Version of the format that this build writes; 0 is the draft. Counted apart from the package.
inline constexpr std::uint32_t kFormatVersionWritten = 0;

// Version of the package, "0.1.0": that of the library that is linked, not of the headers.
SEALPOINT_EXPORT std::string_view VersionString();

}  // namespace sealpoint

#endif  // SEALPOINT_VERSION_H_
