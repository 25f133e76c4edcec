// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_CHUNK_READER_H_
#define SEALPOINT_READERS_LOAD_CHUNK_READER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/codec/chunk_codec.h"
#include "lib/device/device_runtime.h"
#include "lib/device/staging_pool.h"
#include "lib/digest/hasher.h"
#include "lib/transfer/delivery.h"
#include "readers/load/range_files.h"
#include "readers/load/read_plan_data.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::load {

// State shared by the readers of one plan.
struct PlanSource {
  const ReadPlanData& plan;
  std::span<const transfer::PlanRange> ranges;  // ranges to read: all of the plan, or parts of them
  const metadata::Metadata& index;
  std::string directory_path;  // for errors
  RangeFiles& files;
  device::StagingPool& pool;
  std::shared_ptr<device::DeviceRuntime> device;
};

// Reads ranges and verifies their chunks. One per thread: it keeps the decoder and a buffer. Errors
// have rule, tensor, file and offset: Corrupt (R-CHK-01, R-CHK-02, R-COD-*), Incomplete, Io; those
// of the delivery.
class ChunkReader final : public transfer::RangeFetcher {
 public:
  explicit ChunkReader(const PlanSource& source) : source_(source) {}

  Status Fetch(const transfer::PlanRange& range, transfer::Delivery& delivery) override;
  Status At(const transfer::PlanChunk& chunk, Status error) const override;

 private:
  Status FetchToMemory(MutableByteSpan memory, const transfer::PlanRange& range,
                       transfer::Delivery& delivery);
  Status FetchToScratch(const transfer::PlanRange& range, transfer::Delivery& delivery);
  Status FetchInPieces(const ReadableFile& file, const transfer::PlanRange& range,
                       transfer::Delivery& delivery);
  // Reads adjacent chunks of the range to `to`, and compares their stored bytes with their digests.
  Status Read(const ReadableFile& file, std::span<const transfer::PlanChunk> chunks,
              MutableByteSpan to);
  Status VerifyAll(const transfer::PlanRange& range, ByteSpan bytes, transfer::Delivery& delivery);
  // The raw bytes of stored ones that were compared, compared in turn if they had to be decoded,
  // go to the delivery.
  Status Deliver(const transfer::PlanChunk& chunk, ByteSpan verified, transfer::Delivery& delivery);
  Result<ByteSpan> Decode(const transfer::PlanChunk& chunk, ByteSpan verified);

  const PlanSource& source_;
  codec::ChunkCodec codec_;
  digest::Hasher hasher_;
  Bytes decoded_;
};

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_CHUNK_READER_H_
