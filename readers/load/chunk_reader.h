// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_CHUNK_READER_H_
#define SEALPOINT_READERS_LOAD_CHUNK_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "lib/codec/chunk_codec.h"
#include "lib/container/blob_files.h"
#include "lib/device/device_runtime.h"
#include "lib/device/staging_pool.h"
#include "lib/digest/hasher.h"
#include "readers/load/read_plan_data.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// What the readers of one plan share.
struct PlanSource {
  const ReadPlanData& plan;
  std::span<const PlanRange> ranges;  // those that are read: all of the plan, or parts of them
  const Metadata& index;
  std::string directory_path;  // for errors
  BlobFiles& files;
  StagingPool& pool;
  std::shared_ptr<DeviceRuntime> device;
};

// Fetches ranges and verifies their chunks. One per thread: it keeps the decoder and a buffer.
// Errors carry rule, tensor, file and offset: Corrupt (R-CHK-01, R-CHK-02, R-COD-*), Incomplete,
// Io.
class ChunkReader {
 public:
  explicit ChunkReader(const PlanSource& source) : source_(source) {}

  // Calls `take` with the verified raw bytes of each chunk, in order. They are valid during the
  // call.
  using Take = std::function<Status(const PlanChunk& chunk, ByteSpan raw)>;
  Status ReadRange(const PlanRange& range, const Take& take);
  // The same over `memory` of the caller, of at least ReadPlanData::range_pages_max: raw bytes of
  // chunks without a codec lie in it, and stay valid until it changes.
  Status ReadRangeInto(MutableByteSpan memory, const PlanRange& range, const Take& take);
  // Reads the range where its bytes belong and verifies them there; false if the file is opened
  // for direct I/O, which needs aligned memory.
  // Precondition: range.in_place.
  Result<bool> ReadInPlace(const PlanRange& range);

  // The error with the place of the chunk; what an inner frame named stays.
  Status At(const PlanRange& range, const PlanChunk& chunk, Status error) const;

 private:
  Status ReadInPieces(const ReadableFile& file, const PlanRange& range, const Take& take);
  // Reads chunks of the range, which lie back to back, to `to`, and compares their stored bytes
  // with their digests.
  Status Fetch(const ReadableFile& file, const PlanRange& range, std::span<const PlanChunk> chunks,
               MutableByteSpan to);
  Status Deliver(const PlanRange& range, ByteSpan bytes, const Take& take);
  Result<ByteSpan> Verify(const PlanChunk& chunk, ByteSpan stored);
  // The raw bytes of stored ones that were compared, compared in turn if they had to be decoded.
  Result<ByteSpan> Decode(const PlanChunk& chunk, ByteSpan verified);

  const PlanSource& source_;
  ChunkCodec codec_;
  Hasher hasher_;
  Bytes decoded_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_LOAD_CHUNK_READER_H_
