// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_LAYOUT_TILING_SUM_H_
#define SEALPOINT_LIB_LAYOUT_TILING_SUM_H_

#include <array>
#include <cstdint>
#include <span>

#include "sealpoint/region.h"

namespace sealpoint::internal::layout {

// Exact tiling as a sum to which every rank contributes the terms of its own regions.
//
// The corner sums of lib/layout/tiling.h, of all tensors together, as a polynomial: a box
// contributes the product over its dimensions d of (x[d, begin] - x[d, end]); its terms are the
// signed corners. The regions of a tensor tile it exactly if and only if the polynomials of their
// boxes add up to that of the tensor. It is evaluated in the field of 2^61 - 1 elements at a point
// with hashes of tensor, dimension and position as coordinates. A nonzero polynomial evaluates to
// zero with a probability of at most ndim / 2^61 (Schwartz and Zippel), and twice independently
// below 2^-110. This does not protect against an adversary: the ranks of one job trust each other.
//
// The same sum proves that the ranks that share a region name each other: a holder contributes the
// product of three variables (for the region, for the list of its holders, and for itself), and the
// first holder subtracts the products of all. For all regions of one list a rank adds one product.
//
// All ranks must evaluate at the same point and in the same way, so a change here changes the
// protocol between the ranks of one job (spec/decisions/0012).
class TilingSum {
 public:
  // A digest of a tensor's declaration: name, dtype and shape.
  using Key = std::array<std::uint64_t, 2>;

  // O(ndim), for a run as well: the elements before its end less the elements before its begin.
  void AddRegion(const Key& key, const Region& region);
  void SubtractTensor(const Key& key, const Shape& shape);
  // Adds the variable of the region.
  void AddName(const Key& key, const Region& region);
  // Adds the contribution of `rank`, one of `holders`, for the regions with variables summed in
  // `names`. O(holders).
  void AddHolder(const TilingSum& names, std::span<const int> holders, int rank);

  void Add(const TilingSum& other);
  bool is_zero() const { return sums_ == std::array<std::uint64_t, 2>{}; }

  // For messages between ranks.
  const std::array<std::uint64_t, 2>& values() const { return sums_; }
  static TilingSum FromValues(const std::array<std::uint64_t, 2>& values);

 private:
  std::array<std::uint64_t, 2> sums_{};  // each below 2^61 - 1
};

}  // namespace sealpoint::internal::layout

#endif  // SEALPOINT_LIB_LAYOUT_TILING_SUM_H_
