// SPDX-License-Identifier: Apache-2.0
#include "readers/load/copies_to_devices.h"

#include <algorithm>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

// Parts in a piece begin at such an address, which is good for conversions and for the link.
constexpr std::uint64_t kPartAlignmentBytes = 64;

// Of an element in the memory of the destination; 0 where it is the stored one.
std::uint64_t ConvertedSize(const ReadPlanData& plan, const PlanCopy& copy) {
  if (!copy.is_converted()) return 0;
  const std::size_t conversion = plan.converted_parts[copy.converted_part].conversion;
  return DTypeSizeBytes(plan.conversions[conversion].converter.conversion().to);
}

}  // namespace

std::uint64_t PieceBytes(const ReadPlanData& plan, bool raw_stays) {
  std::uint64_t most = 0;
  for (const PlanChunk& chunk : plan.chunks) {
    for (const PlanCopy& copy : plan.CopiesOf(chunk)) {
      const bool lies_ready = raw_stays && chunk.codec == Codec::kNone && !copy.is_converted() &&
                              copy.copy.is_contiguous();
      if (copy.device == kHostDevice || lies_ready) continue;
      const std::uint64_t size = copy.copy.byte_count();
      const std::uint64_t converted_size = ConvertedSize(plan, copy);
      most = std::max(most,
                      converted_size == 0 ? size : size / copy.copy.element_size * converted_size);
      if (most >= kPieceMaxBytes) return kPieceMaxBytes;
    }
  }
  return AlignUp(most, std::uint64_t{4096});
}

Result<std::unique_ptr<CopiesToDevices>> CopiesToDevices::Open(const ReadPlanData& plan,
                                                               DeviceRuntime& runtime) {
  std::unique_ptr<CopiesToDevices> copies(new CopiesToDevices(plan));
  for (const PlanStream& stream : plan.streams) {
    const auto known =
        std::find_if(copies->lanes_.begin(), copies->lanes_.end(),
                     [&](const Lane& lane) { return lane.queue->device() == stream.device; });
    if (known == copies->lanes_.end()) {
      auto queue = runtime.MakeQueue(stream.device);
      if (!queue) return copies->Named(stream.name, std::move(queue).error());
      copies->lanes_.push_back({.queue = std::move(queue).value(), .name = stream.name});
    }
    Status ordered = copies->LaneOf(stream.device).queue->WaitFor(stream.stream);
    if (!ordered.ok()) return copies->Named(stream.name, std::move(ordered));
  }
  return copies;
}

void CopiesToDevices::UsePieces(MutableByteSpan memory, std::size_t count) {
  pieces_.clear();
  piece_ = 0;
  piece_used_ = 0;
  const std::size_t size = count == 0 ? 0 : memory.size() / count;
  for (std::size_t i = 0; size != 0 && i < count; ++i) {
    pieces_.push_back({.memory = memory.subspan(i * size, size)});
  }
}

CopiesToDevices::Lane& CopiesToDevices::LaneOf(int device) {
  const auto lane = std::find_if(lanes_.begin(), lanes_.end(),
                                 [&](const Lane& one) { return one.queue->device() == device; });
  SEALPOINT_CHECK(lane != lanes_.end());
  return *lane;
}

Status CopiesToDevices::Named(std::uint32_t name, Status status) const {
  return std::move(status).AtTensor(plan_.names[name]);
}

Status CopiesToDevices::MarkLane(Lane& lane) {
  if (lane.is_marked) return {};
  const auto ticket = lane.queue->Mark();
  if (!ticket) return Named(lane.name, ticket.error());
  lane.last_ticket = *ticket;
  lane.open.push_back({*ticket, lane.name});
  lane.is_marked = true;
  return {};
}

// With a ticket of its own for each tensor an error names the right one.
Status CopiesToDevices::BeginTensor(Lane& lane, std::uint32_t name) {
  if (!lane.is_marked && lane.name != name) SEALPOINT_RETURN_IF_ERROR(MarkLane(lane));
  lane.name = name;
  lane.is_marked = false;
  return {};
}

Status CopiesToDevices::WaitForLane(Lane& lane, std::uint64_t ticket) {
  std::size_t done = 0;
  Status status;
  for (; done < lane.open.size() && lane.open[done].number <= ticket && status.ok(); ++done) {
    status = Named(lane.open[done].name, lane.queue->Wait(lane.open[done].number));
  }
  lane.open.erase(lane.open.begin(), lane.open.begin() + static_cast<std::ptrdiff_t>(done));
  return status;
}

Status CopiesToDevices::Mark(Fence& fence) {
  fence.clear();
  for (Lane& lane : lanes_) {
    SEALPOINT_RETURN_IF_ERROR(MarkLane(lane));
    fence.push_back(lane.last_ticket);
  }
  return {};
}

Status CopiesToDevices::WaitFor(const Fence& fence) {
  for (std::size_t i = 0; i < fence.size(); ++i) {
    SEALPOINT_RETURN_IF_ERROR(WaitForLane(lanes_[i], fence[i]));
  }
  return {};
}

Status CopiesToDevices::Finish() {
  Fence fence;
  SEALPOINT_RETURN_IF_ERROR(Mark(fence));
  return WaitFor(fence);
}

Status CopiesToDevices::WaitForCallers() {
  // The order behind their streams was queued without a ticket.
  for (Lane& lane : lanes_) lane.is_marked = false;
  return Finish();
}

// Staging memory behind what is filled already; else in the next piece, once that has been emptied.
Result<MutableByteSpan> CopiesToDevices::Stage(std::uint64_t size_bytes) {
  SEALPOINT_CHECK(!pieces_.empty() && size_bytes <= pieces_[piece_].memory.size());
  if (size_bytes > pieces_[piece_].memory.size() - piece_used_) {
    SEALPOINT_RETURN_IF_ERROR(Mark(pieces_[piece_].fence));
    piece_ = (piece_ + 1) % pieces_.size();
    piece_used_ = 0;
    SEALPOINT_RETURN_IF_ERROR(WaitFor(pieces_[piece_].fence));
  }
  const MutableByteSpan staged = pieces_[piece_].memory.subspan(piece_used_, size_bytes);
  piece_used_ = std::min<std::uint64_t>(pieces_[piece_].memory.size(),
                                        AlignUp(piece_used_ + size_bytes, kPartAlignmentBytes));
  return staged;
}

// A queued copy for each row of rows.
Status CopiesToDevices::Place(Lane& lane, std::uint32_t name, const StridedCopy& place,
                              const std::byte* staging, std::byte* target) {
  SEALPOINT_RETURN_IF_ERROR(BeginTensor(lane, name));
  const CopyRow row = RowOf(place);
  Status status;
  VisitRows(place, [&](std::int64_t source_at, std::int64_t target_at) {
    const MutableDeviceRows rows{.data = target + target_at,
                                 .row_count = row.count,
                                 .row_bytes = place.element_size,
                                 .pitch_bytes = row.target_stride_bytes};
    status = lane.queue->CopyToDevice({staging + source_at, rows.size_bytes()}, rows);
    return status.ok();
  });
  return Named(name, std::move(status));
}

Status CopiesToDevices::Copy(const PlanChunk& chunk, const PlanCopy& copy, const std::byte* raw,
                             const Pack& pack) {
  Lane& lane = LaneOf(copy.device);
  const std::uint64_t converted_size = ConvertedSize(plan_, copy);
  if (raw != nullptr && converted_size == 0) {
    StagedCopy whole = StageCopy(copy.copy, copy.copy.element_size);
    whole.pack.Normalize();
    if (whole.pack.is_contiguous()) {
      return Place(lane, chunk.name, whole.place, raw + whole.pack.source_offset_bytes,
                   copy.target);
    }
  }
  SEALPOINT_CHECK(!pieces_.empty());
  for (const StridedCopy& part :
       CutCopy(copy.copy, converted_size, pieces_.front().memory.size())) {
    const StagedCopy staged =
        StageCopy(part, converted_size == 0 ? part.element_size : converted_size);
    SEALPOINT_ASSIGN_OR_RETURN(const MutableByteSpan staging, Stage(staged.place.byte_count()));
    SEALPOINT_RETURN_IF_ERROR(pack(staged.pack, staging.data()));
    SEALPOINT_RETURN_IF_ERROR(Place(lane, chunk.name, staged.place, staging.data(), copy.target));
  }
  return {};
}

Status CopiesToDevices::QueueDigests(int device, std::uint32_t name, const DeviceChunks& chunks,
                                     std::span<Digest> to) {
  Lane& lane = LaneOf(device);
  SEALPOINT_RETURN_IF_ERROR(BeginTensor(lane, name));
  return Named(name, lane.queue->QueueDigests(chunks, to));
}

}  // namespace sealpoint::internal
