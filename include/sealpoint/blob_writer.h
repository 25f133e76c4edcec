// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_BLOB_WRITER_H_
#define SEALPOINT_BLOB_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/codec.h"
#include "sealpoint/dtype.h"
#include "sealpoint/engine.h"
#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint {

class InternalAccess;  // the library's own modules

// The global tensor. All writers of a checkpoint state the same values for the same name.
struct TensorSpec {
  std::string name{};          // 1 to 1024 bytes of UTF-8 without control characters
  DType dtype = DType::kNone;  // has to be set
  Shape shape{};
  // Bytes per element; 0: that of the registered dtype. Needed for a dtype id that is not
  // registered.
  std::uint32_t element_size = 0;
  // Unit of digest and codec: a power of two, 4 KiB to 128 MiB, with a codec to 16 MiB.
  std::uint64_t chunk_size_bytes = kChunkSizeDefaultBytes;
  Codec codec = Codec::kNone;
  int codec_level = 1;  // zstd's
  // Writers put tensors of different groups into different blobs (weights apart from optimizer
  // state).
  std::string group{};
  // Provenance only: how the tensor is placed on the writer's mesh.
  std::vector<std::string> placement{};
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

class BlobSummary;
// Said here, because a friend's own declaration cannot say that it is exported.
SEALPOINT_EXPORT bool operator==(const BlobSummary& a, const BlobSummary& b);

// What one finished blob holds: its header, trailer and manifest. Small beside the payload; may
// travel to the committing process by any means.
class SEALPOINT_EXPORT BlobSummary {
 public:
  // An empty summary, which Commit refuses.
  BlobSummary() = default;

  BlobId blob() const;
  std::uint64_t file_size_bytes() const;
  std::uint64_t raw_bytes() const;
  // The manifest as stored in the blob; valid while this summary or a copy lives.
  ByteSpan manifest() const&;
  ByteSpan manifest() const&& = delete;

  Bytes Serialize() const;
  // Verifies everything the bytes pin of themselves, once; copies of the summary share the result.
  // Errors: Corrupt, Unsupported, LimitExceeded.
  static Result<BlobSummary> Deserialize(ByteSpan bytes, const Limits& limits = {});

  // By the serialized bytes.
  friend bool operator==(const BlobSummary& a, const BlobSummary& b);

 private:
  friend class InternalAccess;
  struct Decoded;
  std::shared_ptr<const Decoded> decoded_;
};

// Lists of summaries as one byte string, for a pipe or a gather.
SEALPOINT_EXPORT Bytes SerializeSummaries(const std::vector<BlobSummary>& summaries);
SEALPOINT_EXPORT Result<std::vector<BlobSummary>> DeserializeSummaries(ByteSpan bytes,
                                                                       const Limits& limits = {});

struct BlobWriterOptions {
  // A blob is closed and the next one begun before it would pass this. A larger shard is cut into
  // runs at chunk borders; one chunk or one object that is larger makes a blob that passes it. At
  // least 1 MiB.
  std::uint64_t size_max_bytes = 64 * kGiB;
  // Zero if the attempt is not known yet.
  AttemptId attempt{};
  std::uint64_t step = kNoStep;
  Limits limits{};
  // Called on the caller's thread with the payload bytes staged so far.
  std::function<void(std::uint64_t bytes)> on_progress;
};

// Writes shards and objects of one process into blobs in one existing directory. Needs no
// communicator; any number of writers may work in one directory at the same time.
//
// Thread safety: one call at a time; different writers are independent. After the first error every
// call returns that error. Not usable in a child after fork (InvalidArgument).
class SEALPOINT_EXPORT BlobWriter {
 public:
  // Nothing is created before the first byte is added. Errors: InvalidArgument, NotFound, Io.
  static Result<std::unique_ptr<BlobWriter>> Create(Engine& engine, const std::string& directory,
                                                    BlobWriterOptions options = {});
  // Abandons: files of an unfinished writer are removed.
  virtual ~BlobWriter() = default;
  BlobWriter(const BlobWriter&) = delete;
  BlobWriter& operator=(const BlobWriter&) = delete;

  // Stores `region` of the tensor from `source`. The bytes are taken during the call: when it
  // returns, the source may change. Of a region without elements nothing is stored, and the source
  // is not looked at. An empty tensor (an extent of 0) is declared by AddEmpty, or by such a
  // region. Errors: InvalidArgument (region, name; null memory, or of another size or dtype;
  // another dtype, shape, chunk size or placement than before; more groups than the engine's
  // staging buffers allow), NoSpace, Io. Holes and overlaps are found by Commit, which sees all
  // blobs; the same region twice in one blob already by Finish.
  virtual Status Add(const TensorSpec& tensor, const Region& region, const MemoryView& source) = 0;
  virtual Status AddEmpty(const TensorSpec& tensor) = 0;
  // Stores a named byte string, taken during the call. Objects go to the blob group "".
  // Errors: InvalidArgument (name, media type, null memory, added before), NoSpace, Io.
  virtual Status AddObject(std::string_view name, std::string_view media_type, ByteSpan bytes,
                           Codec codec = Codec::kNone) = 0;

  // Makes everything durable: writes tables, manifests and trailers, syncs and closes the files
  // (close is checked), syncs the directory. One summary per blob, in order of creation; none if
  // nothing was added. The last call. Durability: the blobs survive a crash; no checkpoint exists
  // before Commit.
  virtual Result<std::vector<BlobSummary>> Finish() = 0;
  // Removes the files; also after Finish, for a caller that learned that the attempt failed. Files
  // that a checkpoint may need stay: after Finish, InvalidArgument (R-CMT-15) if the directory has
  // a marker that may be of this attempt, or what a commit of it wrote and has not removed.
  virtual Status Abandon() = 0;

 protected:
  BlobWriter() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_BLOB_WRITER_H_
