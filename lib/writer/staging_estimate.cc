// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/staging_estimate.h"

#include <algorithm>

#include "lib/base/checked_math.h"
#include "lib/format/constants.h"
#include "lib/writer/blob_layout.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint::internal::writer {

void StagingEstimate::AddShard(const TensorSpec& tensor, std::uint64_t raw_size) {
  AddEmpty(tensor);
  // StateWriter::AddChecked cuts a shard that is larger than a blob into parts of at least half
  // a blob, or of a chunk.
  const std::uint64_t part = std::max(blob_size_max_ / 2, tensor.chunk_size_bytes);
  const std::uint64_t parts = raw_size / part + 1;
  streamed_ += raw_size + parts * format::kLargeShardAlignment;
  projected_ +=
      BlobLayout::RoomForBytes({.raw_size = raw_size, .chunk_size = tensor.chunk_size_bytes}) +
      parts * BlobLayout::RoomToDeclare(AttributesOf(tensor));
}

void StagingEstimate::AddEmpty(const TensorSpec& tensor) {
  projected_ += BlobLayout::RoomToDeclare(AttributesOf(tensor));
  if (!groups_.contains(tensor.group)) groups_.insert(tensor.group);
}

void StagingEstimate::AddObject(const ObjectSpec& object, std::uint64_t raw_size) {
  streamed_ += raw_size + format::kLargeShardAlignment;
  projected_ +=
      BlobLayout::RoomForBytes({.raw_size = raw_size, .chunk_size = kChunkSizeDefaultBytes}) +
      BlobLayout::RoomToDeclare(object);
  groups_.insert("");
}

// An upper bound: with fewer buffers the writer, which may not write before Bind, would wait for
// one for ever. A blob is closed when what it holds and the next part together pass the limit. Each
// part is counted so at most twice, hence at most two closed blobs per limit of what is projected.
// Each blob, closed or not, leaves a buffer partly filled.
std::uint64_t StagingEstimate::buffer_count(std::uint64_t part_buffer_count) const {
  const std::uint64_t overhead =
      format::kHeaderSize + format::kTrailerSize + format::kFileAlignment;
  const std::uint64_t room =
      std::max(blob_size_max_ - std::min(blob_size_max_ / 2, overhead), std::uint64_t{1});
  const std::uint64_t blobs = groups_.size() + 2 * projected_ / room;
  return DivideRoundUp(streamed_ + blobs * format::kHeaderSize, buffer_size_) +
         blobs * (1 + part_buffer_count);
}

}  // namespace sealpoint::internal::writer
