// SPDX-License-Identifier: Apache-2.0
#include "lib/transfer/source_reader.h"

#include <algorithm>

#include "lib/base/macros.h"
#include "lib/layout/box_copy.h"
#include "lib/layout/region_algebra.h"

namespace sealpoint::internal::transfer {
namespace {

// How much strided memory is gathered at a time: small enough for the second use to hit the cache.
constexpr std::uint64_t kGatherSizeBytes = 64 * kKiB;

}  // namespace

SourceReader::SourceReader(const Region& region, std::uint32_t element_size,
                           const MemoryView& source)
    : region_(region),
      element_size_(element_size),
      source_(source),
      is_dense_(source.strides_bytes.empty() ||
                source.strides_bytes == layout::DenseStridesBytes(region.box.extent, element_size)),
      end_(region.element_count() * element_size) {
  if (!is_dense_ && source.is_host()) gathered_.resize(std::min(kGatherSizeBytes, end_));
  // With strides the memory is that of the whole box, without them that of the run.
  if (source.is_dense()) return;
  source_.data += source.origin_bytes;
  if (is_dense_) source_.data += region.run.begin * element_size;
}

SourceReader::SourceReader(ByteSpan bytes) : source_(MemoryView::Host(bytes)), end_(bytes.size()) {}

ByteSpan SourceReader::Next(std::uint64_t size_max) {
  if (is_dense_) {
    const std::uint64_t size = std::min(size_max, remaining_bytes());
    const ByteSpan bytes(source_.data + position_, size);
    position_ += size;
    return bytes;
  }
  const std::uint64_t size =
      std::min({size_max, remaining_bytes(), static_cast<std::uint64_t>(gathered_.size())});
  const Region piece =
      layout::SubRun(region_, position_ / element_size_, (position_ + size) / element_size_);
  for (const Box& part : layout::DecomposeRun(piece)) {
    const layout::StridedCopy copy =
        layout::CopyToLinear(piece, part, region_.box, source_.strides_bytes, element_size_);
    layout::RunStridedCopy(copy, source_.data, gathered_.data());
  }
  position_ += size;
  return ByteSpan(gathered_).first(size);
}

Status SourceReader::QueueNext(device::CopyQueue& queue, MutableByteSpan to) {
  const std::uint64_t begin = position_;
  position_ += to.size();
  if (is_dense_) {
    return queue.CopyToHost({.data = source_.data + begin, .row_bytes = to.size()}, to);
  }
  const Region piece = layout::SubRun(region_, begin / element_size_, position_ / element_size_);
  Status status;
  for (const Box& part : layout::DecomposeRun(piece)) {
    const layout::StridedCopy copy =
        layout::CopyToLinear(piece, part, region_.box, source_.strides_bytes, element_size_);
    const layout::CopyRow row = layout::RowOf(copy);
    const std::uint64_t row_size = row.count * copy.element_size;
    layout::VisitRows(copy, [&](std::int64_t source_at, std::int64_t target_at) {
      status = queue.CopyToHost({.data = source_.data + source_at,
                                 .row_count = row.count,
                                 .row_bytes = copy.element_size,
                                 .pitch_bytes = row.source_stride_bytes},
                                to.subspan(static_cast<std::size_t>(target_at), row_size));
      return status.ok();
    });
    SEALPOINT_RETURN_IF_ERROR(status);
  }
  return status;
}

}  // namespace sealpoint::internal::transfer
