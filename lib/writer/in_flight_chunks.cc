// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/in_flight_chunks.h"

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"

namespace sealpoint::internal {

void InFlightChunks::BeginChunk(const ChunkRecord& record, std::size_t number,
                                const Digest* expected) {
  chunks_.push_back({record, number, expected, record.raw_size});
}

void InFlightChunks::AddBytes(ByteSpan bytes, std::uint64_t offset,
                              const DeviceCopies::Point& arrival) {
  parts_.push_back({bytes, offset, arrival});
}

std::optional<std::uint64_t> InFlightChunks::first_offset() const {
  if (parts_.empty()) return std::nullopt;
  return parts_.front().offset;
}

Status InFlightChunks::CompleteOldest(MutableByteSpan records) {
  SEALPOINT_CHECK(!parts_.empty() && !chunks_.empty());
  const Part part = parts_.front();
  SEALPOINT_RETURN_IF_ERROR(copies_.Wait(part.arrival));
  hasher_.Update(part.bytes);
  parts_.pop_front();
  Chunk& chunk = chunks_.front();
  chunk.bytes_left -= part.bytes.size();
  if (chunk.bytes_left > 0) return {};
  chunk.record.raw_digest = hasher_.Finish();
  const Status status = CheckArrived(chunk.record.raw_digest, chunk.expected);
  EncodeRecord(chunk.record, records.subspan(chunk.number * kRecordSize, kRecordSize));
  chunks_.pop_front();
  return status;
}

Status CheckArrived(const Digest& found, const Digest* expected) {
  if (expected == nullptr || found == *expected) return {};
  return MakeError(Code::kDevice,
                   "device copy corrupted: digest mismatch, computed in device memory ",
                   expected->ToHex(), ", of the copy ", found.ToHex());
}

}  // namespace sealpoint::internal
