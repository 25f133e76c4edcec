// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_STATE_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_STATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sealpoint/dtype.h"
#include "sealpoint/region.h"
#include "tools/common/json.h"

namespace sealpoint::tools {

// Where a value lies in a state: keys of mappings, places of lists.
using PathPart = std::variant<std::string, std::int64_t>;
using ValuePath = std::vector<PathPart>;
// "model.layers.0.weight".
std::string TextOf(const ValuePath& path);

struct ForeignTensor {
  DType dtype = DType::kNone;
  Shape shape;
  std::size_t part_count = 1;
};

struct ForeignObject {
  std::string media_type;
  std::uint64_t size_bytes = 0;
};

struct ForeignFile {
  std::string name;
  std::uint64_t size_bytes = 0;
  std::string meaning;
};

// A leaf of the tree that is no tensor, and its value in short.
struct ForeignValue {
  std::string name;
  std::string brief;
};

// What a checkpoint of another format holds.
struct ForeignState {
  std::string format;  // as `sealpoint convert --to` has it
  std::string path;
  std::optional<std::uint64_t> step;
  std::map<std::string, ForeignTensor> tensors;
  Json tree;                         // spec/tree.md; a mapping
  std::vector<ForeignValue> values;  // those of the tree
  std::map<std::string, ForeignObject> objects;
  std::vector<ForeignFile> files;
  std::string digest;  // what protects the bytes of tensors, in words
  std::vector<std::string> notes;
};

// Throws Corrupt: a malformed node, a tensor that is not there, or has no place; LimitExceeded:
// long names of many.
std::vector<ForeignValue> ValuesOf(const ForeignState& state);

// The node of a tensor.
Json TensorNode(const std::string& name);
// The node of a mapping with these keys, in order.
Json MappingNode(std::vector<std::pair<std::string, Json>> entries);
// As Python's json.dumps, with sorted keys or not.
std::string PythonJson(const Json& value, bool is_sorted = false);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_STATE_H_
