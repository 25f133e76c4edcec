// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/version.h"

namespace sealpoint {
namespace {

// The build defines SEALPOINT_PROJECT_* from the version of the CMake project, which packages
// carry.
static_assert(SEALPOINT_PROJECT_MAJOR == SEALPOINT_VERSION_MAJOR &&
                  SEALPOINT_PROJECT_MINOR == SEALPOINT_VERSION_MINOR &&
                  SEALPOINT_PROJECT_PATCH == SEALPOINT_VERSION_PATCH,
              "sealpoint/version.h and project(VERSION) in CMakeLists.txt differ");

}  // namespace

std::string_view VersionString() { return SEALPOINT_PROJECT_VERSION; }

}  // namespace sealpoint
