// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_FINGERPRINT_WORD_TABLE_H_
#define SEALPOINT_LIB_FINGERPRINT_WORD_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/fingerprint/field.h"

namespace sealpoint::internal::fingerprint {

// Coefficients of consecutive words, and sums of words times these. Immutable; thread-safe.
class WordTable {
 public:
  explicit WordTable(std::vector<Pair> coefficients);

  std::size_t size() const { return whole_.size(); }
  // The sum of `count` little-endian 32-bit words times the coefficients from number `first` on.
  // Precondition: as many are there.
  Pair Sum(const std::byte* words, std::size_t count, std::size_t first) const;

 private:
  // Each coefficient in parts of 21 bits, the low one first: products with 32-bit words have 53
  // bits, so that 1024 of them add up in 64.
  static constexpr int kPartBits = 21;
  static constexpr std::size_t kPartCount = 3;
  static constexpr std::size_t kProductsMax = 1024;
  using PartSums = std::array<std::uint64_t, 2 * kPartCount>;

  static Pair JoinParts(const PartSums& sums);
  Pair SumOneByOne(const std::byte* words, std::size_t count, std::size_t first) const;
  Pair SumInSteps(const std::byte* words, std::size_t count, std::size_t first) const;

  std::vector<Pair> whole_;
  std::array<std::vector<std::uint32_t>, 2 * kPartCount> parts_;  // of set 0, then of set 1
};

}  // namespace sealpoint::internal::fingerprint

#endif  // SEALPOINT_LIB_FINGERPRINT_WORD_TABLE_H_
