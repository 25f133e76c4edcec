// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_OBJECT_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_OBJECT_H_

#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "tools/common/json.h"

namespace sealpoint::tools {

// Writes the verified bytes of the one object that matches to standard output, and nothing else.
// Errors: NotFound, InvalidArgument (several match; bytes that are no text would go to a terminal),
// those of Checkpoint::ReadObject.
Status WriteObject(const Checkpoint& checkpoint, const std::vector<std::string>& patterns);

// Names, media types and sizes of all objects that match. Errors: NotFound.
Status PrintObjectsJson(const Checkpoint& checkpoint, const std::vector<std::string>& patterns,
                        JsonWriter& json);

void WriteObject(JsonWriter& json, const ObjectInfo& object);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_OBJECT_H_
