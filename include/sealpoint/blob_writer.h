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

class InternalAccess;  // internal to the library

// A global tensor. All writers of a checkpoint pass the same values for the same name.
struct TensorSpec {
  std::string name{};          // 1 to 1024 bytes of UTF-8 without control characters
  DType dtype = DType::kNone;  // required
  Shape shape{};
  // Bytes per element; 0: the size of the registered dtype. Required for a dtype id that is not
  // registered.
  std::uint32_t element_size = 0;
  // Unit of digest and codec: a power of two from 4 KiB to 128 MiB, or to 16 MiB with a codec.
  std::uint64_t chunk_size_bytes = kChunkSizeDefaultBytes;
  Codec codec = Codec::kNone;
  int codec_level = 1;  // zstd level
  // Tensors of different groups are stored in different blobs (for example weights and optimizer
  // state).
  std::string group{};
  // Placement of the tensor on the writer's mesh. Provenance only.
  std::vector<std::string> placement{};
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

class BlobSummary;
// Declared here because a friend declaration cannot be marked as exported.
SEALPOINT_EXPORT bool operator==(const BlobSummary& a, const BlobSummary& b);

// Summary of a finished blob: header, trailer and manifest. Small compared to the payload; send it
// to the committing process by any means.
class SEALPOINT_EXPORT BlobSummary {
 public:
  // An empty summary; Commit refuses it.
  BlobSummary() = default;

  BlobId blob() const;
  std::uint64_t file_size_bytes() const;
  std::uint64_t raw_bytes() const;
  // The manifest as stored in the blob; valid while this summary or a copy of it exists.
  ByteSpan manifest() const&;
  ByteSpan manifest() const&& = delete;

  Bytes Serialize() const;
  // Verifies the bytes against all digests and lengths they contain, once; copies share the result.
  // Errors: Corrupt, Unsupported, LimitExceeded.
  static Result<BlobSummary> Deserialize(ByteSpan bytes, const Limits& limits = {});

  // Compares the serialized bytes.
  friend bool operator==(const BlobSummary& a, const BlobSummary& b);

 private:
  friend class InternalAccess;
  struct Decoded;
  std::shared_ptr<const Decoded> decoded_;
};

// Converts a list of summaries to and from one byte string, for a pipe or a gather.
SEALPOINT_EXPORT Bytes SerializeSummaries(const std::vector<BlobSummary>& summaries);
SEALPOINT_EXPORT Result<std::vector<BlobSummary>> DeserializeSummaries(ByteSpan bytes,
                                                                       const Limits& limits = {});

struct BlobWriterOptions {
  // Maximum size of a blob in bytes; the next blob is started before it would be exceeded. Larger
  // shards are split into runs at chunk boundaries. A single larger chunk or object exceeds the
  // limit. At least 1 MiB.
  std::uint64_t size_max_bytes = 64 * kGiB;
  // Zero if the attempt is unknown.
  AttemptId attempt{};
  std::uint64_t step = kNoStep;
  Limits limits{};
  // Called on the caller's thread with the number of payload bytes staged so far.
  std::function<void(std::uint64_t bytes)> on_bytes;
};

// Writes shards and objects of one process into blobs in one existing directory. Needs no
// communicator; any number of writers may use the same directory simultaneously.
//
// Thread safety: one call at a time; different writers are independent. After the first error every
// call returns that error. Not usable in a child after fork (InvalidArgument).
class SEALPOINT_EXPORT BlobWriter {
 public:
  // Creates no file before the first byte is added. Errors: InvalidArgument, NotFound, Io.
  static Result<std::unique_ptr<BlobWriter>> Create(Engine& engine, const std::string& directory,
                                                    BlobWriterOptions options = {});
  // Removes the files of an unfinished writer.
  virtual ~BlobWriter() = default;
  BlobWriter(const BlobWriter&) = delete;
  BlobWriter& operator=(const BlobWriter&) = delete;

  // Stores `region` of the tensor from `source`. The bytes are copied during the call; the source
  // may change afterwards. A region without elements stores nothing and its source is ignored.
  // Declare an empty tensor (an extent of 0) with AddEmpty or with such a region. Errors:
  // InvalidArgument (region; name; memory that is null or of the wrong size or dtype; a dtype,
  // shape, chunk size or placement that differs from an earlier call; more groups than the engine's
  // staging buffers allow), NoSpace, Io. Finish detects a repeated region in one blob; Commit
  // detects all holes and overlaps.
  virtual Status Add(const TensorSpec& tensor, const Region& region, const MemoryView& source) = 0;
  virtual Status AddEmpty(const TensorSpec& tensor) = 0;
  // Stores a named byte string, which is copied during the call. Objects are stored in blob group
  // "". Errors: InvalidArgument (name, media type, null memory, already added), NoSpace, Io.
  virtual Status AddObject(std::string_view name, std::string_view media_type, ByteSpan bytes,
                           Codec codec = Codec::kNone) = 0;

  // Makes all blobs durable: writes tables, manifests and trailers, syncs and closes the files (the
  // result of close is checked), and syncs the directory. Returns one summary per blob in order of
  // creation; none if nothing was added. Must be the last call. Durability: the blobs survive a
  // crash; they become a checkpoint only by Commit.
  virtual Result<std::vector<BlobSummary>> Finish() = 0;
  // Removes the files. May be called after Finish if the attempt failed elsewhere. Files that a
  // checkpoint may need are kept: after Finish it returns InvalidArgument (R-CMT-15) if the
  // directory has a marker that may belong to this attempt, or files of an unfinished commit of it.
  virtual Status Abandon() = 0;

 protected:
  BlobWriter() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_BLOB_WRITER_H_
