// SPDX-License-Identifier: Apache-2.0
#include "lib/transfer/staged_copies.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/macros.h"
#include "lib/device/host_mapping.h"
#include "lib/transfer/host_delivery.h"
#include "lib/transfer/staged_copy.h"

namespace sealpoint::internal::transfer {
namespace {

// Parts in a staging buffer begin at such an address, which is good for conversions and the link.
constexpr std::uint64_t kPartAlignmentBytes = 64;

// Destination element size in bytes; 0 if the copy does not convert.
std::uint64_t ConvertedSize(const DeliveryPlan& plan, const PlanCopy& copy) {
  if (!copy.is_converted()) return 0;
  const std::size_t conversion = plan.converted_parts[copy.converted_part()].conversion;
  return DTypeSizeBytes(plan.conversions[conversion].converter.conversion().to);
}

}  // namespace

std::uint64_t StagingBufferBytes(const DeliveryPlan& plan, bool raw_stays) {
  std::uint64_t size_max = 0;
  for (const PlanChunk& chunk : plan.chunks) {
    for (const PlanCopy& copy : plan.CopiesOf(chunk)) {
      const bool is_ready =
          raw_stays && chunk.codec == Codec::kNone && !copy.is_converted() && copy.is_contiguous();
      if (copy.device() == kHostDevice || is_ready) continue;
      const std::uint64_t size = copy.byte_count();
      const std::uint64_t converted_size = ConvertedSize(plan, copy);
      size_max = std::max(size_max,
                          converted_size == 0 ? size : size / copy.element_size() * converted_size);
      if (size_max >= kStagingBufferMaxBytes) return kStagingBufferMaxBytes;
    }
  }
  return AlignUp(size_max, device::kPageBytes);
}

StagedCopies::StagedCopies(const DeliveryPlan& plan, std::shared_ptr<device::DeviceRuntime> runtime)
    : plan_(plan),
      queued_(std::move(runtime), {.describe = [&plan](std::uint32_t name, Status error) {
                return plan.AtItem(name, std::move(error));
              }}) {}

Result<std::unique_ptr<StagedCopies>> StagedCopies::Open(
    const DeliveryPlan& plan, std::shared_ptr<device::DeviceRuntime> runtime) {
  std::unique_ptr<StagedCopies> copies(new StagedCopies(plan, std::move(runtime)));
  for (const PlanStream& stream : plan.streams) {
    SEALPOINT_RETURN_IF_ERROR(
        copies->queued_.FollowStream(stream.device, stream.stream, stream.name));
  }
  return copies;
}

void StagedCopies::UseStaging(MutableByteSpan memory, std::size_t buffer_count) {
  ring_.clear();
  filled_ = 0;
  filled_bytes_ = 0;
  const std::size_t size = buffer_count == 0 ? 0 : memory.size() / buffer_count;
  for (std::size_t i = 0; size != 0 && i < buffer_count; ++i) {
    ring_.push_back({.memory = memory.subspan(i * size, size)});
  }
}

// Staging memory behind what is filled already; else in the next buffer, once all that was copied
// out of that has arrived.
Result<MutableByteSpan> StagedCopies::Stage(std::uint64_t size_bytes) {
  SEALPOINT_CHECK(!ring_.empty() && size_bytes <= ring_[filled_].memory.size());
  if (size_bytes > ring_[filled_].memory.size() - filled_bytes_) {
    // The fence is taken when the last copy out of the buffer is queued, and awaited only when its
    // turn comes again: until then the copies run while other buffers are filled.
    SEALPOINT_RETURN_IF_ERROR(queued_.Mark(ring_[filled_].fence));
    filled_ = (filled_ + 1) % ring_.size();
    filled_bytes_ = 0;
    SEALPOINT_RETURN_IF_ERROR(queued_.Wait(ring_[filled_].fence));
  }
  const MutableByteSpan staged = ring_[filled_].memory.subspan(filled_bytes_, size_bytes);
  filled_bytes_ = std::min<std::uint64_t>(ring_[filled_].memory.size(),
                                          AlignUp(filled_bytes_ + size_bytes, kPartAlignmentBytes));
  return staged;
}

// Queues a copy for each row of rows.
Status StagedCopies::Place(int device, std::uint32_t name, const layout::StridedCopy& place,
                           const std::byte* staging, std::byte* target) {
  const layout::CopyRow row = layout::RowOf(place);
  const auto queue_rows = [&](device::CopyQueue& queue) {
    Status status;
    layout::VisitRows(place, [&](std::int64_t source_at, std::int64_t target_at) {
      const device::MutableDeviceRows rows{.data = target + target_at,
                                           .row_count = row.count,
                                           .row_bytes = place.element_size,
                                           .pitch_bytes = row.target_stride_bytes};
      status = queue.CopyToDevice({staging + source_at, rows.size_bytes()}, rows);
      return status.ok();
    });
    return status;
  };
  // 0 bytes: copies out of one buffer share a ticket, since they are waited for together.
  return queued_.Queue(device, 0, queue_rows, name).status();
}

Status StagedCopies::Queue(const PlanChunk& chunk, const PlanCopy& copy, ByteSpan raw,
                           bool raw_stays) {
  const std::uint64_t converted_size = ConvertedSize(plan_, copy);
  if (raw_stays && converted_size == 0) {
    StagedCopy whole = copy.With([&](const layout::StridedCopy& strided) {
      return StageCopy(strided, copy.element_size());
    });
    whole.pack.Normalize();
    if (whole.pack.is_contiguous()) {
      return Place(copy.device(), chunk.name, whole.place,
                   raw.data() + whole.pack.source_offset_bytes, copy.target());
    }
  }
  SEALPOINT_CHECK(!ring_.empty());
  const auto parts = copy.With([&](const layout::StridedCopy& strided) {
    return CutCopy(strided, converted_size, ring_.front().memory.size());
  });
  std::optional<ConvertedCopy> conversion;
  if (converted_size != 0) conversion.emplace(plan_, chunk, copy, raw);
  for (const layout::StridedCopy& part : parts) {
    StagedCopy staged = StageCopy(part, converted_size == 0 ? part.element_size : converted_size);
    SEALPOINT_ASSIGN_OR_RETURN(const MutableByteSpan staging, Stage(staged.place.byte_count()));
    if (conversion) {
      SEALPOINT_RETURN_IF_ERROR(conversion->Run(staged.pack, staging.data()));
    } else {
      staged.pack.Normalize();
      layout::RunStridedCopy(staged.pack, raw.data(), staging.data());
    }
    SEALPOINT_RETURN_IF_ERROR(
        Place(copy.device(), chunk.name, staged.place, staging.data(), copy.target()));
  }
  return {};
}

Status StagedCopies::QueueDigests(int device, std::uint32_t name,
                                  const device::DeviceChunks& chunks, std::span<Digest> to) {
  return queued_
      .Queue(
          device, 0, [&](device::CopyQueue& queue) { return queue.QueueDigests(chunks, to); }, name)
      .status();
}

}  // namespace sealpoint::internal::transfer
