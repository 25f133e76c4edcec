// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_VALUES_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_VALUES_H_

#include "sealpoint/checkpoint.h"
#include "tools/ckpt-inspect/options.h"
#include "tools/common/json.h"

namespace sealpoint::tools {

// Prints elements of the tensors that Options::patterns name, in row-major order of Options::box;
// all of them, or the first 256 of each tensor and how many were left out. What is printed was
// verified before. Errors: NotFound, InvalidArgument (box), those of Checkpoint::Read.
Status PrintValues(const Checkpoint& checkpoint, const Options& options);
Status PrintValuesJson(const Checkpoint& checkpoint, const Options& options, JsonWriter& json);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_VALUES_H_
