// SPDX-License-Identifier: Apache-2.0
// The steps of digest_job.h and of fingerprint_job.h as kernels. Found by name in the loaded image.
#include "lib/device/digest_job.h"
#include "lib/device/fingerprint_job.h"

using sealpoint::internal::device::DigestJob;
using sealpoint::internal::device::FingerprintFold;
using sealpoint::internal::device::FingerprintJob;

namespace {

__device__ std::uint64_t ThreadNumber() {
  return static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

}  // namespace

extern "C" __global__ void sealpoint_sum_blocks(const DigestJob job) {
  const std::uint64_t thread = ThreadNumber();
  if (thread < DigestSumCount(job)) SumBlock(job, thread);
}

extern "C" __global__ void sealpoint_fold_chunks(const DigestJob job) {
  const std::uint64_t thread = ThreadNumber();
  if (thread < DigestChunkCount(job) * sealpoint::internal::xxh3::kLanes) FoldChunk(job, thread);
}

extern "C" __global__ void sealpoint_finish_chunks(const DigestJob job) {
  const std::uint64_t chunk = ThreadNumber();
  if (chunk < DigestChunkCount(job)) FinishChunk(job, chunk);
}

extern "C" __global__ void sealpoint_store_factors(const FingerprintJob job) {
  const std::uint64_t tile = ThreadNumber();
  if (tile < job.tile_count) StoreFactor(job, tile);
}

extern "C" __global__ void sealpoint_sum_tiles(const FingerprintJob job) {
  const std::uint64_t thread = ThreadNumber();
  if (thread < job.thread_count) SumTiles(job, thread);
}

extern "C" __global__ void sealpoint_fold_sums(const FingerprintFold fold) {
  const std::uint64_t thread = ThreadNumber();
  if (thread < FoldedCount(fold)) FoldSums(fold, thread);
}
