// SPDX-License-Identifier: Apache-2.0
#include "tools/common/hint.h"

#include <utility>

#include "sealpoint/interop.h"

namespace sealpoint::tools {

std::string HintForCheckpoint(const std::string& path) {
  return DescribePlace(path, {.opens_series = "; ckpt verify --series checks all of them"}).text;
}

std::string HintForSeries(const std::string& path, std::string_view otherwise) {
  PlaceDescription found = DescribePlace(path);
  if (found.kind == PlaceKind::kSeries) return "";
  if (found.kind != PlaceKind::kCheckpoint) return std::move(found).text;
  return "it is a checkpoint; " + std::string(otherwise);
}

}  // namespace sealpoint::tools
