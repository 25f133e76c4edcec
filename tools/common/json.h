// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_COMMON_JSON_H_
#define SEALPOINT_TOOLS_COMMON_JSON_H_

#include <cstdint>

#include <nlohmann/json.hpp>

#include "sealpoint/id.h"
#include "sealpoint/status.h"

namespace sealpoint::tools {

// Keys in the order in which they were added: stable output.
using Json = nlohmann::ordered_json;

// null for kNoStep and for the zero id.
Json StepToJson(std::uint64_t step);
Json IdToJson(const Id128& id);
// code, message and those parts of the place that are known.
Json StatusToJson(const Status& status);

// Two spaces of indentation; bytes that are not UTF-8 (in a path) are replaced.
void PrintJson(const Json& json);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_COMMON_JSON_H_
