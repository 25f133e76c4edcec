// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_VERSION_H_
#define SEALPOINT_VERSION_H_

#include <cstdint>
#include <string_view>

#include "sealpoint/export.h"

// Version of these headers. SEALPOINT_VERSION is one number to compare with, 10000 * major +
// 100 * minor + patch: #if SEALPOINT_VERSION >= 100 is "0.1.0 or later".
#define SEALPOINT_VERSION_MAJOR 0
#define SEALPOINT_VERSION_MINOR 1
#define SEALPOINT_VERSION_PATCH 0
#define SEALPOINT_VERSION \
  (SEALPOINT_VERSION_MAJOR * 10000 + SEALPOINT_VERSION_MINOR * 100 + SEALPOINT_VERSION_PATCH)

namespace sealpoint {

// Version of the format that this build writes; 0 is the draft. Counted apart from the package.
inline constexpr std::uint32_t kFormatVersionWritten = 0;

// Version of the library that is linked, "0.1.0". With a shared library it may be another one than
// that of the headers. The text is static. Thread-safe.
SEALPOINT_EXPORT std::string_view VersionString();

}  // namespace sealpoint

#endif  // SEALPOINT_VERSION_H_
