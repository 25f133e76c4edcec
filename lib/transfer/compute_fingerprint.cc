// SPDX-License-Identifier: Apache-2.0
#include "lib/transfer/compute_fingerprint.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/device/cuda_runtime.h"
#include "lib/device/device_copies.h"
#include "lib/fingerprint/part.h"
#include "lib/layout/view_checks.h"
#include "lib/transfer/source_reader.h"

namespace sealpoint {
namespace internal::transfer {
namespace {

constexpr std::uint64_t kPieceBytes = 4 * kMiB;  // of device memory

Fingerprint OfHost(const fingerprint::Part& part, SourceReader source) {
  Fingerprint sum;
  for (std::uint64_t at = 0; source.remaining_bytes() > 0;) {
    const ByteSpan piece = source.Next(source.remaining_bytes());
    sum += part.Of(at, piece);
    at += piece.size();
  }
  return sum;
}

// One piece is copied while the one before it is summed.
Result<Fingerprint> OfDevice(const fingerprint::Part& part, SourceReader source,
                             std::uint64_t piece_size,
                             std::shared_ptr<device::DeviceRuntime> devices) {
  struct Piece {
    Bytes bytes{};
    device::DeviceCopies::Point arrived{};
  };
  std::array<Piece, 2> pieces;
  device::DeviceCopies copies(std::move(devices));  // destroyed first: it waits for the copies
  const int device = source.view().device;
  SEALPOINT_RETURN_IF_ERROR(copies.FollowStream(device, source.view().stream));
  const auto queue_next = [&](Piece& piece) -> Status {
    piece.bytes.resize(std::min(piece_size, source.remaining_bytes()));
    if (piece.bytes.empty()) return {};
    SEALPOINT_ASSIGN_OR_RETURN(
        piece.arrived, copies.Queue(device, piece.bytes.size(), [&](device::CopyQueue& queue) {
          return source.QueueNext(queue, piece.bytes);
        }));
    return {};
  };
  SEALPOINT_RETURN_IF_ERROR(queue_next(pieces[0]));
  Fingerprint sum;
  std::uint64_t at = 0;
  for (std::size_t i = 0; !pieces[i].bytes.empty(); i = 1 - i) {
    SEALPOINT_RETURN_IF_ERROR(queue_next(pieces[1 - i]));
    SEALPOINT_RETURN_IF_ERROR(copies.Wait(pieces[i].arrived));
    sum += part.Of(at, pieces[i].bytes);
    at += pieces[i].bytes.size();
  }
  return sum;
}

}  // namespace

Result<Fingerprint> ComputeFingerprint(const Shape& shape, std::uint32_t element_size,
                                       const Region& region, const MemoryView& memory,
                                       std::shared_ptr<device::DeviceRuntime> devices) {
  if (element_size == 0) return InvalidArgument("the element size is 0");
  SEALPOINT_ASSIGN_OR_RETURN(const bool has_elements, HasElements(shape, region));
  if (!has_elements) return Fingerprint();
  SEALPOINT_RETURN_IF_ERROR(layout::CheckView(memory, region, memory.dtype, element_size));
  const fingerprint::Part part(shape, element_size, region);
  const SourceReader source(region, element_size, memory);
  if (memory.is_host()) return OfHost(part, source);
  return OfDevice(part, source, kPieceBytes / element_size * element_size, std::move(devices));
}

}  // namespace internal::transfer

Result<Fingerprint> ComputeFingerprint(const Shape& shape, std::uint32_t element_size,
                                       const Region& region, const MemoryView& memory) {
  return internal::transfer::ComputeFingerprint(
      shape, element_size, region, memory,
      memory.is_host() ? nullptr : internal::device::CudaRuntime());
}

}  // namespace sealpoint
