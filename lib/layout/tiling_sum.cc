// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/tiling_sum.h"

#include "lib/base/mix.h"
#include "lib/layout/region_algebra.h"

namespace sealpoint::internal::layout {
namespace {

__extension__ typedef unsigned __int128 Uint128;

constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;

std::uint64_t AddInField(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sum = a + b;
  return sum >= kPrime ? sum - kPrime : sum;
}
std::uint64_t SubtractInField(std::uint64_t a, std::uint64_t b) {
  return AddInField(a, kPrime - b);
}
// 2^61 is 1 modulo the prime, so that the high bits count like the low ones.
std::uint64_t MultiplyInField(std::uint64_t a, std::uint64_t b) {
  const Uint128 product = Uint128{a} * b;
  return AddInField(static_cast<std::uint64_t>(product) & kPrime,
                    static_cast<std::uint64_t>(product >> 61));
}
std::uint64_t ToField(std::uint64_t x) { return AddInField(x & kPrime, x >> 61); }

// The coordinates of the evaluation point for one dimension of the tensor named by `key`: the
// sequence of SplitMix64, whose state begins at a hash of key and dimension.
class Dimension {
 public:
  Dimension(std::uint64_t key, std::size_t number) : state_(Mix(key + number + 1)) {}
  std::uint64_t At(std::uint64_t position) const {
    return ToField(Mix(state_ + position * kMixIncrement));
  }

 private:
  std::uint64_t state_;
};

// The product of one factor per dimension, which for [begin, end) is the difference of two
// variables.
std::uint64_t EvaluateBox(std::uint64_t key, const Box& box) {
  std::uint64_t product = ToField(Mix(key));
  for (std::size_t d = 0; d < box.offset.size(); ++d) {
    const Dimension x(key, d);
    const std::uint64_t begin = box.offset[d];
    product = MultiplyInField(product, SubtractInField(x.At(begin), x.At(begin + box.extent[d])));
  }
  return product;
}

// The polynomial of the first `count` elements of the box, computed from the last dimension to the
// first. In each dimension the slices before the one in which the elements end are whole, and that
// slice holds what the dimensions so far have given. A count of all elements ends after the last
// slice of the first dimension, which is why d == 0 takes no remainder.
std::uint64_t EvaluateFirst(std::uint64_t key, const Box& box, std::uint64_t count) {
  if (count == 0) return 0;
  std::uint64_t whole = ToField(Mix(key));
  std::uint64_t first = 0;
  for (std::size_t d = box.offset.size(); d-- > 0;) {
    const Dimension x(key, d);
    const std::uint64_t begin = box.offset[d];
    const std::uint64_t slice = begin + (d == 0 ? count : count % box.extent[d]);
    count /= box.extent[d];
    const std::uint64_t at_begin = x.At(begin);
    const std::uint64_t at_slice = x.At(slice);
    const std::uint64_t before = MultiplyInField(SubtractInField(at_begin, at_slice), whole);
    const std::uint64_t within =
        first == 0 ? 0 : MultiplyInField(SubtractInField(at_slice, x.At(slice + 1)), first);
    first = AddInField(before, within);
    if (d == 0) break;
    const std::uint64_t at_end = x.At(begin + box.extent[d]);
    whole = MultiplyInField(whole, SubtractInField(at_begin, at_end));
  }
  return first;
}

std::uint64_t Evaluate(std::uint64_t key, const Region& region) {
  const std::uint64_t count = BoxElementCount(region.box);
  if (region.run == Run{0, count}) return EvaluateBox(key, region.box);
  // Many runs end with their box, which has the cheaper formula.
  const std::uint64_t up_to_end = region.run.end == count
                                      ? EvaluateBox(key, region.box)
                                      : EvaluateFirst(key, region.box, region.run.end);
  return SubtractInField(up_to_end, EvaluateFirst(key, region.box, region.run.begin));
}

// The variables of ranks and of lists of ranks. Each lane has its own, so that the two sums are
// independent.
std::uint64_t VariableOfRank(std::size_t lane, int rank) {
  return ToField(MixWith(lane, static_cast<std::uint64_t>(rank)));
}
std::uint64_t VariableOfList(std::size_t lane, std::span<const int> ranks) {
  std::uint64_t hash = ~std::uint64_t{lane};
  for (const int rank : ranks) hash = MixWith(hash, static_cast<std::uint64_t>(rank));
  return ToField(hash);
}
std::uint64_t VariableOfRegion(std::uint64_t key, const Region& region) {
  std::uint64_t hash = ~key;
  for (const std::uint64_t offset : region.box.offset) hash = MixWith(hash, offset);
  for (const std::uint64_t extent : region.box.extent) hash = MixWith(hash, extent);
  return ToField(MixWith(MixWith(hash, region.run.begin), region.run.end));
}

}  // namespace

void TilingSum::AddRegion(const Key& key, const Region& region) {
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    sums_[i] = AddInField(sums_[i], Evaluate(key[i], region));
  }
}

void TilingSum::SubtractTensor(const Key& key, const Shape& shape) {
  const Box whole = Region::Whole(shape).box;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    sums_[i] = SubtractInField(sums_[i], EvaluateBox(key[i], whole));
  }
}

void TilingSum::AddName(const Key& key, const Region& region) {
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    sums_[i] = AddInField(sums_[i], VariableOfRegion(key[i], region));
  }
}

void TilingSum::AddHolder(const TilingSum& names, std::span<const int> holders, int rank) {
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    std::uint64_t ranks = VariableOfRank(i, rank);
    if (holders.front() == rank) {
      for (const int holder : holders) ranks = SubtractInField(ranks, VariableOfRank(i, holder));
    }
    const std::uint64_t list = MultiplyInField(VariableOfList(i, holders), ranks);
    sums_[i] = AddInField(sums_[i], MultiplyInField(list, names.sums_[i]));
  }
}

void TilingSum::Add(const TilingSum& other) {
  for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] = AddInField(sums_[i], other.sums_[i]);
}

TilingSum TilingSum::FromValues(const std::array<std::uint64_t, 2>& values) {
  TilingSum sum;
  for (std::size_t i = 0; i < values.size(); ++i) sum.sums_[i] = ToField(values[i]);
  return sum;
}

}  // namespace sealpoint::internal::layout
