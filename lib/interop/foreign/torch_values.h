// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_TORCH_VALUES_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_TORCH_VALUES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/interop/foreign/node.h"
#include "lib/interop/foreign/pickle.h"
#include "lib/interop/foreign/state.h"
#include "lib/interop/foreign/torch_archive.h"

namespace sealpoint::internal::foreign {

// True if a function of this name creates a tensor or a parameter.
bool MakesTensor(std::string_view function);

// Makes a node of spec/tree.md of the value of an archive, at a path of the state, to which its
// tensors are added. Values of classes without a form are left out, and noted, or Unread. Throws
// Failure; then no tensor is added.
class TorchValues {
 public:
  TorchValues(const TorchArchive& archive, const ForeignOptions& options, ForeignCheckpoint& state)
      : archive_(archive),
        drops_unknown_(options.drop_unknown),
        goes_on_(options.goes_on),
        state_(state) {}

  // Throws Unsupported, too, if all of the value is of such a class.
  ForeignNode Node(const Pickled& value, ValuePath path);
  // Empty if the whole value is of such a class, and left out.
  std::optional<ForeignNode> NodeOrNothing(const Pickled& value, ValuePath path);

 private:
  struct Unknown {  // a class that has no form
    std::string name;
  };
  // Appends a part to the path while this object lives, for nested values.
  class PathScope {
   public:
    PathScope(TorchValues& values, const PathPart& part);
    ~PathScope();
    PathScope(const PathScope&) = delete;
    PathScope& operator=(const PathScope&) = delete;

   private:
    TorchValues& values_;
    const std::uint64_t size_;
  };
  // A tensor of the state; of an empty one not where it is stored.
  struct Added {
    std::string name;
    std::optional<StoredTensor> stored;
    bool is_first = false;  // of its storage
  };
  struct Entries {
    std::vector<std::pair<ForeignNode, ForeignNode>> nodes;
    std::map<std::string, std::size_t> positions;  // by key
    void Put(ForeignNode key, ForeignNode node);
  };

  ForeignNode WithNotes(const Pickled& value);
  // Replacement of a value of an unknown class at the path; empty if it is left out.
  std::optional<ForeignNode> Instead(const Unknown& unknown);
  ForeignNode UnreadOf(Status error);
  // True if an entry of a mapping with this error may be left out; false if the limits of the whole
  // file are reached.
  bool MayGoOn(const Status& error) const;
  // Removes all added tensors except the first `added`.
  void TakeBack(std::size_t added);
  ForeignNode Plain(const Pickled& value);
  ForeignNode MakeNode(const Pickled& value);
  ForeignNode Items(const PickledItems& items);
  ForeignNode Mapping(const PickledPairs& pairs);
  void AddEntry(const Pickled& key, const Pickled& value, Entries& entries);
  ForeignNode Set(const PickledItems& items, bool is_frozen);
  ForeignNode Object(const Pickled& value);
  ForeignNode KnownObject(const Pickled& value);
  ForeignNode Container(const Pickled& value);
  ForeignNode Namespace(const Pickled& value);
  ForeignNode Builtin(const std::string& full_name, const PickledItems& args);
  ForeignNode Array(const Pickled& value);
  std::string BytesOf(const Pickled& value);
  static DType DTypeOfArray(const Pickled& described);
  ForeignNode Tensor(const Pickled& value);
  // A tensor of a class that is composed of other tensors.
  ForeignNode Composed(const PickledItems& args);
  ForeignNode ContextOf(const Pickled& value);
  StoredTensor TensorOf(const Pickled& value, int depth);
  StoredTensor InStorage(const PickledItems& args, const Pickled* dtype);
  void ReadBits(const PickledPairs& pairs, StoredTensor& tensor) const;
  std::string Text(std::string_view text) const;
  void Cost(std::uint64_t bytes) const { archive_.budget().Add(bytes, archive_.path()); }
  // Names the first parts of the path.
  [[noreturn]] void Refuse(Code code, const std::string& message,
                           std::size_t shown_parts = ~std::size_t{0}) const;

  const TorchArchive& archive_;
  const bool drops_unknown_;
  const bool goes_on_;
  ForeignCheckpoint& state_;
  ValuePath path_;               // of the value that is looked at
  std::uint64_t path_size_ = 0;  // of its text and of its parents' text, in bytes
  std::size_t depth_ = 0;        // also counts keys, which add nothing to the path
  std::uint64_t places_ = 0;
  std::map<StoredTensor, std::string> known_;    // tensors that share memory have one name
  std::map<std::string, std::string> storages_;  // the first name of each
  std::vector<Added> added_;
  std::vector<std::string> shared_;  // notes, which come last
};

// The only tensor of a value; empty if it has none, or several.
std::optional<ForeignTensor> TensorIn(const TorchArchive& archive, const Pickled& value);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_TORCH_VALUES_H_
