// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_LS_SELECT_H_
#define SEALPOINT_TOOLS_CKPT_LS_SELECT_H_

#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"

namespace sealpoint::tools::ls {

// What the patterns name, ascending by name; of tensors their numbers. Each is a name as it stands,
// or else a pattern of Checkpoint::MatchTensors. Errors: NotFound, which names the option for the
// other kind if that has the name; InvalidArgument (a backslash at the end).
Result<std::vector<std::size_t>> SelectTensors(const Checkpoint& checkpoint,
                                               const std::vector<std::string>& patterns);
Result<std::vector<ObjectInfo>> SelectObjects(const Checkpoint& checkpoint,
                                              const std::vector<std::string>& patterns);

}  // namespace sealpoint::tools::ls

#endif  // SEALPOINT_TOOLS_CKPT_LS_SELECT_H_
