// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/version.h"

namespace sealpoint {

std::string_view VersionString() { return SEALPOINT_VERSION; }

}  // namespace sealpoint
