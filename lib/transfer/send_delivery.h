// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_SEND_DELIVERY_H_
#define SEALPOINT_LIB_TRANSFER_SEND_DELIVERY_H_

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "lib/transfer/chunk_parts.h"
#include "lib/transfer/delivery.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::transfer {

// Puts the requested parts of chunks into messages to other ranks, and hands the chunks on to the
// delivery of this rank.
class SendDelivery final : public Delivery {
 public:
  // A place in a message, for parts of a chunk.
  struct Part {
    const ChunkParts* parts = nullptr;
    MutableByteSpan to{};
  };
  struct Chunk {
    std::size_t number = 0;      // in the plan
    std::size_t first_part = 0;  // in `parts`
    std::size_t part_count = 0;
    Bytes* kept = nullptr;  // receives the raw bytes if more of them is sent later
    // Receives the raw bytes if another thread uses the local delivery; empty if they were read in
    // place.
    Bytes* held = nullptr;
  };
  // All expected chunks, ascending. `local` must outlive this object.
  SendDelivery(const DeliveryPlan& plan, std::vector<Chunk> chunks, std::vector<Part> parts,
               Delivery& local)
      : plan_(plan), chunks_(std::move(chunks)), parts_(std::move(parts)), local_(local) {}

  // Puts the raw bytes' parts into the messages.
  static void Pack(const Chunk& sent, std::span<const Part> parts, ByteSpan raw);

  bool reads_in_place() const override { return local_.reads_in_place(); }
  Result<FetchTarget> Prepare(const PlanRange& range, RangeFetcher& fetcher) override {
    return local_.Prepare(range, fetcher);
  }
  Status Begin(const PlanChunk& chunk, ByteSpan raw) override;
  void InPlace(const PlanRange& range) override;

 private:
  const Chunk& Send(const PlanChunk& chunk, ByteSpan raw) const;

  const DeliveryPlan& plan_;
  const std::vector<Chunk> chunks_;
  const std::vector<Part> parts_;
  Delivery& local_;
};

// Delivers the requested parts of a chunk from another rank to `local`. `scratch` is for parts that
// must first be moved to their position in the chunk.
Status DeliverParts(const DeliveryPlan& plan, const PlanChunk& chunk, const ChunkParts& parts,
                    ByteSpan packed, Bytes& scratch, Delivery& local);

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_SEND_DELIVERY_H_
