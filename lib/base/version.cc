// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/version.h"

namespace sealpoint {
namespace {

// The build defines SEALPOINT_PROJECT_* from the version of the CMake project, which packages
// carry.
static_assert(
    SEALPOINT_PROJECT_MAJOR == SEALPOINT_VERSION_MAJOR,
    "sealpoint/version.h and project(VERSION) in CMakeLists.txt differ in the major part");
static_assert(
    SEALPOINT_PROJECT_MINOR == SEALPOINT_VERSION_MINOR,
    "sealpoint/version.h and project(VERSION) in CMakeLists.txt differ in the minor part");
static_assert(SEALPOINT_PROJECT_PATCH == SEALPOINT_VERSION_PATCH,
              "sealpoint/version.h and project(VERSION) in CMakeLists.txt differ in the patch");
static_assert(std::string_view(SEALPOINT_PROJECT_PRERELEASE) ==
                  std::string_view(SEALPOINT_VERSION_PRERELEASE),
              "sealpoint/version.h and SEALPOINT_PRERELEASE in CMakeLists.txt differ");

}  // namespace

std::string_view VersionString() { return SEALPOINT_PROJECT_VERSION; }

}  // namespace sealpoint
