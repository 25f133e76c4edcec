// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_BOX_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_BOX_H_

#include <string_view>

#include "sealpoint/region.h"

namespace sealpoint::tools {

// "0:4,7" of a tensor of this shape, also as regions are printed: "[0:4, 7]". Per dimension a range
// (its end not included; a missing side is that of the shape) or one index; dimensions that are
// left out at the end are whole. Errors: InvalidArgument (not of this form, more dimensions than
// the shape, empty, outside).
Result<Box> ParseBox(std::string_view text, const Shape& shape);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_BOX_H_
