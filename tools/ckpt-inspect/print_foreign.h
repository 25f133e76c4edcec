// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_PRINT_FOREIGN_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_PRINT_FOREIGN_H_

#include <vector>

#include "sealpoint/interop.h"
#include "tools/common/json.h"

namespace sealpoint::tools {

// As `sealpoint ls` prints it.
void PrintForeign(const ForeignCheckpoint& state, const std::vector<ForeignValue>& values);
void PrintForeignJson(const ForeignCheckpoint& state, const std::vector<ForeignValue>& values,
                      JsonWriter& json);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_PRINT_FOREIGN_H_
