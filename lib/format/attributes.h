// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_FORMAT_ATTRIBUTES_H_
#define SEALPOINT_LIB_FORMAT_ATTRIBUTES_H_

#include <string_view>

#include "sealpoint/attributes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::format {

// Checks R-ATT-02 to R-ATT-05 and the bounds that R-ATT-01 sets for one set. The offset of an error
// is relative to the set.
Status CheckAttributes(std::string_view encoded);

}  // namespace sealpoint::internal::format

#endif  // SEALPOINT_LIB_FORMAT_ATTRIBUTES_H_
