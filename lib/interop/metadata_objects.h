// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_METADATA_OBJECTS_H_
#define SEALPOINT_LIB_INTEROP_METADATA_OBJECTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "lib/safetensors/header.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

// Objects of a checkpoint in __metadata__ of a safetensors file. The keys, and the object that maps
// tensors to positions in a state (spec/tree.md), are those of the Python package.

namespace sealpoint::internal::interop {

struct NamedObject {
  std::string name;
  std::string media_type;
  Bytes bytes;
  friend bool operator==(const NamedObject&, const NamedObject&) = default;
};

// In the order in which the entries are written. `tensors` are the names of all. Errors: Corrupt
// (the object with the metadata of others is not such).
Result<safetensors::StringPairs> MetadataOfObjects(const std::vector<NamedObject>& objects,
                                                   const std::vector<std::string_view>& tensors);

// The objects of all metadata of a model, always with a tree. Of several entries with the same key
// the last one counts. Errors: Corrupt (names the object).
Result<std::vector<NamedObject>> ObjectsOfMetadata(const safetensors::StringPairs& metadata,
                                                   const std::vector<std::string_view>& tensors);

}  // namespace sealpoint::internal::interop

#endif  // SEALPOINT_LIB_INTEROP_METADATA_OBJECTS_H_
