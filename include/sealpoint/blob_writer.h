// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_BLOB_WRITER_H_
#define SEALPOINT_BLOB_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/attributes.h"
#include "sealpoint/bytes.h"
#include "sealpoint/dtype.h"
#include "sealpoint/engine.h"
#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint {

class InternalAccess;  // internal to the library

// Describes a global tensor. All writers of this tensor pass the same description.
struct TensorSpec {
  std::string name{};          // 1 to 1024 bytes of UTF-8 without control characters
  DType dtype = DType::kNone;  // required
  Shape shape{};
  // Bytes per element. 0: the size of the dtype. Required if the dtype is not registered.
  std::uint32_t element_size = 0;
  // Size of a chunk. Each chunk is digested and encoded separately. The size is a power of two from
  // 4 KiB to 128 MiB, or to 16 MiB if a codec is set.
  std::uint64_t chunk_size_bytes = kChunkSizeDefaultBytes;
  Codec codec = Codec::kNone;
  int codec_level = 1;  // zstd level
  // Extents of the boxes in which the tensor is stored, one extent per dimension; 0: the whole
  // dimension. All writers cut regions at multiples of these extents, counted from the start of the
  // tensor. Each box is a shard with its own chunks. A read of a part of the tensor therefore reads
  // only the boxes that overlap this part. Empty (the default): a region is one shard in row-major
  // order. Set this option for tensors that are read in planes, columns or blocks. A box much
  // smaller than a chunk still needs its own chunk record. Boxes cut from runs rarely form a grid,
  // so Limits::box_list_shard_count_max limits their number.
  std::vector<std::uint64_t> stored_cuts{};
  // Tensors of different groups, for example weights and optimizer state, are stored in different
  // blobs.
  std::string group{};
  // Placement of the tensor on the writer's mesh. Stored only as provenance.
  std::vector<std::string> placement{};
  // Named values, such as a unit or the names of the dimensions. They do not affect the stored
  // bytes of the tensor. Readers of release 1.0.0 ignore attributes.
  Attributes attributes{};
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

// A named byte string.
struct ObjectSpec {
  std::string name{};
  std::string media_type = "application/octet-stream";
  Codec codec = Codec::kNone;
  friend bool operator==(const ObjectSpec&, const ObjectSpec&) = default;
};

class BlobSummary;
// Declared here because a friend declaration cannot be marked as exported.
SEALPOINT_EXPORT bool operator==(const BlobSummary& a, const BlobSummary& b);

// Summary of a finished blob: header, trailer and manifest. It is small compared to the payload.
// Send the summary to the process that commits; any transport is suitable.
class SEALPOINT_EXPORT BlobSummary {
 public:
  // Creates an empty summary, which Commit refuses.
  BlobSummary() = default;

  BlobId blob() const;
  std::uint64_t file_size_bytes() const;
  std::uint64_t raw_bytes() const;
  // The bytes of the manifest in the blob. Valid while this summary or a copy of the summary
  // exists.
  ByteSpan manifest() const&;
  ByteSpan manifest() const&& = delete;

  Bytes Serialize() const;
  // Creates a summary from the output of Serialize. Verifies the bytes against all digests and
  // lengths that they contain; later uses of the summary or its copies do not repeat this check.
  // Errors: Corrupt, Unsupported, LimitExceeded.
  static Result<BlobSummary> Deserialize(ByteSpan bytes, const Limits& limits = {});

  // True if the serialized bytes are equal.
  friend bool operator==(const BlobSummary& a, const BlobSummary& b);

 private:
  friend class InternalAccess;
  struct Decoded;
  std::shared_ptr<const Decoded> decoded_;
};

// Converts a list of summaries to one byte string and back, so that the list can be sent through a
// pipe or a gather.
SEALPOINT_EXPORT Bytes SerializeSummaries(const std::vector<BlobSummary>& summaries);
SEALPOINT_EXPORT Result<std::vector<BlobSummary>> DeserializeSummaries(ByteSpan bytes,
                                                                       const Limits& limits = {});

struct BlobWriterOptions {
  // Maximum size of a blob in bytes, at least 1 MiB. If more data would make the current blob
  // exceed the maximum, the writer starts a new blob. Shards larger than the maximum are split into
  // runs at chunk boundaries. A blob exceeds the maximum only if a single chunk or object is too
  // large.
  std::uint64_t size_max_bytes = 64 * kGiB;
  // The attempt that the blobs belong to; zero if the attempt is unknown.
  AttemptId attempt{};
  std::uint64_t step = kNoStep;
  Limits limits{};
  // Store the fingerprint of each tensor (fingerprint.h). Fingerprints are computed in the same
  // pass as copies and digests. Readers of release 1.0.0 ignore fingerprints.
  bool fingerprints = false;
  // Set by a save that has a base (SaveOptions::base). The blobs may then hold changes, and belong
  // to a checkpoint with a base.
  bool has_base = false;
  // Called on the thread that calls the writer, with the number of payload bytes staged so far.
  std::function<void(std::uint64_t bytes)> on_bytes;
};

// Writes the shards and objects of one process into blobs in an existing directory. Needs no
// communicator. Any number of writers may use the same directory simultaneously.
//
// Thread safety: one call at a time for each writer; different writers are independent. After the
// first error, every call returns this error. If a writer was created before a fork, its calls
// return InvalidArgument in the child process.
class SEALPOINT_EXPORT BlobWriter {
 public:
  // Creates a writer. The first file is created when the first byte is added. Errors:
  // InvalidArgument, NotFound, Io.
  static Result<std::unique_ptr<BlobWriter>> Create(Engine& engine, const std::string& directory,
                                                    BlobWriterOptions options = {});
  // Removes the files unless Finish succeeded.
  virtual ~BlobWriter() = default;
  BlobWriter(const BlobWriter&) = delete;
  BlobWriter& operator=(const BlobWriter&) = delete;

  // Stores a region of the tensor. `source` holds the elements of the region. The bytes are copied
  // during the call, so the source may change afterwards. If the region has no elements, nothing is
  // stored and `source` is ignored. To declare a tensor that has no elements (an extent is 0), call
  // AddEmpty, or Add with an empty region. Errors: InvalidArgument (region; name; memory that is
  // null or of the wrong size or dtype; a dtype, shape, chunk size or placement that differs from
  // an earlier call; more groups than the engine's staging buffers allow), NoSpace, Io. Add does
  // not detect repeated or overlapping regions. Finish detects a region that occurs twice in one
  // blob, and Commit detects all holes and overlaps.
  virtual Status Add(const TensorSpec& tensor, const Region& region, const MemoryView& source) = 0;
  virtual Status AddEmpty(const TensorSpec& tensor) = 0;
  // Stores an object in the blob of group "". The bytes are copied during the call. Errors:
  // InvalidArgument (name, media type, null memory, an object that was already added), NoSpace, Io.
  virtual Status AddObject(const ObjectSpec& object, ByteSpan bytes) = 0;

  // Makes all blobs durable: writes tables, manifests and trailers, syncs and closes the files, and
  // syncs the directory. The call also reports errors of close. Returns one summary per blob, in
  // the order in which the blobs were created, or an empty list if nothing was added. After this
  // call, only Abandon may be called. Durability: after success the blobs survive a crash, but only
  // Commit makes them a checkpoint.
  virtual Result<std::vector<BlobSummary>> Finish() = 0;
  // Removes the writer's files. May be called after Finish if the attempt failed in a different
  // process. After Finish, the call removes nothing and returns InvalidArgument (R-CMT-15) if a
  // checkpoint may need the files. This is the case if the directory has a marker that may belong
  // to this attempt, or files of an unfinished commit of this attempt.
  virtual Status Abandon() = 0;

 protected:
  BlobWriter() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_BLOB_WRITER_H_
