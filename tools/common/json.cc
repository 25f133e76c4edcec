// SPDX-License-Identifier: Apache-2.0
#include "tools/common/json.h"

#include <fmt/format.h>

#include <string>

namespace sealpoint::tools {

Json StepToJson(std::uint64_t step) { return step == kNoStep ? Json() : Json(step); }

Json IdToJson(const Id128& id) { return id.is_zero() ? Json() : Json(id.ToHex()); }

Json StatusToJson(const Status& status) {
  const Place& place = status.place();
  Json json = {{"code", std::string(CodeName(status.code()))}};
  if (!place.rule.empty()) json["rule"] = place.rule;
  if (!place.path.empty()) json["path"] = place.path;
  if (place.offset) json["offset"] = *place.offset;
  if (!place.tensor.empty()) json["tensor"] = place.tensor;
  json["message"] = status.message();
  return json;
}

void PrintJson(const Json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace sealpoint::tools
