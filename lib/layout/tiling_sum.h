// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_LAYOUT_TILING_SUM_H_
#define SEALPOINT_LIB_LAYOUT_TILING_SUM_H_

#include <array>
#include <cstdint>
#include <span>

#include "sealpoint/region.h"

namespace sealpoint::internal {

// Exact tiling as one number that many ranks add up, each of what it holds itself.
//
// The corner sums of lib/layout/tiling.h, of all tensors at once, as a polynomial: a box
// contributes the product over its dimensions d of (x[d, begin] - x[d, end]), whose terms are its
// signed corners. The regions of a tensor tile it exactly if and only if the polynomials of their
// boxes add up to that of the tensor. It is evaluated in the field of 2^61 - 1 elements at a point
// whose coordinates are hashes of tensor, dimension and position; what is not zero evaluates to
// zero with a probability of at most ndim / 2^61 (Schwartz and Zippel), and twice independently
// below 2^-110. No adversary is looked for: the ranks of one job trust each other.
//
// That the ranks which share a region name each other is added in the same way, as the product of
// three variables: of the region, of the list of its holders and of a rank. Each holder adds that
// of itself, the first one subtracts those of all. What a rank adds for all regions of one list is
// one product.
class TilingSum {
 public:
  // Names a tensor as it is declared, dtype and shape included: a digest.
  using Key = std::array<std::uint64_t, 2>;

  // O(ndim), also for a run: it is what its end leaves of the box but for what its begin leaves.
  void AddRegion(const Key& key, const Region& region);
  void SubtractTensor(const Key& key, const Shape& shape);
  // The variable of the region.
  void AddName(const Key& key, const Region& region);
  // That `holders` hold each of the regions whose names were added up, said by `rank`, one of them.
  // O(holders).
  void AddHolder(const TilingSum& names, std::span<const int> holders, int rank);

  void Add(const TilingSum& other);
  bool is_zero() const { return sums_ == std::array<std::uint64_t, 2>{}; }

  // For the way to another rank.
  const std::array<std::uint64_t, 2>& values() const { return sums_; }
  static TilingSum FromValues(const std::array<std::uint64_t, 2>& values);

 private:
  std::array<std::uint64_t, 2> sums_{};  // each below 2^61 - 1
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_LAYOUT_TILING_SUM_H_
