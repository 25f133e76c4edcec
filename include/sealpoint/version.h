// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_VERSION_H_
#define SEALPOINT_VERSION_H_

#include <cstdint>
#include <string_view>

#include "sealpoint/export.h"

// Version of these headers. To compare versions, use SEALPOINT_VERSION, which is 10000 * major +
// 100 * minor + patch. For example, `#if SEALPOINT_VERSION >= 10000` is true for 1.0.0, its release
// candidates, and later versions.
#define SEALPOINT_VERSION_MAJOR 1
#define SEALPOINT_VERSION_MINOR 0
#define SEALPOINT_VERSION_PATCH 0
#define SEALPOINT_VERSION_PRERELEASE ""  // of a release candidate; empty in a release
#define SEALPOINT_VERSION \
  (SEALPOINT_VERSION_MAJOR * 10000 + SEALPOINT_VERSION_MINOR * 100 + SEALPOINT_VERSION_PATCH)

namespace sealpoint {

// Version of the format that this build writes. Independent of the package version.
inline constexpr std::uint32_t kFormatVersionWritten = 1;

// Returns the version of the linked library, for example "1.0.0" or "1.0.0-rc2". The version of a
// shared library may differ from the version of the headers. The text is static. Thread-safe.
SEALPOINT_EXPORT std::string_view VersionString();

// Returns the vector instructions used for digests and for the byte split on this CPU, for example
// "XXH3 by NEON, byte split by NEON". The text is static. Thread-safe.
SEALPOINT_EXPORT std::string_view InstructionSets();

}  // namespace sealpoint

#endif  // SEALPOINT_VERSION_H_
