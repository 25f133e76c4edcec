// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/word_table.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include <algorithm>
#include <utility>

#include "lib/base/endian.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::fingerprint {
namespace {

constexpr std::size_t kWordSize = 4;
// Words that the vector instructions take in one step.
constexpr std::size_t kStep = 8;
// Sums of memory outside of the cache wait for it if the processor alone decides what to fetch.
constexpr std::size_t kLineWords = 16;  // of the cache
constexpr std::size_t kPrefetchBytes = 2048;
// Below this number of words the sums of a step cost more than they save.
constexpr std::size_t kVectorWordsMin = 64;

#if defined(__x86_64__)
bool HasSteps() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
#elif defined(__ARM_NEON) && defined(__aarch64__)
constexpr bool HasSteps() { return true; }
#else
constexpr bool HasSteps() { return false; }
#endif

}  // namespace

WordTable::WordTable(std::vector<Pair> coefficients) : whole_(std::move(coefficients)) {
  constexpr std::uint64_t kMask = (1U << kPartBits) - 1;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const std::size_t shift = part % kPartCount * kPartBits;
    for (const Pair& coefficient : whole_) {
      parts_[part].push_back(
          static_cast<std::uint32_t>(coefficient[part / kPartCount] >> shift & kMask));
    }
    parts_[part].push_back(0);  // a vector may begin at the last word but seven
  }
}

Pair WordTable::JoinParts(const PartSums& sums) {
  const auto join = [&](std::size_t at) {
    return Reduce(Wide{sums[at]} + (Wide{sums[at + 1]} << kPartBits) +
                  (Wide{sums[at + 2]} << (2 * kPartBits)));
  };
  return {join(0), join(kPartCount)};
}

Pair WordTable::SumOneByOne(const std::byte* words, std::size_t count, std::size_t first) const {
  Wide low = 0;
  Wide high = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto word = LoadLe<std::uint32_t>(ByteSpan(words + i * kWordSize, kWordSize), 0);
    low += Wide{word} * whole_[first + i][0];
    high += Wide{word} * whole_[first + i][1];
  }
  return {Reduce(low), Reduce(high)};
}

// As SumOneByOne, for a multiple of kStep words, at most kProductsMax.
#if defined(__x86_64__)
__attribute__((target("avx2"))) Pair WordTable::SumInSteps(const std::byte* words,
                                                           std::size_t count,
                                                           std::size_t first) const {
  __m256i sums[2 * kPartCount];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (std::size_t i = 0; i < count; i += kStep) {
    const auto* const data = reinterpret_cast<const __m256i*>(words + i * kWordSize);
    // The memory may end before: then nothing is fetched.
    if (i % kLineWords == 0) __builtin_prefetch(words + i * kWordSize + kPrefetchBytes);
    const __m256i even = _mm256_loadu_si256(data);  // of each 64 bits the low half counts
    const __m256i odd = _mm256_srli_epi64(even, 32);
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      // Loads cost less than shifts: of the factors, the next word's is the low half then.
      const std::uint32_t* const factor = &parts_[part][first + i];
      const __m256i factors = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(factor));
      const __m256i odd_factors = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(factor + 1));
      sums[part] = _mm256_add_epi64(sums[part], _mm256_mul_epu32(even, factors));
      sums[part] = _mm256_add_epi64(sums[part], _mm256_mul_epu32(odd, odd_factors));
    }
  }
  PartSums totals{};
  for (std::size_t part = 0; part < totals.size(); ++part) {
    alignas(32) std::array<std::uint64_t, 4> lanes{};
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes.data()), sums[part]);
    totals[part] = lanes[0] + lanes[1] + lanes[2] + lanes[3];
  }
  return JoinParts(totals);
}
#elif defined(__ARM_NEON) && defined(__aarch64__)
Pair WordTable::SumInSteps(const std::byte* words, std::size_t count, std::size_t first) const {
  uint64x2_t sums[2 * kPartCount];
  for (uint64x2_t& sum : sums) sum = vdupq_n_u64(0);
  for (std::size_t i = 0; i < count; i += kStep / 2) {
    const auto* const data = reinterpret_cast<const std::uint8_t*>(words + i * kWordSize);
    const uint32x4_t four = vreinterpretq_u32_u8(vld1q_u8(data));
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      const uint32x4_t factors = vld1q_u32(&parts_[part][first + i]);
      sums[part] = vmlal_u32(sums[part], vget_low_u32(four), vget_low_u32(factors));
      sums[part] = vmlal_high_u32(sums[part], four, factors);
    }
  }
  PartSums totals{};
  for (std::size_t part = 0; part < totals.size(); ++part) totals[part] = vaddvq_u64(sums[part]);
  return JoinParts(totals);
}
#else
Pair WordTable::SumInSteps(const std::byte* words, std::size_t count, std::size_t first) const {
  return SumOneByOne(words, count, first);
}
#endif

Pair WordTable::Sum(const std::byte* words, std::size_t count, std::size_t first) const {
  Pair sum{};
  if (count >= kVectorWordsMin && HasSteps()) {
    while (count >= kStep) {
      const std::size_t steps = std::min(kProductsMax, count / kStep * kStep);
      sum = Add(sum, SumInSteps(words, steps, first));
      words += steps * kWordSize;
      count -= steps;
      first += steps;
    }
  }
  return count == 0 ? sum : Add(sum, SumOneByOne(words, count, first));
}

}  // namespace sealpoint::internal::fingerprint
