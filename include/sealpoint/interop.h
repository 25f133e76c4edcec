// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_INTEROP_H_
#define SEALPOINT_INTEROP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
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
#include "sealpoint/checkpoint.h"
#include "sealpoint/codec.h"
#include "sealpoint/commit.h"
#include "sealpoint/dtype.h"
#include "sealpoint/engine.h"
#include "sealpoint/export.h"
#include "sealpoint/region.h"
#include "sealpoint/safetensors.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

// Foreign formats: what their checkpoints hold and where, and models of safetensors made of
// checkpoints, and the reverse.

namespace sealpoint {

// A value of a foreign checkpoint: a node of spec/tree.md, which is JSON whose members keep their
// order. It takes 16 bytes and what it owns. Not copyable.
class SEALPOINT_EXPORT ForeignNode {
 public:
  struct Member;
  using List = std::vector<ForeignNode>;
  using Members = std::vector<Member>;
  // In the place of a node that could not be read: its position in ForeignCheckpoint::unread.
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
  ForeignNode(std::initializer_list<Member> members);  // which are moved
  // NOLINTEND(google-explicit-constructor)
  ~ForeignNode();
  ForeignNode(ForeignNode&& other) noexcept;
  ForeignNode& operator=(ForeignNode&& other) noexcept;

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  // Null if it is something else.
  const bool* if_bool() const { return std::get_if<bool>(&value_); }
  const std::int64_t* if_int() const { return std::get_if<std::int64_t>(&value_); }
  const double* if_float() const { return std::get_if<double>(&value_); }
  const Unread* if_unread() const { return std::get_if<Unread>(&value_); }
  const std::string* if_text() const { return Get<std::string>(); }
  const List* if_list() const { return Get<List>(); }
  const Members* if_object() const { return Get<Members>(); }
  List* if_list() { return const_cast<List*>(std::as_const(*this).if_list()); }
  Members* if_object() { return const_cast<Members*>(std::as_const(*this).if_object()); }

  // The member of an object; null if there is none. O(n).
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
  mutable ForeignNode value{};  // so that it can be moved out of an initializer list
};

// Here, where Member is complete: from C++23 on their bodies need the destructor of its vector.
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

// What torch and numpy call a dtype; a name is empty if they have none.
struct ForeignDType {
  DType dtype = DType::kNone;
  std::string_view name{};           // in torch, numpy and ml_dtypes: "bfloat16"
  std::string_view torch_storage{};  // a class of the module torch: "BFloat16Storage"
  std::string_view numpy_code{};     // without a byte order: "f4"
};

// The registered dtypes, ascending by id.
SEALPOINT_EXPORT std::span<const ForeignDType> ForeignDTypes();

struct ForeignOptions {
  std::shared_ptr<Storage> storage{};  // DefaultStorage() if null
  // Values of classes that have no node, and tensors of DCP and Megatron whose dtype the format
  // lacks, are left out, and noted; else they are Unread.
  bool drop_unknown = false;
  // What cannot be read of a directory, or of a mapping in a pickle, becomes Unread, and is no
  // error, so that it can be left out.
  bool goes_on = false;
  // Names of which each rank has its own, in directories of DCP with metadata per rank; patterns as
  // of Checkpoint::MatchTensors. What ranks have of other names has to be the same.
  std::vector<std::string> per_rank{};
  // A file that is one of several parts of a state (consolidated.00.pth, mp_rank_00) is read alone,
  // and the others are left out; else that is Unsupported.
  bool allow_part = false;
  // Patterns of tensors that an index names and no file has: they are `missing`; else they are
  // Corrupt, and a file that is not there Incomplete.
  std::vector<std::string> allow_missing{};
  // What the description may take of memory, in bytes; nothing: 16 times what the files have, and
  // 64 MiB.
  std::optional<std::uint64_t> metadata_memory_bytes{};
};

// Elements of a box of a tensor in a file.
struct ForeignPart {
  Box box{};
  std::size_t file = 0;           // in ForeignCheckpoint::paths
  std::uint64_t entry_begin = 0;  // of the bytes that lie together there, in bytes
  std::uint64_t entry_size = 0;
  std::string entry_name{};
  std::optional<std::uint32_t> crc{};  // CRC-32 of the entry
  std::uint64_t begin = 0;             // of the elements, in bytes from that of the entry
  std::optional<Shape> strides{};      // of the box, in elements; nothing: row-major and dense
  // Only these elements of the dense box, half-open.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> run{};
  // The sign of each element is the other one in the file: of its imaginary part, or of the number.
  bool flips_sign = false;
  // The entry is what torch.save wrote of the part, to be looked into by ResolveParts.
  bool is_item = false;
};

struct ForeignTensor {
  DType dtype = DType::kNone;
  Shape shape{};
  // None of an empty tensor. They tile it.
  std::vector<ForeignPart> parts{};
  // The shape of which items are boxes, of a state that an old version of Megatron flattened.
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

// What lies beside the files of a format and was not read. It may hold state unless it is text,
// such as a configuration, or left over from another save.
struct ForeignLeftOut {
  std::string name{};
  std::uint64_t size_bytes = 0;
  std::string reason{};
  bool may_hold_state = false;
};

struct ForeignUnread {
  Status error{};
  bool is_beside = false;  // of a file beside those of the format
};

// A leaf of the tree that is no tensor, and its value in short.
struct ForeignValue {
  std::string name{};
  std::string brief{};
};

// Directories that stay open, since to open one in an object store is to list it.
class ForeignDirectories;

// What a checkpoint of a foreign format holds.
struct ForeignCheckpoint {
  std::string format{};  // "safetensors", "hf", "torch", "hf_torch", "dcp", "megatron"
  std::string path{};
  std::optional<std::uint64_t> step{};
  std::map<std::string, ForeignTensor> tensors{};
  ForeignNode tree{};  // a mapping, whose tensors are those above
  // What nodes "per_rank" of the tree stand for, of each rank.
  std::vector<ForeignNode> rank_values{};
  std::map<std::string, ForeignObject> objects{};
  std::vector<ForeignFile> files{};
  std::string digest{};  // what protects the bytes of tensors, in words
  std::vector<std::string> notes{};
  std::vector<ForeignLeftOut> left_out{};
  std::vector<std::string> missing{};  // tensors that an index names and no file has
  // What the description may take, by the options or the files; nothing: 64 MiB.
  std::optional<std::uint64_t> metadata_memory_bytes{};
  std::vector<ForeignUnread> unread{};
  std::vector<std::string> paths{};                   // of files with parts of tensors
  std::shared_ptr<ForeignDirectories> directories{};  // of them, for ResolveParts; may be null
};

// Reads what a file or directory of safetensors, torch.save, torch.distributed.checkpoint or
// Megatron-core holds; of tensors only where they are. No pickle is run. What the files describe
// takes memory within the bound of the options. Nothing if the path is of no format that is known:
// then nothing is wrong with it. Errors: of a known format, what is wrong with it, or with this
// kind of it; of one that is known and not read, Unsupported, which says what it is and what makes
// it readable.
SEALPOINT_EXPORT Result<std::optional<ForeignCheckpoint>> ReadForeign(
    const std::string& path, const ForeignOptions& options = {});

// What lies at a path, by names and first bytes: "a file of torch.save".
struct ForeignKind {
  std::string what{};
  bool is_read = false;  // ReadForeign reads it; else `what` is its error
};

// Nothing if it is of no format that is known. Errors: those of an object store that cannot be
// looked at.
SEALPOINT_EXPORT Result<std::optional<ForeignKind>> KindOfForeign(
    const std::string& path, const ForeignOptions& options = {});

enum class PlaceKind : std::uint8_t { kUnknown, kMissing, kCheckpoint, kSeries, kOther };

struct PlaceDescription {
  PlaceKind kind = PlaceKind::kUnknown;
  std::string text{};  // without a full stop; empty if nothing is to be said
};

struct DescribeOptions {
  std::string shows = "sealpoint ls";  // the command that shows foreign checkpoints
  std::string opens_series{};          // follows the name of the newest checkpoint of a series
  std::shared_ptr<Storage> storage{};  // null: DefaultStorage()
};

// Describes what is at a path where no checkpoint was found, and what to do about it, by content:
// a missing path with a similar name beside it, a series, a foreign checkpoint, a folder of some.
// Looks at a bounded number of names; never fails, as the text goes with an error. Thread safety:
// any calls at once.
SEALPOINT_EXPORT PlaceDescription DescribePlace(const std::string& path,
                                                const DescribeOptions& options = {});

// The directory of the newest iteration, if the path is a folder of Megatron's iterations, which
// ReadForeign looks into by itself. Errors: Corrupt (the file that names it), Io.
SEALPOINT_EXPORT Result<std::optional<std::string>> NewestMegatronIteration(
    const std::string& path);

// The values of the tree, in order. Errors: Corrupt (a malformed node), LimitExceeded.
SEALPOINT_EXPORT Result<std::vector<ForeignValue>> ForeignValues(
    const ForeignCheckpoint& checkpoint);

// The parts of a tensor, none of which is an item: looks into those that are. Adds to
// ForeignCheckpoint::paths nothing. Errors: NotFound (no such tensor), those of the items, Corrupt
// (an item holds something else). Thread safety: any calls at once.
SEALPOINT_EXPORT Result<std::vector<ForeignPart>> ResolveParts(const ForeignCheckpoint& checkpoint,
                                                               const std::string& tensor,
                                                               const ForeignOptions& options = {});

}  // namespace sealpoint

// Checkpoints of models of safetensors, and models of checkpoints. Each element, name, dtype and
// shape is kept as it is, or it is an error; nothing is cast. What `sealpoint convert` of the
// Python package makes is the same.
//
// What is no tensor lies in the __metadata__ of a file of safetensors: objects of a checkpoint
// under keys of their own, which other programs ignore, and what others had written there in the
// object "safetensors.metadata". A checkpoint that is made here can be loaded by sealpoint.torch.

namespace sealpoint {

struct ImportOptions {
  // Only tensors whose names match one of these as a whole (Checkpoint::MatchTensors has the form),
  // and then no objects; empty: all.
  std::vector<std::string> match{};
  Codec codec = Codec::kNone;
  std::uint64_t chunk_size_bytes = kChunkSizeDefaultBytes;
  // Besides the engine's memory; at least 64 KiB. A larger tensor is stored in parts of about this
  // size.
  std::uint64_t buffer_size_bytes = 64 * kMiB;
  // How the checkpoint is committed. The provenance gets "convert.from" besides: "safetensors", or
  // "hf" for a directory.
  CommitOptions commit{};
  // Is called with the bytes of tensors that are done, on the caller's thread.
  std::function<void(std::uint64_t bytes)> on_progress{};
};

// Makes a checkpoint of a model, in a directory that does not exist yet or is empty, on the storage
// of the engine. One pass; memory does not depend on the size of the model. Single process. Errors:
// AlreadyExists (the directory is not empty), NotFound (a pattern that matches nothing), Corrupt
// (objects that are not what this library wrote), those of SafetensorsModel::Read, BlobWriter and
// Commit. After an error nothing but the directory is left, unless OutcomeIsUnknown. Durability: of
// Commit.
SEALPOINT_EXPORT Result<CommitInfo> ImportSafetensors(Engine& engine, const SafetensorsModel& model,
                                                      const std::string& directory,
                                                      const ImportOptions& options = {});

// New files of one directory for other programs, which read some file of them first: the last one.
// On a file system all have other names until Publish. In an object store each is there when it is
// closed; an object `.partial-` and eight digits, which is there meanwhile if they are several,
// names them, and what a program that was killed left is removed by the next Create that makes
// several. So two programs must not write to one place at the same time: the second would end the
// first, with an error. Thread safety: files may be begun and written by several threads.
class SEALPOINT_EXPORT NewFiles {
 public:
  // Borrows the directory, which has no file of these `names`, but for those of Left. Errors:
  // Unsupported (no exclusive publication here; an object store that ignores conditions), Io.
  static Result<std::unique_ptr<NewFiles>> Create(Directory& directory,
                                                  std::vector<std::string> names);
  // What Create would remove: of programs that were killed. Sorted. Errors: those of List, Io.
  static Result<std::vector<std::string>> Left(const Directory& directory);
  // Removes the files that it made, unless Publish succeeded.
  virtual ~NewFiles() = default;
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  // Begins the file of `names` with this number, the last when the others are closed. Borrows this.
  // Errors: AlreadyExists, Io (also: another program has begun to write here).
  virtual Result<std::unique_ptr<WritableFile>> Begin(std::size_t number) = 0;
  // Gives all their names, in order, and makes these durable. Precondition: all are synced and
  // closed. Errors: AlreadyExists (one of the names), Io.
  virtual Status Publish() = 0;

 protected:
  NewFiles() = default;
};

struct ExportOptions {
  // As of ImportOptions.
  std::vector<std::string> match{};
  // Leave out all that is no tensor.
  bool tensors_only = false;
  // A file of a directory gets no further tensor that would make it larger, of tensors alone. The
  // default is that of Hugging Face, decimal.
  std::uint64_t shard_size_max_bytes = 5'000'000'000;
  // Besides what the checkpoint takes for reading; at least 64 KiB.
  std::uint64_t buffer_size_bytes = 64 * kMiB;
  // A file whose header is larger is refused, as other programs refuse it.
  std::uint64_t header_size_max_bytes = 100'000'000;
  ReadOptions read{};
  // Where the model is written; DefaultStorage() if null.
  std::shared_ptr<Storage> storage{};
  // Is called with the bytes of tensors that are written, on the caller's thread.
  std::function<void(std::uint64_t bytes)> on_progress{};
};

struct ExportReport {
  std::vector<std::pair<std::string, std::uint64_t>> files{};  // name and size in bytes
  std::uint64_t tensor_count = 0;
  std::uint64_t raw_bytes = 0;     // of the tensors
  std::uint64_t object_count = 0;  // that went into __metadata__
  friend bool operator==(const ExportReport&, const ExportReport&) = default;
};

// Makes a model of a checkpoint. A path that ends in ".safetensors" becomes one file; any other a
// directory, which may exist: with model.safetensors, or with model-00001-of-… and an index if
// there is more than shard_size_max_bytes. Every byte of the checkpoint is verified before it is
// written. One pass; memory does not depend on the size. Files are made by NewFiles, an index last.
// Single process. Errors: AlreadyExists (a file of safetensors, or an index, is there
// already), NotFound (a pattern that matches nothing), Unsupported (a dtype, or a name, that
// safetensors lacks; a file system without exclusive publication), LimitExceeded (the header),
// those of Checkpoint::Read, NoSpace, Io. After an error no file is left. Durability: after success
// the files survive a crash.
SEALPOINT_EXPORT Result<ExportReport> ExportSafetensors(const Checkpoint& checkpoint,
                                                        const std::string& path,
                                                        const ExportOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_INTEROP_H_
