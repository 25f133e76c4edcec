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
#include "sealpoint/limits.h"

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

// The queues of a call.
struct Devices {
  const std::shared_ptr<device::DeviceRuntime>& runtime;
  device::QueuePool* idle_queues = nullptr;
};

// Dense memory of a device with kernels.
Result<Fingerprint> OfKernels(const fingerprint::Part& part, const SourceReader& source,
                              const Devices& devices) {
  fingerprint::Pair sum{};
  device::DeviceCopies copies(devices.runtime, {.idle_queues = devices.idle_queues});
  const MemoryView& view = source.view();
  SEALPOINT_RETURN_IF_ERROR(copies.FollowStream(view.device, view.stream));
  SEALPOINT_ASSIGN_OR_RETURN(
      const device::DeviceCopies::Point arrived,
      copies.Queue(view.device, source.remaining_bytes(), [&](device::CopyQueue& queue) {
        return queue.QueueFingerprint(part, source.position(), sum);
      }));
  SEALPOINT_RETURN_IF_ERROR(copies.Wait(arrived));
  return Fingerprint(sum);
}

// Any memory of a device. One piece is copied while the one before it is summed.
Result<Fingerprint> OfCopies(const fingerprint::Part& part, SourceReader source,
                             std::uint64_t piece_size, const Devices& devices) {
  struct Piece {
    Bytes bytes{};
    device::DeviceCopies::Point arrived{};
  };
  std::array<Piece, 2> pieces;
  // Destroyed first: it waits for the copies.
  device::DeviceCopies copies(devices.runtime, {.idle_queues = devices.idle_queues});
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
                                       const std::shared_ptr<device::DeviceRuntime>& devices,
                                       device::QueuePool* idle_queues) {
  if (element_size == 0) return InvalidArgument("the element size is 0");
  if (shape.size() > kNdimMax) {
    return MakeError(Code::kLimitExceeded, "the tensor has ", shape.size(),
                     " dimensions, the limit is ", kNdimMax);
  }
  SEALPOINT_ASSIGN_OR_RETURN(const bool has_elements, HasElements(shape, region));
  if (!has_elements) return Fingerprint();
  SEALPOINT_RETURN_IF_ERROR(layout::CheckView(memory, region, memory.dtype, element_size));
  const fingerprint::Part part(shape, element_size, region);
  const SourceReader source(region, element_size, memory);
  if (memory.is_host()) return OfHost(part, source);
  const Devices used{.runtime = devices, .idle_queues = idle_queues};
  SEALPOINT_RETURN_IF_ERROR(devices->CheckAvailable(memory.device));
  if (source.is_dense() && devices->CheckKernels(memory.device).ok()) {
    // The device may have no memory left for the kernels.
    if (auto sum = OfKernels(part, source, used)) return sum;
  }
  return OfCopies(part, source, kPieceBytes / element_size * element_size, used);
}

}  // namespace internal::transfer

Result<Fingerprint> ComputeFingerprint(const Shape& shape, std::uint32_t element_size,
                                       const Region& region, const MemoryView& memory) {
  using internal::transfer::ComputeFingerprint;
  if (memory.is_host())
    return ComputeFingerprint(shape, element_size, region, memory, nullptr, nullptr);
  static auto& idle_queues = *new internal::device::QueuePool;  // lives as long as CudaRuntime
  return ComputeFingerprint(shape, element_size, region, memory, internal::device::CudaRuntime(),
                            &idle_queues);
}

}  // namespace sealpoint
