// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_TORCH_VALUES_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_TORCH_VALUES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ckpt-inspect/foreign/pickle.h"
#include "tools/ckpt-inspect/foreign/state.h"
#include "tools/ckpt-inspect/foreign/torch_zip.h"

namespace sealpoint::tools {

// A tensor within a storage: begin and strides in elements.
struct StoredTensor {
  std::string key;
  std::uint64_t storage_size = 0;  // in bytes
  DType dtype = DType::kNone;
  std::uint64_t begin = 0;
  Shape shape;
  Shape strides;
  friend auto operator<=>(const StoredTensor&, const StoredTensor&) = default;
};

// The key of a node that is no plain mapping: what kind it is of.
inline constexpr const char* kNodeKind = "$";

// Whether a function of this name makes a tensor, or a parameter of one.
bool MakesTensor(std::string_view function);

// Makes a node of spec/tree.md of the value of an archive, at a path of the state, to which its
// tensors are added. Values of classes without a form are left out, and noted. Throws Failure.
class TorchValues {
 public:
  TorchValues(const TorchZip& archive, ForeignState& state) : archive_(archive), state_(state) {}

  Json Node(const Pickled& value, const ValuePath& path);

 private:
  struct Unknown {  // a class that has no form
    std::string name;
  };
  struct Entries {
    std::vector<std::pair<Json, Json>> nodes;
    std::map<std::string, std::size_t> positions;  // by key
  };

  Json Plain(const Pickled& value, const ValuePath& path);
  Json Items(const PickledItems& items, const ValuePath& path);
  Json Mapping(const PickledPairs& pairs, const ValuePath& path);
  void AddEntry(const Pickled& key, const Pickled& value, const ValuePath& path, Entries& entries);
  Json Set(const PickledItems& items, bool is_frozen, const ValuePath& path);
  Json Object(const Pickled& value, const ValuePath& path);
  Json KnownObject(const Pickled& value, const ValuePath& path);
  Json Ordered(const Pickled& value, const ValuePath& path);
  Json Namespace(const Pickled& value, const ValuePath& path);
  Json Builtin(const std::string& name, const PickledItems& args, const ValuePath& path);
  Json Encoded(const PickledItems& args) const;
  Json Array(const Pickled& value) const;
  std::string BytesOf(const Pickled& value) const;
  static DType DTypeOfArray(const Pickled& described);
  Json Tensor(const Pickled& value, const ValuePath& path);
  StoredTensor TensorOf(const Pickled& value, const ValuePath& path, int depth);
  StoredTensor InStorage(const PickledItems& args, const Pickled* dtype, const ValuePath& path);
  std::string Text(const std::string& text, const ValuePath& path) const;
  [[noreturn]] void Refuse(Code code, const ValuePath& path, const std::string& message) const;

  const TorchZip& archive_;
  ForeignState& state_;
  std::uint64_t places_ = 0;
  std::map<StoredTensor, std::string> known_;    // tensors that share memory have one name
  std::map<std::string, std::string> storages_;  // the first name of each
  std::vector<std::string> shared_;              // notes, which come last
};

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_TORCH_VALUES_H_
