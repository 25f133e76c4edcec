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

// Describes checkpoints in foreign formats: their contents and the location of each tensor's bytes.

namespace sealpoint {

// A value in a foreign checkpoint. The value is a node of spec/tree.md: a JSON value with ordered
// object members. Not copyable.
class SEALPOINT_EXPORT ForeignNode {
 public:
  struct Member;
  using List = std::vector<ForeignNode>;
  using Members = std::vector<Member>;
  // Placeholder for a node that could not be read. `position` is an index into
  // ForeignCheckpoint::unread.
  struct Unread {
    std::uint32_t position = 0;
  };

  ForeignNode();  // null
  // NOLINTBEGIN(google-explicit-constructor): so that nodes can be written like JSON
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
  ForeignNode(std::initializer_list<Member> members);  // moves the members out of the list
  // NOLINTEND(google-explicit-constructor)
  ~ForeignNode();
  ForeignNode(ForeignNode&& other) noexcept;
  ForeignNode& operator=(ForeignNode&& other) noexcept;

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  // The functions if_… return null if the node has a different type.
  const bool* if_bool() const { return std::get_if<bool>(&value_); }
  const std::int64_t* if_int() const { return std::get_if<std::int64_t>(&value_); }
  const double* if_float() const { return std::get_if<double>(&value_); }
  const Unread* if_unread() const { return std::get_if<Unread>(&value_); }
  const std::string* if_text() const { return Get<std::string>(); }
  const List* if_list() const { return Get<List>(); }
  const Members* if_object() const { return Get<Members>(); }
  List* if_list() { return const_cast<List*>(std::as_const(*this).if_list()); }
  Members* if_object() { return const_cast<Members*>(std::as_const(*this).if_object()); }

  // Returns the value of an object's member, or null if the node is not an object or has no such
  // member. O(n).
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
  mutable ForeignNode value{};  // mutable so that it can be moved out of an initializer list
};

// The constructors are defined here, after Member is complete. Since C++23, the constructor bodies
// need the destructor of a vector of Member.
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

// Names of a dtype in torch, numpy and ml_dtypes. `torch_storage` is empty if torch has no such
// storage class, and `numpy_code` is empty if numpy has no such dtype.
struct ForeignDType {
  DType dtype = DType::kNone;
  std::string_view name{};           // name in torch, numpy and ml_dtypes: "bfloat16"
  std::string_view torch_storage{};  // storage class in the torch module: "BFloat16Storage"
  std::string_view numpy_code{};     // numpy type code without byte order: "f4"
};

// Returns the registered dtypes in ascending order of their ids.
SEALPOINT_EXPORT std::span<const ForeignDType> ForeignDTypes();

// A type of tensors in GGUF files. `dtype` is kUInt8 for a quantized type: its blocks are bytes.
struct GgufType {
  std::uint32_t id = 0;
  std::string_view name{};           // name in ggml: "Q4_K"
  std::uint32_t block_elements = 1;  // 1: not quantized
  std::uint32_t block_bytes = 0;
  DType dtype = DType::kUInt8;
};

// Returns the types of tensors that GGUF has, in ascending order of their ids.
SEALPOINT_EXPORT std::span<const GgufType> GgufTypes();
// Returns the names of the types of values that GGUF has, such as "uint32", in the order of their
// ids, which begin at 0.
SEALPOINT_EXPORT std::span<const std::string_view> GgufValueTypes();

struct ForeignOptions {
  std::shared_ptr<Storage> storage{};  // DefaultStorage() if null
  // If true, leave out values of classes that no node can represent. Also leave out DCP and
  // Megatron tensors with a dtype that Sealpoint does not have. A note names each omitted value or
  // tensor. If false, such values become Unread, and such tensors count as entries that cannot be
  // read (see `goes_on`).
  bool drop_unknown = false;
  // If true, reading continues after an entry of a directory, or of a mapping in a pickle, that
  // cannot be read. The entry becomes Unread, so that the caller can leave the entry out. If false,
  // an unreadable entry is an error.
  bool goes_on = false;
  // For DCP directories with per-rank metadata: patterns (Checkpoint::MatchTensors) for the names
  // with a separate value for each rank. All other names must have the same value on all ranks.
  std::vector<std::string> per_rank{};
  // If true, a file that is one of several parts of a state (consolidated.00.pth, mp_rank_00) is
  // read without the other parts. If false, such a file is Unsupported.
  bool allow_part = false;
  // Patterns for the names of tensors that may be missing. If an index lists a tensor with such a
  // name but no file has the tensor, ForeignCheckpoint::missing reports it. If any other tensor is
  // missing, reading fails with Corrupt, or with Incomplete if the tensor's file is missing.
  std::vector<std::string> allow_missing{};
  // For a version of weights that is a delta: the complete checkpoint, in safetensors, from which
  // its chain of deltas starts. Used if no directory beside the chain holds it.
  std::string base{};
  // Maximum memory in bytes for the description of the checkpoint. Default: 64 MiB plus 16 times
  // the size of the files.
  std::optional<std::uint64_t> metadata_memory_bytes{};
};

// The place in a file where the elements of one box of a tensor are stored.
struct ForeignPart {
  Box box{};
  std::size_t file = 0;           // index into ForeignCheckpoint::paths
  std::uint64_t entry_begin = 0;  // byte offset of the entry (a contiguous range) in the file
  std::uint64_t entry_size = 0;
  std::string entry_name{};
  std::optional<std::uint32_t> crc{};  // CRC-32 of the entry
  std::uint64_t begin = 0;             // byte offset of the first element in the entry
  std::optional<Shape> strides{};      // strides of the box in elements; absent: dense, row-major
  // Half-open range of element numbers in the dense box. Absent: all elements.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> run{};
  // If true, the file stores the elements with the opposite sign. For a complex dtype, only the
  // imaginary part has the opposite sign.
  bool flips_sign = false;
  // If true, the entry is itself a torch.save file that contains the part. ResolveParts finds the
  // part's elements in this inner file.
  bool is_item = false;
};

// The place in a file of the difference between a tensor and its state one version earlier: a zstd
// frame of the bitwise XOR of all bytes.
struct ForeignDelta {
  std::size_t file = 0;  // index into ForeignCheckpoint::paths
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  // Checksum of the tensor's bytes after the delta, in hexadecimal digits: 8 of Adler-32, or 32 of
  // XXH3-128.
  std::string checksum{};
};

struct ForeignTensor {
  DType dtype = DType::kNone;
  Shape shape{};
  // The parts tile the tensor. If the tensor is empty, there are no parts.
  std::vector<ForeignPart> parts{};
  // If not empty, the parts have the elements of an old version of the tensor, and these deltas,
  // oldest first, lead to its current elements. ForeignDeltaReader applies the deltas.
  std::vector<ForeignDelta> deltas{};
  // If set, the tensor is stored with this shape, and the boxes of parts with is_item refer to this
  // shape. Set only for state that an old version of Megatron flattened.
  std::optional<Shape> flattened_shape{};
  // Name of the type of a quantized tensor of GGUF, such as "Q4_K". The elements are the bytes of
  // its blocks, and the last extent counts bytes. Otherwise empty.
  std::string_view block_type{};
};

struct ForeignObject {
  std::string media_type{};
  Bytes bytes{};
};

struct ForeignFile {
  std::string name{};  // name within the directory
  std::uint64_t size_bytes = 0;
  std::string meaning{};
};

// A file that is not part of the format and was not read. `may_hold_state` is false only if the
// file clearly holds no state. Text files (such as a configuration) and files left over from a
// different save, for example, hold no state.
struct ForeignLeftOut {
  std::string name{};
  std::uint64_t size_bytes = 0;
  std::string reason{};
  bool may_hold_state = false;
};

struct ForeignUnread {
  Status error{};
  bool is_beside = false;  // the value is in a file that is not part of the format
};

// A leaf of the tree that is not a tensor, and its value in an abbreviated form.
struct ForeignValue {
  std::string name{};
  std::string brief{};
};

// Keeps directories open, because opening a directory in an object store costs a listing request.
class ForeignDirectories;

// The contents of a checkpoint in a foreign format.
struct ForeignCheckpoint {
  // Short name of the format, as in the JSON of `ckpt ls`: "safetensors", "hf", "torch", "dcp", …
  std::string format{};
  std::string path{};
  std::optional<std::uint64_t> step{};
  std::map<std::string, ForeignTensor> tensors{};
  ForeignNode tree{};  // a mapping; its tensors are described in `tensors`
  // Values of the "per_rank" nodes of the tree, one entry per rank.
  std::vector<ForeignNode> rank_values{};
  std::map<std::string, ForeignObject> objects{};
  std::vector<ForeignFile> files{};
  std::string digest{};  // describes the digests that protect the tensor data
  std::vector<std::string> notes{};
  std::vector<ForeignLeftOut> left_out{};
  std::vector<std::string> missing{};  // tensors that an index lists but no file has
  // Maximum memory in bytes for this description, set by the options or computed from the size of
  // the files. Absent: 64 MiB.
  std::optional<std::uint64_t> metadata_memory_bytes{};
  std::vector<ForeignUnread> unread{};
  std::vector<std::string> paths{};  // the files that store parts of tensors
  // Open directories of `paths`, for ResolveParts. May be null.
  std::shared_ptr<ForeignDirectories> directories{};
};

// Reads the description of a file or directory in the format of safetensors, torch.save,
// torch.distributed.checkpoint, Megatron-core or GGUF, or of a version of weights that is a delta.
// Finds where tensor data is stored, but does not read the data. Pickles are never executed.
// ForeignOptions::metadata_memory_bytes limits the memory use. Returns an empty value, not an
// error, if the path has no known format. Errors: errors for defects in a checkpoint of a known
// format; Unsupported (a known format or variant that cannot be read; the message suggests a
// remedy).
SEALPOINT_EXPORT Result<std::optional<ForeignCheckpoint>> ReadForeign(
    const std::string& path, const ForeignOptions& options = {});

// The kind of a foreign file or directory, such as "a file of torch.save". The kind is determined
// from file names and the first bytes of files.
struct ForeignKind {
  std::string what{};
  bool is_read = false;  // ReadForeign supports this kind; if false, `what` is the error message
};

// Determines the kind of a path. Returns an empty value if the path has no known format. Errors:
// the errors of the object store, if the store cannot be read.
SEALPOINT_EXPORT Result<std::optional<ForeignKind>> KindOfForeign(
    const std::string& path, const ForeignOptions& options = {});

enum class PlaceKind : std::uint8_t { kUnknown, kMissing, kCheckpoint, kSeries, kOther };

struct PlaceDescription {
  PlaceKind kind = PlaceKind::kUnknown;
  std::string text{};  // without a full stop; may be empty
};

struct DescribeOptions {
  std::string opens_series{};          // text to add after the name of a series' newest checkpoint
  std::shared_ptr<Storage> storage{};  // null: DefaultStorage()
};

// Describes a path where no checkpoint was found, and suggests a remedy. For example, the text
// names an existing path with a similar name. The text may also say that the path is a series, a
// foreign checkpoint, or a folder of foreign checkpoints. Examines a limited number of names. Never
// fails, because the text is meant for an error message. Thread-safe.
SEALPOINT_EXPORT PlaceDescription DescribePlace(const std::string& path,
                                                const DescribeOptions& options = {});

// If the path is a folder of checkpoints of Megatron or DeepSpeed, returns the directory of the
// checkpoint that the program's tracker file names. For any other path, returns an empty value.
// ReadForeign calls this function itself. Errors: Corrupt (Megatron's tracker file names no
// iteration), Io.
SEALPOINT_EXPORT Result<std::optional<std::string>> NewestForeignDirectory(const std::string& path);

// Returns the leaves of the tree that are not tensors, in order. Errors: Corrupt (a node is
// malformed), LimitExceeded.
SEALPOINT_EXPORT Result<std::vector<ForeignValue>> ForeignValues(
    const ForeignCheckpoint& checkpoint);

// Returns the parts of a tensor. Each part that is an item (ForeignPart::is_item) is replaced with
// the parts found in the item. ForeignCheckpoint::paths does not change. Errors: NotFound (there is
// no such tensor), Corrupt (the contents of an item are not as expected), and errors from reading
// the items. Thread-safe.
SEALPOINT_EXPORT Result<std::vector<ForeignPart>> ResolveParts(const ForeignCheckpoint& checkpoint,
                                                               const std::string& tensor,
                                                               const ForeignOptions& options = {});

// Reads the current bytes of a tensor that has deltas, in row-major order. Decodes front to back,
// in small blocks: reading back or ahead is allowed, but decodes all bytes up to the place. Not
// thread-safe.
class SEALPOINT_EXPORT ForeignDeltaReader {
 public:
  // `memory_bytes`: maximum memory for the windows of the zstd frames. Borrows the checkpoint.
  // Errors: NotFound (no such tensor, or it has no deltas), Corrupt (a frame is malformed or has
  // another length than the tensor), LimitExceeded, and the errors of reading the files.
  static Result<std::unique_ptr<ForeignDeltaReader>> Open(const ForeignCheckpoint& checkpoint,
                                                          const std::string& tensor,
                                                          std::uint64_t memory_bytes,
                                                          const ForeignOptions& options = {});
  virtual ~ForeignDeltaReader() = default;
  ForeignDeltaReader(const ForeignDeltaReader&) = delete;
  ForeignDeltaReader& operator=(const ForeignDeltaReader&) = delete;

  // Precondition: the tensor has these bytes. Errors: as of Open.
  virtual Status Read(std::uint64_t offset, MutableByteSpan out) = 0;
  // Reads the rest of the tensor, and compares the checksums of all deltas. Errors: Corrupt, also
  // if the base is not the version that the deltas were made from; as of Open.
  virtual Status Finish() = 0;

 protected:
  ForeignDeltaReader() = default;
};

// Makes the delta of one tensor: a zstd frame, and the checksum of the new bytes. Not thread-safe.
class SEALPOINT_EXPORT ForeignDeltaEncoder {
 public:
  // `size_bytes`: size of the tensor. Errors: Io (out of memory).
  static Result<std::unique_ptr<ForeignDeltaEncoder>> Create(std::uint64_t size_bytes);
  virtual ~ForeignDeltaEncoder() = default;
  ForeignDeltaEncoder(const ForeignDeltaEncoder&) = delete;
  ForeignDeltaEncoder& operator=(const ForeignDeltaEncoder&) = delete;

  // Adds the next bytes of the tensor, and appends the next bytes of the frame to `out`. The frame
  // ends with the last byte of the tensor. Errors: InvalidArgument (the sizes differ, or the tensor
  // has fewer bytes).
  virtual Status Add(ByteSpan base, ByteSpan current, Bytes& out) = 0;
  // False as long as all bytes were equal.
  virtual bool is_changed() const = 0;
  // Adler-32 of the bytes so far, in 8 hexadecimal digits.
  virtual std::string checksum() const = 0;

 protected:
  ForeignDeltaEncoder() = default;
};

// Publishes a set of new files in one directory. The last file should be the one that readers open
// first, such as an index: it becomes visible after all others. On a file system, all files have
// temporary names until Publish. In an object store, each file becomes visible when it is closed.
// If the set has several files, an object in the store lists these files until Publish. The name of
// this object is `.partial-` followed by eight hexadecimal digits. If a program is killed before
// Publish, the next call to Create with several names finds this object and removes the listed
// files. Two programs must therefore not write to the same directory simultaneously: the second
// program would make the first program fail. Thread safety: several threads may begin and write
// files.
class SEALPOINT_EXPORT NewFiles {
 public:
  // Borrows the directory. No file in `names` may exist in the directory, except files that Left
  // returns. Errors: Unsupported (the storage cannot publish exclusively, or is an object store
  // that ignores the conditions of requests), Io.
  static Result<std::unique_ptr<NewFiles>> Create(Directory& directory,
                                                  std::vector<std::string> names);
  // Returns the names of the files that Create would remove, in ascending order. Killed programs
  // leave such files. Errors: the errors of Directory::List, Io.
  static Result<std::vector<std::string>> Left(const Directory& directory);
  // Removes the files of this set unless Publish succeeded.
  virtual ~NewFiles() = default;
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  // Creates the file `names[number]`. Create the last file only after all others are closed. The
  // returned file borrows this NewFiles object. Errors: AlreadyExists, Io (also if a different
  // program has started to write to the directory).
  virtual Result<std::unique_ptr<WritableFile>> Begin(std::size_t number) = 0;
  // Gives all files their final names, in order, and makes the names durable. Precondition: all
  // files are synced and closed. Errors: AlreadyExists (one of the names exists), Io.
  virtual Status Publish() = 0;

 protected:
  NewFiles() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_INTEROP_H_
