// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/in_flight_chunks.h"

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal {

void InFlightChunks::BeginChunk(const SourceChunk& chunk, std::size_t record) {
  chunks_.push_back({record, chunk.expected, chunk.raw_size});
}

void InFlightChunks::AddBytes(ByteSpan bytes, std::uint64_t offset,
                              const DeviceCopies::Point& arrival) {
  parts_.push_back({bytes, offset, arrival});
}

std::optional<std::uint64_t> InFlightChunks::first_offset() const {
  if (parts_.empty()) return std::nullopt;
  return parts_.front().offset;
}

Status InFlightChunks::CompleteOldest(BlobLayout& layout) {
  SEALPOINT_CHECK(!parts_.empty() && !chunks_.empty());
  const Part part = parts_.front();
  SEALPOINT_RETURN_IF_ERROR(copies_.Wait(part.arrival));
  hasher_.Update(part.bytes);
  parts_.pop_front();
  Chunk& chunk = chunks_.front();
  chunk.bytes_left -= part.bytes.size();
  if (chunk.bytes_left > 0) return {};
  const Digest digest = hasher_.Finish();
  const Status status = CheckArrived(digest, chunk.expected);
  layout.SetDigest(chunk.record, digest);
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
