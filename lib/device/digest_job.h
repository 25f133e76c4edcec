// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_DIGEST_JOB_H_
#define SEALPOINT_LIB_DEVICE_DIGEST_JOB_H_

#include "lib/device/xxh3_blocks.h"

// The digests of many chunks in three steps, each of independent threads that store one number or
// one digest. Plain C++17 for the host and for nvcc; kernels.cu runs them on a device.
namespace sealpoint::internal::device {

// All pointers are addresses of the device. Chunks as in DeviceChunks.
struct DigestJob {
  const unsigned char* data;
  std::uint64_t size;
  std::uint64_t chunk_size;
  std::uint64_t* sums;     // 8 per block: DigestSumCount
  std::uint64_t* lanes;    // 8 per chunk
  std::uint64_t* digests;  // 2 per chunk, in the byte order of Digest
};

SEALPOINT_ON_BOTH std::uint64_t DigestChunkCount(const DigestJob& job) {
  return job.size / job.chunk_size + (job.size % job.chunk_size != 0 ? 1 : 0);
}
SEALPOINT_ON_BOTH std::uint64_t DigestChunkSize(const DigestJob& job, std::uint64_t chunk) {
  const std::uint64_t rest = job.size - chunk * job.chunk_size;
  return rest < job.chunk_size ? rest : job.chunk_size;
}
// Also the number of threads of the first step.
SEALPOINT_ON_BOTH std::uint64_t DigestSumCount(const DigestJob& job) {
  const std::uint64_t full = job.size / job.chunk_size;
  const std::uint64_t rest = job.size % job.chunk_size;
  const std::uint64_t blocks =
      full * xxh3::ScrambledBlocks(job.chunk_size) + (rest != 0 ? xxh3::ScrambledBlocks(rest) : 0);
  return blocks * xxh3::kLanes;
}

// First step, thread of [0, DigestSumCount): contribution of one block to one lane.
SEALPOINT_ON_BOTH void SumBlock(const DigestJob& job, std::uint64_t thread) {
  const std::uint64_t blocks_per_chunk = xxh3::ScrambledBlocks(job.chunk_size);
  const std::uint64_t block = thread / xxh3::kLanes;
  const std::uint64_t chunk = block / blocks_per_chunk;
  const unsigned char* const begin =
      job.data + chunk * job.chunk_size + block % blocks_per_chunk * xxh3::kBlockBytes;
  job.sums[thread] = xxh3::BlockAddend(begin, thread % xxh3::kLanes, xxh3::kStripesPerBlock);
}

// Second step, thread of [0, 8 x chunks): the serial part of one lane of one chunk.
SEALPOINT_ON_BOTH void FoldChunk(const DigestJob& job, std::uint64_t thread) {
  const std::uint64_t lane = thread % xxh3::kLanes;
  const std::uint64_t chunk = thread / xxh3::kLanes;
  const std::uint64_t size = DigestChunkSize(job, chunk);
  if (size <= xxh3::kShortMaxBytes) return;
  const std::uint64_t first = chunk * xxh3::ScrambledBlocks(job.chunk_size) * xxh3::kLanes + lane;
  const std::uint64_t count = xxh3::ScrambledBlocks(size);
  std::uint64_t accumulator = xxh3::InitialAccumulator(lane);
  // In groups, so that the loads of one do not wait for the arithmetic of the other.
  constexpr std::uint64_t kGroup = 16;
  std::uint64_t block = 0;
  for (; block + kGroup <= count; block += kGroup) {
    std::uint64_t group[kGroup];
    for (std::uint64_t i = 0; i < kGroup; ++i) {
      group[i] = job.sums[first + (block + i) * xxh3::kLanes];
    }
    for (std::uint64_t i = 0; i < kGroup; ++i) {
      accumulator = xxh3::Scramble(accumulator + group[i], lane);
    }
  }
  for (; block < count; ++block) {
    accumulator = xxh3::Scramble(accumulator + job.sums[first + block * xxh3::kLanes], lane);
  }
  const unsigned char* const input = job.data + chunk * job.chunk_size;
  job.lanes[thread] = accumulator + xxh3::TailAddend(input, size, lane);
}

// Third step, thread of [0, chunks).
SEALPOINT_ON_BOTH void FinishChunk(const DigestJob& job, std::uint64_t chunk) {
  const std::uint64_t size = DigestChunkSize(job, chunk);
  const xxh3::Wide hash = size <= xxh3::kShortMaxBytes
                              ? xxh3::HashShort(job.data + chunk * job.chunk_size, size)
                              : xxh3::FinishLong(job.lanes + chunk * xxh3::kLanes, size);
  job.digests[chunk * 2] = xxh3::Swap64(hash.high);
  job.digests[chunk * 2 + 1] = xxh3::Swap64(hash.low);
}

}  // namespace sealpoint::internal::device

#endif  // SEALPOINT_LIB_DEVICE_DIGEST_JOB_H_
