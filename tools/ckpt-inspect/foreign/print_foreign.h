// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_PRINT_FOREIGN_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_PRINT_FOREIGN_H_

#include "tools/ckpt-inspect/foreign/state.h"
#include "tools/common/json.h"

namespace sealpoint::tools {

// As `sealpoint ls` prints it.
void PrintForeign(const ForeignState& state);
void PrintForeignJson(const ForeignState& state, JsonWriter& json);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_PRINT_FOREIGN_H_
