// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/tiling_sum.h"

#include "lib/layout/region_algebra.h"

namespace sealpoint::internal {
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
std::uint64_t MultiplyInField(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>(Uint128{a} * b % kPrime);
}

// The finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// A point's coordinate for one position of one dimension.
std::uint64_t CoordinateAt(std::uint64_t dimension_key, std::uint64_t position) {
  return Mix(dimension_key ^ Mix(position)) % kPrime;
}

// The product of a box at the point that belongs to `key`.
std::uint64_t Evaluate(std::uint64_t key, const Box& box) {
  std::uint64_t product = Mix(key) % kPrime;
  for (std::size_t d = 0; d < box.offset.size(); ++d) {
    const std::uint64_t dimension_key = Mix(key + d + 1);
    const std::uint64_t begin = CoordinateAt(dimension_key, box.offset[d]);
    const std::uint64_t end = CoordinateAt(dimension_key, box.offset[d] + box.extent[d]);
    product = MultiplyInField(product, SubtractInField(begin, end));
  }
  return product;
}

// Names a region with the list of its holders.
std::uint64_t NameGroup(std::uint64_t key, const Region& region, std::span<const int> holders) {
  std::uint64_t name = Mix(~key);
  const auto append = [&name](std::uint64_t number) { name = Mix(name ^ Mix(number)); };
  for (const std::uint64_t offset : region.box.offset) append(offset);
  for (const std::uint64_t extent : region.box.extent) append(extent);
  append(region.run.begin);
  append(region.run.end);
  for (const int holder : holders) append(static_cast<std::uint64_t>(holder));
  return name;
}

std::uint64_t MemberOf(std::uint64_t group, int rank) {
  return Mix(group + static_cast<std::uint64_t>(rank)) % kPrime;
}

}  // namespace

void TilingSum::AddRegion(const Key& key, const Region& region) {
  ForEachBox(region, [&](const Box& box) {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      sums_[i] = AddInField(sums_[i], Evaluate(key[i], box));
    }
  });
}

void TilingSum::SubtractTensor(const Key& key, const Shape& shape) {
  const Box whole = Region::Whole(shape).box;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    sums_[i] = SubtractInField(sums_[i], Evaluate(key[i], whole));
  }
}

void TilingSum::AddHolder(const Key& key, const Region& region, std::span<const int> holders,
                          int rank) {
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const std::uint64_t group = NameGroup(key[i], region, holders);
    sums_[i] = AddInField(sums_[i], MemberOf(group, rank));
    if (holders.front() != rank) continue;
    for (const int holder : holders) {
      sums_[i] = SubtractInField(sums_[i], MemberOf(group, holder));
    }
  }
}

void TilingSum::Add(const TilingSum& other) {
  for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] = AddInField(sums_[i], other.sums_[i]);
}

TilingSum TilingSum::FromValues(const std::array<std::uint64_t, 2>& values) {
  TilingSum sum;
  for (std::size_t i = 0; i < values.size(); ++i) sum.sums_[i] = values[i] % kPrime;
  return sum;
}

}  // namespace sealpoint::internal
