// SPDX-License-Identifier: Apache-2.0
// The three steps of digest_job.h as kernels. Found by name in the loaded image.
#include "lib/device/digest_job.h"

using sealpoint::internal::device::DigestJob;

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
