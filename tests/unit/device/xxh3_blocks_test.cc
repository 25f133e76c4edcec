// SPDX-License-Identifier: Apache-2.0
// What the kernels compute, run on the host thread by thread in any order.
#include "lib/device/xxh3_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "lib/device/digest_job.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal::device {
namespace {

Bytes RandomBytes(std::size_t size, unsigned seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

void InRandomOrder(std::uint64_t count, std::mt19937_64& random,
                   const std::function<void(std::uint64_t)>& thread) {
  std::vector<std::uint64_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), random);
  std::for_each(order.begin(), order.end(), thread);
}

std::vector<Digest> RunJob(ByteSpan bytes, std::uint64_t chunk_size, std::mt19937_64& random) {
  DigestJob job{reinterpret_cast<const unsigned char*>(bytes.data()),
                bytes.size(),
                chunk_size,
                nullptr,
                nullptr,
                nullptr};
  const std::uint64_t chunks = DigestChunkCount(job);
  std::vector<std::uint64_t> sums(DigestSumCount(job));
  std::vector<std::uint64_t> lanes(chunks * xxh3::kLanes);
  std::vector<Digest> digests(chunks);
  std::vector<std::uint64_t> words(chunks * 2);
  job.sums = sums.data();
  job.lanes = lanes.data();
  job.digests = words.data();
  InRandomOrder(sums.size(), random, [&](std::uint64_t t) { SumBlock(job, t); });
  InRandomOrder(lanes.size(), random, [&](std::uint64_t t) { FoldChunk(job, t); });
  InRandomOrder(chunks, random, [&](std::uint64_t t) { FinishChunk(job, t); });
  std::memcpy(static_cast<void*>(digests.data()), words.data(), words.size() * sizeof(words[0]));
  return digests;
}

TEST(Xxh3Blocks, EqualTheHostsDigestAtEveryLengthTo5000) {
  const Bytes bytes = RandomBytes(5000, 1);
  std::mt19937_64 random(2);
  for (std::size_t size = 1; size <= bytes.size(); ++size) {
    const ByteSpan input = ByteSpan(bytes).first(size);
    ASSERT_EQ(RunJob(input, size, random).at(0), ComputeDigest(input)) << size;
  }
}

TEST(Xxh3Blocks, EqualTheHostsDigestOfNothing) {
  const xxh3::Wide hash = xxh3::HashShort(nullptr, 0);
  const std::uint64_t words[2] = {xxh3::Swap64(hash.high), xxh3::Swap64(hash.low)};
  Digest digest;
  std::memcpy(digest.bytes.data(), words, sizeof(words));
  EXPECT_EQ(digest, ComputeDigest({}));
}

TEST(Xxh3Blocks, EqualTheHostsDigestOfLongInputs) {
  const Bytes bytes = RandomBytes(3 * kMiB + 17, 3);
  std::mt19937_64 random(4);
  for (int round = 0; round < 12; ++round) {
    const std::size_t begin = random() % 100;
    const std::size_t size = 1 + random() % (bytes.size() - begin);
    const ByteSpan input = ByteSpan(bytes).subspan(begin, size);
    ASSERT_EQ(RunJob(input, size, random).at(0), ComputeDigest(input)) << begin << " " << size;
  }
}

TEST(Xxh3Blocks, CutInputsIntoChunksAndAShorterLastOne) {
  const Bytes bytes = RandomBytes(200000, 5);
  std::mt19937_64 random(6);
  for (const std::uint64_t chunk_size : {1U, 16U, 240U, 241U, 1024U, 1025U, 4096U, 65536U}) {
    for (const std::size_t more : {0U, 1U, 100U, 1000U, 5000U}) {
      const std::size_t size = std::min<std::size_t>(chunk_size * 3 + more, bytes.size());
      const ByteSpan input = ByteSpan(bytes).first(size);
      const std::vector<Digest> digests = RunJob(input, chunk_size, random);
      ASSERT_EQ(digests.size(), (size + chunk_size - 1) / chunk_size);
      for (std::size_t i = 0; i < digests.size(); ++i) {
        const ByteSpan rest = input.subspan(i * chunk_size);
        ASSERT_EQ(digests[i], ComputeDigest(rest.first(std::min(chunk_size, rest.size()))))
            << chunk_size << " + " << more << ", chunk " << i;
      }
    }
  }
}

}  // namespace
}  // namespace sealpoint::internal::device
