// SPDX-License-Identifier: Apache-2.0
#include "lib/transfer/send_delivery.h"

#include <algorithm>

#include "lib/layout/box_copy.h"

namespace sealpoint::internal::transfer {

void SendDelivery::Pack(const Chunk& sent, std::span<const Part> parts, ByteSpan raw) {
  for (const Part& part : parts.subspan(sent.first_part, sent.part_count)) {
    part.parts->Pack(raw, part.to);
  }
}

const SendDelivery::Chunk& SendDelivery::Send(const PlanChunk& chunk, ByteSpan raw) const {
  const auto number = static_cast<std::size_t>(&chunk - plan_.chunks.data());
  const Chunk& sent = *std::ranges::lower_bound(chunks_, number, {}, &Chunk::number);
  Pack(sent, parts_, raw);
  if (sent.kept != nullptr) sent.kept->assign(raw.begin(), raw.end());
  return sent;
}

Status SendDelivery::Begin(const PlanChunk& chunk, ByteSpan raw) {
  const Chunk& sent = Send(chunk, raw);
  if (sent.held == nullptr) return local_.Begin(chunk, raw);
  sent.held->assign(raw.begin(), raw.end());
  return {};
}

void SendDelivery::InPlace(const PlanRange& range) {
  const ByteSpan bytes(range.in_place, range.size);
  for (const PlanChunk& chunk : plan_.ChunksOf(range)) {
    Send(chunk, bytes.subspan(chunk.offset - range.offset, chunk.raw_size));
  }
}

Status DeliverParts(const DeliveryPlan& plan, const PlanChunk& chunk, const ChunkParts& parts,
                    ByteSpan packed, Bytes& scratch, Delivery& local) {
  if (packed.size() == chunk.raw_size) return local.Begin(chunk, packed);
  if (chunk.copy_count == 1) {
    const PlanCopy& copy = plan.CopiesOf(chunk).front();
    if (copy.way() == CopyWay::kCopy || copy.way() == CopyWay::kScatter) {
      // A plan's copies take their source forwards, each element once.
      copy.With([&](const layout::StridedCopy& strided) {
        layout::RunStridedCopy(layout::CopyFromPacked(strided), packed.data(), copy.target());
      });
      return {};
    }
  }
  if (scratch.size() < chunk.raw_size) scratch.resize(chunk.raw_size);
  const MutableByteSpan raw = MutableByteSpan(scratch).first(chunk.raw_size);
  parts.Unpack(packed, raw);
  return local.Begin(chunk, raw);
}

}  // namespace sealpoint::internal::transfer
