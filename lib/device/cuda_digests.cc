// SPDX-License-Identifier: Apache-2.0
// The digests of a CudaQueue.
#include <algorithm>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/device/cuda_kernels.h"
#include "lib/device/cuda_queue.h"
#include "lib/device/digest_job.h"

namespace sealpoint::internal::device {
namespace {

// The scratch memory, in this order: sums (a 16th of the payload), lanes and digests of chunks.
// Device memory belongs to the training, so payload passes through in batches; each fills the
// device all the same. A batch holds one chunk of the largest size that the format allows.
constexpr std::uint64_t kBatchBytes = 128 * kMiB;
constexpr std::uint64_t kBatchChunksMax = 32768;  // of 4 KiB, the smallest chunks
constexpr std::uint64_t kSumsBytes = kBatchBytes / xxh3::kBlockBytes * xxh3::kLanes * 8;
constexpr std::uint64_t kLanesBytes = kBatchChunksMax * xxh3::kLanes * 8;
static_assert(CudaQueue::kScratchBytes ==
              kSumsBytes + kLanesBytes + kBatchChunksMax * sizeof(Digest));

// Many threads of the first step, and few of the others, so that these spread over the device.
constexpr unsigned kSumThreads = 256;
constexpr unsigned kFoldThreads = 32;
constexpr unsigned kFinishThreads = 32;

Status LaunchAll(const CudaDevice& device, const CudaKernels& kernels, const DigestJob& job,
                 cuda::Stream* stream) {
  const std::uint64_t chunks = DigestChunkCount(job);
  SEALPOINT_RETURN_IF_ERROR(
      Launch(device, kernels.sum_blocks, DigestSumCount(job), kSumThreads, job, stream));
  SEALPOINT_RETURN_IF_ERROR(
      Launch(device, kernels.fold_chunks, chunks * xxh3::kLanes, kFoldThreads, job, stream));
  return Launch(device, kernels.finish_chunks, chunks, kFinishThreads, job, stream);
}

}  // namespace

Status CudaQueue::QueueDigests(const DeviceChunks& chunks, std::span<Digest> to) {
  SEALPOINT_CHECK(chunks.chunk_size_bytes != 0 && to.size() == chunks.count());
  if (chunks.chunk_size_bytes > kBatchBytes) {
    return MakeError(Code::kDevice, "digests on a device support chunks up to ", kBatchBytes,
                     " bytes, not ", chunks.chunk_size_bytes);
  }
  SEALPOINT_ASSIGN_OR_RETURN(const CudaKernels kernels, LoadKernels(device_));
  const cuda::CurrentContext current(device_.driver, device_.context);
  SEALPOINT_RETURN_IF_ERROR(current.status());
  SEALPOINT_RETURN_IF_ERROR(ReserveScratch());
  const std::uint64_t batch_max = std::min(kBatchBytes / chunks.chunk_size_bytes, kBatchChunksMax);
  // Batches use the scratch memory one after the other: the stream keeps the order.
  for (std::uint64_t first = 0; first < to.size(); first += batch_max) {
    const std::span<Digest> batch = to.subspan(first, std::min(batch_max, to.size() - first));
    const std::uint64_t offset = first * chunks.chunk_size_bytes;
    const DigestJob job{
        .data = reinterpret_cast<const unsigned char*>(chunks.data) + offset,
        .size = std::min(batch.size() * chunks.chunk_size_bytes, chunks.size_bytes - offset),
        .chunk_size = chunks.chunk_size_bytes,
        .sums = DevicePointer<std::uint64_t>(scratch_),
        .lanes = DevicePointer<std::uint64_t>(scratch_ + kSumsBytes),
        .digests = DevicePointer<std::uint64_t>(scratch_ + kSumsBytes + kLanesBytes)};
    SEALPOINT_RETURN_IF_ERROR(LaunchAll(device_, kernels, job, stream_));
    SEALPOINT_RETURN_IF_ERROR(
        device_.Check(device_.driver.copy_to_host(batch.data(), scratch_ + kSumsBytes + kLanesBytes,
                                                  batch.size_bytes(), stream_),
                      "cuMemcpyDtoHAsync"));
  }
  return {};
}

}  // namespace sealpoint::internal::device
