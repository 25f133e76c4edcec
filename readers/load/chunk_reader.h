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
#include "readers/load/base_chunks.h"
#include "readers/load/range_files.h"
#include "readers/load/read_plan_data.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::load {

class CheckpointImpl;

// Memory for decoding chunks, kept from chunk to chunk. `below` is for chunks of the base. The
// decoders of all bases share the chunks.
struct ChunkDecoder {
  codec::ChunkCodec codec;
  digest::Hasher hasher{};
  Bytes decoded{};
  std::unique_ptr<ChunkDecoder> below{};
  std::shared_ptr<BaseChunks> base_chunks{};  // null in the decoder of the delta
  bool is_of_first_base = false;              // of the base of the delta that the user reads
};

// State shared by the readers of one plan.
struct PlanSource {
  const ReadPlanData& plan;
  std::span<const transfer::PlanRange> ranges;  // ranges to read: all of the plan, or parts of them
  const metadata::Metadata& index;
  std::string directory_path;  // for errors
  RangeFiles& files;
  device::StagingPool& pool;
  std::shared_ptr<device::DeviceRuntime> device;
  const CheckpointImpl* base = nullptr;  // of a delta
  bool holds_base = false;               // see ReadOptions
};

// Reads ranges and verifies their chunks. One per thread: it keeps the decoder. Errors
// have rule, tensor, file and offset: Corrupt (R-CHK-01, R-CHK-02, R-COD-*), Incomplete, Io; those
// of the delivery.
class ChunkReader final : public transfer::RangeFetcher {
 public:
  // `decoder`: borrowed; null: one of its own.
  explicit ChunkReader(const PlanSource& source, ChunkDecoder* decoder = nullptr)
      : source_(source),
        own_decoder_(decoder == nullptr ? std::make_unique<ChunkDecoder>() : nullptr),
        decoder_(decoder == nullptr ? *own_decoder_ : *decoder) {}

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
  // With Codec::kChanges: into `raw`, which holds the base bytes if `holds_base`.
  Status DecodeChanges(const transfer::PlanChunk& chunk, ByteSpan verified, bool holds_base,
                       MutableByteSpan raw);
  // The destination that holds the base bytes of exactly this chunk; empty if there is none.
  MutableByteSpan HeldBase(const transfer::PlanChunk& chunk) const;

  const PlanSource& source_;
  std::unique_ptr<ChunkDecoder> own_decoder_;
  ChunkDecoder& decoder_;
  digest::Hasher hasher_;
};

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_CHUNK_READER_H_
