// SPDX-License-Identifier: Apache-2.0
// The fingerprints of a CudaQueue.
#include <algorithm>
#include <span>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/device/cuda_kernels.h"
#include "lib/device/cuda_queue.h"
#include "lib/device/fingerprint_job.h"
#include "lib/fingerprint/coefficients.h"
#include "lib/fingerprint/part.h"

namespace sealpoint::internal::device {
namespace {

using fingerprint::Dimension;
using fingerprint::Pair;

static_assert(kFingerprintBase == Dimension::kBase && kFingerprintDigits == Dimension::kDigits &&
              kFingerprintDimensions == Dimension::kDimensions &&
              sizeof(FingerprintPair) == sizeof(Pair));

// The scratch memory, in this order: factors of a batch, sums of threads, folded sums. As many
// threads as the largest devices run.
constexpr std::uint64_t kBatchTiles = 1 << 18;
constexpr std::uint64_t kThreadsMax = 1 << 18;
constexpr std::uint64_t kFoldedMax = kThreadsMax / FingerprintFold::kFanIn;
constexpr unsigned kBlockThreads = 256;

struct Scratch {
  FingerprintPair factors[kBatchTiles];
  FingerprintPair sums[kThreadsMax];
  FingerprintPair folded[2][kFoldedMax];
};
static_assert(sizeof(Scratch) <= CudaQueue::kScratchBytes);

// Copies on a stream of its own: those of callers may wait for work that waits for this thread.
Status CopyNow(const CudaDevice& device, cuda::Address to, ByteSpan from) {
  const cuda::Driver& driver = device.driver;
  cuda::Stream* stream = nullptr;
  SEALPOINT_RETURN_IF_ERROR(
      device.Check(driver.stream_create(&stream, cuda::kStreamNonBlocking), "cuStreamCreate"));
  Status copied = device.Check(driver.copy_to_device(to, from.data(), from.size(), stream),
                               "cuMemcpyHtoDAsync");
  const Status done = device.Check(driver.stream_synchronize(stream), "cuStreamSynchronize");
  if (copied.ok()) copied = done;
  driver.stream_destroy(stream);
  return copied;
}

// Those of all dimensions; they stay on the device, as the context stays retained.
Result<cuda::Address> LoadCoefficients(CudaDevice& device) {
  const std::lock_guard lock(device.mutex);
  if (device.coefficients != 0) return device.coefficients;
  std::vector<Pair> values;
  for (std::size_t d = 0; d < kFingerprintDimensions; ++d) {
    for (std::size_t digit = 0; digit < kFingerprintDigits; ++digit) {
      const auto& of_digit = Dimension::FromLast(d).OfDigit(digit);
      values.insert(values.end(), of_digit.begin(), of_digit.end());
    }
  }
  const cuda::Driver& driver = device.driver;
  const std::size_t size = values.size() * sizeof(Pair);
  cuda::Address address = 0;
  SEALPOINT_RETURN_IF_ERROR(device.Check(driver.memory_allocate(&address, size), "cuMemAlloc"));
  if (Status copied = CopyNow(device, address, std::as_bytes(std::span(values))); !copied.ok()) {
    driver.memory_free(address);
    return copied;
  }
  return device.coefficients = address;
}

FingerprintJob JobOf(const Region& region, const std::byte* data) {
  const Box& box = region.box;
  FingerprintJob job{};
  job.data = reinterpret_cast<const unsigned char*>(data);
  job.run_begin = region.run.begin;
  job.run_end = region.run.end;
  job.row_begin = box.offset.back();
  job.row_end = box.offset.back() + box.extent.back();
  job.dimension_count = box.extent.size() - 1;
  std::copy_n(box.offset.begin(), job.dimension_count, job.offset);
  std::copy_n(box.extent.begin(), job.dimension_count, job.extent);
  job.group_size = GroupSize(job);
  return job;
}

}  // namespace

Status CudaQueue::QueueFingerprint(const fingerprint::Part& part, const std::byte* data,
                                   fingerprint::Pair& to) {
  SEALPOINT_ASSIGN_OR_RETURN(const CudaKernels kernels, LoadKernels(device_));
  const cuda::CurrentContext current(device_.driver, device_.context);
  SEALPOINT_RETURN_IF_ERROR(current.status());
  SEALPOINT_RETURN_IF_ERROR(ReserveScratch());
  SEALPOINT_ASSIGN_OR_RETURN(const cuda::Address coefficients, LoadCoefficients(device_));
  auto* const scratch = DevicePointer<Scratch>(scratch_);
  FingerprintJob job = JobOf(part.region(), data);
  job.coefficients = DevicePointer<FingerprintPair>(coefficients);
  job.factors = scratch->factors;
  job.sums = scratch->sums;
  const std::uint64_t tile_count = RowCount(job) * TilesPerRow(job);
  job.thread_count = std::min(kThreadsMax / job.group_size, tile_count) * job.group_size;
  // Batches use the scratch memory one after the other: the stream keeps the order.
  for (; job.first_tile < tile_count; job.first_tile += job.tile_count) {
    job.tile_count = std::min(kBatchTiles, tile_count - job.first_tile);
    SEALPOINT_RETURN_IF_ERROR(
        Launch(device_, kernels.store_factors, job.tile_count, kBlockThreads, job, stream_));
    SEALPOINT_RETURN_IF_ERROR(
        Launch(device_, kernels.sum_tiles, job.thread_count, kBlockThreads, job, stream_));
  }
  FingerprintFold fold{.from = job.sums, .count = job.thread_count, .to = scratch->folded[0]};
  for (int next = 1; fold.count > 1; next = 1 - next) {
    SEALPOINT_RETURN_IF_ERROR(
        Launch(device_, kernels.fold_sums, FoldedCount(fold), kBlockThreads, fold, stream_));
    fold = {.from = fold.to, .count = FoldedCount(fold), .to = scratch->folded[next]};
  }
  const auto sum = static_cast<cuda::Address>(reinterpret_cast<std::uintptr_t>(fold.from));
  return device_.Check(device_.driver.copy_to_host(&to, sum, sizeof(to), stream_),
                       "cuMemcpyDtoHAsync");
}

}  // namespace sealpoint::internal::device
