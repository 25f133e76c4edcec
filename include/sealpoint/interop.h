// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_INTEROP_H_
#define SEALPOINT_INTEROP_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/dtype.h"
#include "sealpoint/export.h"
#include "sealpoint/region.h"
#include "sealpoint/safetensors.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

// Foreign formats: the contents of their checkpoints and the location of each tensor's bytes.

namespace sealpoint {

// A value of a foreign checkpoint: a node of spec/tree.md, which is JSON with ordered members. It
// takes 16 bytes plus the data it owns. Not copyable.
class SEALPOINT_EXPORT ForeignNode {
 public:
  struct Member;
  using List = std::vector<ForeignNode>;
  using Members = std::vector<Member>;
  // Replaces a node that could not be read; refers to ForeignCheckpoint::unread.
  struct Unread {
    std::uint32_t position = 0;
  };

  ForeignNode();  // null
  // NOLINTBEGIN(google-explicit-constructor): as JSON is written
  ForeignNode(std::nullptr_t);
  ForeignNode(bool value);
  ForeignNode(std::int64_t value);
  ForeignNode(double value);
  ForeignNode(std::string text);
  ForeignNode(std::string_view text);
  ForeignNode(const char* text);
  ForeignNode(Unread unread);
  ForeignNode(List items);
  ForeignNode(Members members);
  ForeignNode(std::initializer_list<Member> members);  // moves the members
  // NOLINTEND(google-explicit-constructor)
  ~ForeignNode();
  ForeignNode(ForeignNode&& other) noexcept;
  ForeignNode& operator=(ForeignNode&& other) noexcept;

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  // Null if the node has another type.
  const bool* if_bool() const { return std::get_if<bool>(&value_); }
  const std::int64_t* if_int() const { return std::get_if<std::int64_t>(&value_); }
  const double* if_float() const { return std::get_if<double>(&value_); }
  const Unread* if_unread() const { return std::get_if<Unread>(&value_); }
  const std::string* if_text() const { return Get<std::string>(); }
  const List* if_list() const { return Get<List>(); }
  const Members* if_object() const { return Get<Members>(); }
  List* if_list() { return const_cast<List*>(std::as_const(*this).if_list()); }
  Members* if_object() { return const_cast<Members*>(std::as_const(*this).if_object()); }

  // Returns the member of an object, or null if there is none. O(n).
  const ForeignNode* Find(std::string_view key) const;

 private:
  template <typename T>
  const T* Get() const {
    const auto* const owned = std::get_if<std::unique_ptr<T>>(&value_);
    return owned != nullptr ? owned->get() : nullptr;
  }

  std::variant<std::monostate, bool, std::int64_t, double, Unread, std::unique_ptr<std::string>,
               std::unique_ptr<List>, std::unique_ptr<Members>>
      value_;
};

struct ForeignNode::Member {
  std::string key{};
  mutable ForeignNode value{};  // allows moving it out of an initializer list
};

// Defined after Member is complete: from C++23 on, the bodies need the destructor of its vector.
inline ForeignNode::ForeignNode() = default;
inline ForeignNode::ForeignNode(std::nullptr_t) {}
inline ForeignNode::ForeignNode(bool value) : value_(value) {}
inline ForeignNode::ForeignNode(std::int64_t value) : value_(value) {}
inline ForeignNode::ForeignNode(double value) : value_(value) {}
inline ForeignNode::ForeignNode(std::string text)
    : value_(std::make_unique<std::string>(std::move(text))) {}
inline ForeignNode::ForeignNode(std::string_view text) : ForeignNode(std::string(text)) {}
inline ForeignNode::ForeignNode(const char* text) : ForeignNode(std::string(text)) {}
inline ForeignNode::ForeignNode(Unread unread) : value_(unread) {}

// Names of a dtype in torch and numpy; empty if they have none.
struct ForeignDType {
  DType dtype = DType::kNone;
  std::string_view name{};           // in torch, numpy and ml_dtypes: "bfloat16"
  std::string_view torch_storage{};  // class in the torch module: "BFloat16Storage"
  std::string_view numpy_code{};     // without byte order: "f4"
};

// The registered dtypes, ascending by id.
SEALPOINT_EXPORT std::span<const ForeignDType> ForeignDTypes();

struct ForeignOptions {
  std::shared_ptr<Storage> storage{};  // DefaultStorage() if null
  // Leave out values of classes that have no node, and tensors of DCP and Megatron with a dtype
  // that this format lacks, and add a note for each. If false, they are Unread.
  bool drop_unknown = false;
  // Turn unreadable entries of a directory, or of a mapping in a pickle, into Unread instead of
  // failing, so that the caller can leave them out.
  bool goes_on = false;
  // Names with separate values per rank, for DCP directories with per-rank metadata; patterns as in
  // Checkpoint::MatchTensors. All other names must have the same value on all ranks.
  std::vector<std::string> per_rank{};
  // Read a file alone that is one of several parts of a state (consolidated.00.pth, mp_rank_00),
  // and leave out the other parts. If false, such a file is Unsupported.
  bool allow_part = false;
  // Patterns of tensors that may be listed in an index without being in any file; they are reported
  // as `missing`. For other tensors this is Corrupt, and a missing file is Incomplete.
  std::vector<std::string> allow_missing{};
  // Maximum memory in bytes for the description. Default: 16 times the size of the files, plus 64
  // MiB.
  std::optional<std::uint64_t> metadata_memory_bytes{};
};

// Location in a file of the elements of a box of a tensor.
struct ForeignPart {
  Box box{};
  std::size_t file = 0;           // in ForeignCheckpoint::paths
  std::uint64_t entry_begin = 0;  // start of the entry (a contiguous range of the file), in bytes
  std::uint64_t entry_size = 0;
  std::string entry_name{};
  std::optional<std::uint32_t> crc{};  // CRC-32 of the entry
  std::uint64_t begin = 0;             // first element, in bytes from the start of the entry
  std::optional<Shape> strides{};      // of the box, in elements; empty: row-major and dense
  // Half-open range of elements of the dense box; empty: all.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> run{};
  // The file stores each element with the opposite sign: of the imaginary part of a complex dtype,
  // otherwise of the number.
  bool flips_sign = false;
  // The entry is a torch.save file of the part; use ResolveParts to read it.
  bool is_item = false;
};

struct ForeignTensor {
  DType dtype = DType::kNone;
  Shape shape{};
  // They tile the tensor. Empty for an empty tensor.
  std::vector<ForeignPart> parts{};
  // Shape that the items' boxes refer to, for state flattened by an old version of Megatron.
  std::optional<Shape> flattened_shape{};
};

struct ForeignObject {
  std::string media_type{};
  Bytes bytes{};
};

struct ForeignFile {
  std::string name{};  // within the directory
  std::uint64_t size_bytes = 0;
  std::string meaning{};
};

// A file that is not part of the format and was not read. It may hold state unless it is text, such
// as a configuration, or left over from another save.
struct ForeignLeftOut {
  std::string name{};
  std::uint64_t size_bytes = 0;
  std::string reason{};
  bool may_hold_state = false;
};

struct ForeignUnread {
  Status error{};
  bool is_beside = false;  // belongs to a file outside the format
};

// A leaf of the tree that is not a tensor, with an abbreviated value.
struct ForeignValue {
  std::string name{};
  std::string brief{};
};

// Keeps directories open, because opening one in an object store lists it.
class ForeignDirectories;

// Contents of a checkpoint of another format.
struct ForeignCheckpoint {
  std::string format{};  // "safetensors", "hf", "torch", "hf_torch", "dcp", "megatron"
  std::string path{};
  std::optional<std::uint64_t> step{};
  std::map<std::string, ForeignTensor> tensors{};
  ForeignNode tree{};  // a mapping; its tensors are those above
  // Values of the tree's "per_rank" nodes, one per rank.
  std::vector<ForeignNode> rank_values{};
  std::map<std::string, ForeignObject> objects{};
  std::vector<ForeignFile> files{};
  std::string digest{};  // description of the digests that protect tensor data
  std::vector<std::string> notes{};
  std::vector<ForeignLeftOut> left_out{};
  std::vector<std::string> missing{};  // tensors that are listed in an index but in no file
  // Maximum memory for the description, from the options or the size of the files; empty: 64 MiB.
  std::optional<std::uint64_t> metadata_memory_bytes{};
  std::vector<ForeignUnread> unread{};
  std::vector<std::string> paths{};  // files with parts of tensors
  // directories of `paths`, for ResolveParts; may be null
  std::shared_ptr<ForeignDirectories> directories{};
};

// Reads the description of a file or directory of safetensors, torch.save,
// torch.distributed.checkpoint or Megatron-core. Tensor data is located, not read. Pickles are
// never executed. Memory is bounded by the options. Returns an empty value, and no error, if the
// path is of no known format. Errors: defects of a known format; Unsupported for a known format or
// variant that cannot be read, with a way to make it readable.
SEALPOINT_EXPORT Result<std::optional<ForeignCheckpoint>> ReadForeign(
    const std::string& path, const ForeignOptions& options = {});

// Kind of a foreign path, determined from names and first bytes: "a file of torch.save".
struct ForeignKind {
  std::string what{};
  bool is_read = false;  // ReadForeign supports it; otherwise `what` is the error message
};

// Empty if the path is of no known format. Errors: those of an object store that cannot be read.
SEALPOINT_EXPORT Result<std::optional<ForeignKind>> KindOfForeign(
    const std::string& path, const ForeignOptions& options = {});

enum class PlaceKind : std::uint8_t { kUnknown, kMissing, kCheckpoint, kSeries, kOther };

struct PlaceDescription {
  PlaceKind kind = PlaceKind::kUnknown;
  std::string text{};  // without a full stop; empty if nothing is to be said
};

struct DescribeOptions {
  std::string opens_series{};          // follows the name of the newest checkpoint of a series
  std::shared_ptr<Storage> storage{};  // null: DefaultStorage()
};

// Describes what is at a path where no checkpoint was found, and what to do about it, by content:
// a missing path with a similar name beside it, a series, a foreign checkpoint, a folder of some.
// Looks at a bounded number of names; never fails, as the text goes with an error. Thread safety:
// any calls at once.
SEALPOINT_EXPORT PlaceDescription DescribePlace(const std::string& path,
                                                const DescribeOptions& options = {});

// Returns the directory of the newest iteration if the path is a folder of Megatron iterations.
// ReadForeign does this by itself. Errors: Corrupt (the file that names the iteration), Io.
SEALPOINT_EXPORT Result<std::optional<std::string>> NewestMegatronIteration(
    const std::string& path);

// Lists the leaves of the tree that are not tensors, in order. Errors: Corrupt (a malformed node),
// LimitExceeded.
SEALPOINT_EXPORT Result<std::vector<ForeignValue>> ForeignValues(
    const ForeignCheckpoint& checkpoint);

// Returns the parts of a tensor, with each item replaced by the parts found in it. Does not add to
// ForeignCheckpoint::paths. Errors: NotFound (no such tensor), those of the items, Corrupt (an item
// holds something else). Thread-safe.
SEALPOINT_EXPORT Result<std::vector<ForeignPart>> ResolveParts(const ForeignCheckpoint& checkpoint,
                                                               const std::string& tensor,
                                                               const ForeignOptions& options = {});

// Publishes a set of new files in one directory for other programs, which read the last file first.
// On a file system, all files have temporary names until Publish. In an object store, each file
// appears when it is closed. If there are several, an object named `.partial-` and eight digits
// lists them until Publish, so that the next Create of several files can remove files left by a
// killed program. Two programs must therefore not write to one place simultaneously: the second
// would make the first fail. Thread safety: several threads may begin and write files.
class SEALPOINT_EXPORT NewFiles {
 public:
  // Borrows the directory. None of `names` may exist in it, except files that Left returns. Errors:
  // Unsupported (no exclusive publication; an object store that ignores conditions), Io.
  static Result<std::unique_ptr<NewFiles>> Create(Directory& directory,
                                                  std::vector<std::string> names);
  // Returns the files of killed programs that Create would remove, sorted. Errors: those of List,
  // Io.
  static Result<std::vector<std::string>> Left(const Directory& directory);
  // Removes the files unless Publish succeeded.
  virtual ~NewFiles() = default;
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  // Begins file `names[number]`. Begin the last file only after all others are closed. The file
  // borrows this object. Errors: AlreadyExists, Io (also if another program has begun to write
  // here).
  virtual Result<std::unique_ptr<WritableFile>> Begin(std::size_t number) = 0;
  // Gives all files their names, in order, and makes the names durable. Precondition: all files are
  // synced and closed. Errors: AlreadyExists (one of the names), Io.
  virtual Status Publish() = 0;

 protected:
  NewFiles() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_INTEROP_H_
