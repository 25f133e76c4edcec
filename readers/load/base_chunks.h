// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_BASE_CHUNKS_H_
#define SEALPOINT_READERS_LOAD_BASE_CHUNKS_H_

#include <cstdint>
#include <list>
#include <map>
#include <tuple>

#include "lib/transfer/delivery.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::load {

class CheckpointImpl;

// Decoded chunks of the bases of a delta, the ones used last. A chunk of a delta may lie in many
// chunks of its base, and each of these in many chunks of the next base: a reader that keeps none
// decodes a power of the depth. Thread safety: one thread at a time.
class BaseChunks {
 public:
  // `size_max` bounds the kept bytes; the chunk that was added last stays in any case. Decoding
  // `free_bytes` is never an error.
  explicit BaseChunks(std::uint64_t size_max, std::uint64_t free_bytes = 16 * kGiB)
      : size_max_(size_max), free_bytes_(free_bytes) {}

  // The user reads so many base bytes.
  void Needs(std::uint64_t size) { needed_bytes_ += size; }
  std::uint64_t decoded_bytes() const { return decoded_bytes_; }

  // The raw bytes of a chunk, until the next Keep; empty if they are not kept.
  ByteSpan Find(const CheckpointImpl& base, const transfer::PlanChunk& chunk);
  // Counts a chunk before it is decoded. Errors: LimitExceeded (the same chunks were decoded over
  // and over).
  Status CountDecoded(const transfer::PlanChunk& chunk);
  // Copies the raw bytes. Errors: those of an allocation.
  Status Keep(const CheckpointImpl& base, const transfer::PlanChunk& chunk, ByteSpan raw);

 private:
  using Key = std::tuple<const CheckpointImpl*, std::uint32_t, std::uint32_t>;  // blob, record
  struct Kept {
    Key key;
    Bytes raw;
  };
  static Key KeyOf(const CheckpointImpl& base, const transfer::PlanChunk& chunk) {
    return {&base, chunk.blob, chunk.record};
  }

  const std::uint64_t size_max_;
  const std::uint64_t free_bytes_;
  std::uint64_t needed_bytes_ = 0;
  std::uint64_t decoded_bytes_ = 0;
  std::uint64_t kept_bytes_ = 0;
  std::list<Kept> kept_{};  // the chunk that was used last comes first
  std::map<Key, std::list<Kept>::iterator> by_key_{};
};

// Passes chunks on, and keeps them.
class KeepingDelivery final : public transfer::Delivery {
 public:
  KeepingDelivery(const CheckpointImpl& base, BaseChunks& chunks, transfer::Delivery& inner)
      : base_(base), chunks_(chunks), inner_(inner) {}

  Result<transfer::FetchTarget> Prepare(const transfer::PlanRange& range,
                                        transfer::RangeFetcher& fetcher) override {
    return inner_.Prepare(range, fetcher);
  }
  Status Begin(const transfer::PlanChunk& chunk, ByteSpan raw) override;

 private:
  const CheckpointImpl& base_;
  BaseChunks& chunks_;
  transfer::Delivery& inner_;
};

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_BASE_CHUNKS_H_
