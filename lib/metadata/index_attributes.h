// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_INDEX_ATTRIBUTES_H_
#define SEALPOINT_LIB_METADATA_INDEX_ATTRIBUTES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/attributes.h"
#include "sealpoint/id.h"

namespace sealpoint::internal::metadata {

// The fields of an index that describe the checkpoint as a whole.
struct IndexAttributes {
  std::uint64_t created_unix_ns = 0;
  std::vector<std::pair<std::string, std::uint32_t>> mesh{};
  std::vector<std::pair<std::string, std::string>> provenance{};  // any order, unique keys
  std::optional<BaseRef> base{};
  Attributes attributes{};
};

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_INDEX_ATTRIBUTES_H_
