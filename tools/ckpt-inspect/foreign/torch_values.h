// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_TORCH_VALUES_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_TORCH_VALUES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ckpt-inspect/foreign/pickle.h"
#include "tools/ckpt-inspect/foreign/state.h"
#include "tools/ckpt-inspect/foreign/torch_archive.h"

namespace sealpoint::tools {

// A tensor within a storage: begin and strides in elements.
struct StoredTensor {
  std::string key;
  std::uint64_t storage_size = 0;  // in bytes
  DType dtype = DType::kNone;
  std::uint64_t begin = 0;
  Shape shape;
  Shape strides;
  bool is_conjugate = false;  // the conjugate of the elements is stored, or their negative
  bool is_negative = false;
  friend auto operator<=>(const StoredTensor&, const StoredTensor&) = default;
};

// The key of a node that is no plain mapping: what kind it is of.
inline constexpr const char* kNodeKind = "$";

// Whether a function of this name makes a tensor, or a parameter of one.
bool MakesTensor(std::string_view function);

// Makes a node of spec/tree.md of the value of an archive, at a path of the state, to which its
// tensors are added. Values of classes without a form are left out, and noted. Throws Failure; then
// no tensor is added.
class TorchValues {
 public:
  TorchValues(const TorchArchive& archive, ForeignState& state)
      : archive_(archive), state_(state) {}

  // Throws Unsupported, too, if all of the value is of such a class.
  Json Node(const Pickled& value, ValuePath path);
  // Nothing if all of the value is of such a class, which is noted.
  std::optional<Json> NodeOrNothing(const Pickled& value, ValuePath path);

 private:
  struct Unknown {  // a class that has no form
    std::string name;
  };
  // What is within a value has one part more, while this lives.
  class Below {
   public:
    Below(TorchValues& values, const PathPart& part);
    ~Below();
    Below(const Below&) = delete;
    Below& operator=(const Below&) = delete;

   private:
    TorchValues& values_;
    const std::uint64_t size_;
  };
  struct Entries {
    std::vector<std::pair<Json, Json>> nodes;
    std::map<std::string, std::size_t> positions;  // by key
  };

  Json WithNotes(const Pickled& value);
  // Takes back all tensors but the first so many of those that were added.
  void TakeBack(std::size_t added);
  Json Plain(const Pickled& value);
  Json Unbounded(const Pickled& value);
  Json Items(const PickledItems& items);
  Json Mapping(const PickledPairs& pairs);
  void AddEntry(const Pickled& key, const Pickled& value, Entries& entries);
  Json Set(const PickledItems& items, bool is_frozen);
  Json Object(const Pickled& value);
  Json KnownObject(const Pickled& value);
  Json Container(const Pickled& value);
  Json Namespace(const Pickled& value);
  Json Builtin(const std::string& full_name, const PickledItems& args);
  Json Array(const Pickled& value);
  std::string BytesOf(const Pickled& value);
  static DType DTypeOfArray(const Pickled& described);
  Json Tensor(const Pickled& value);
  StoredTensor TensorOf(const Pickled& value, int depth);
  StoredTensor InStorage(const PickledItems& args, const Pickled* dtype);
  void ReadBits(const PickledPairs& pairs, StoredTensor& tensor) const;
  std::string Text(std::string_view text) const;
  void Cost(std::uint64_t bytes) const { archive_.budget().Add(bytes, archive_.path()); }
  // Names the first parts of the path.
  [[noreturn]] void Refuse(Code code, const std::string& message,
                           std::size_t shown_parts = ~std::size_t{0}) const;

  const TorchArchive& archive_;
  ForeignState& state_;
  ValuePath path_;               // of the value that is looked at
  std::uint64_t path_size_ = 0;  // of its text, and of what was above, in bytes
  std::size_t depth_ = 0;        // also of keys, which add nothing to the path
  std::uint64_t places_ = 0;
  std::map<StoredTensor, std::string> known_;    // tensors that share memory have one name
  std::map<std::string, std::string> storages_;  // the first name of each
  std::vector<std::string> added_;               // names of tensors
  std::vector<std::string> shared_;              // notes, which come last
};

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_TORCH_VALUES_H_
