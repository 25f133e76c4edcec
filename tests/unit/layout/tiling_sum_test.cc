// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/tiling_sum.h"

#include <gtest/gtest.h>

#include <vector>

namespace sealpoint::internal::layout {
namespace {

constexpr TilingSum::Key kKey = {3, 0x1122334455667788};
constexpr TilingSum::Key kOtherKey = {3, 0x1122334455667789};

Region BoxAt(std::vector<std::uint64_t> offset, std::vector<std::uint64_t> extent) {
  return Region::Of({.offset = std::move(offset), .extent = std::move(extent)});
}

TilingSum SumOf(const TilingSum::Key& key, const Shape& shape, const std::vector<Region>& regions) {
  TilingSum sum;
  for (const Region& region : regions) sum.AddRegion(key, region);
  sum.SubtractTensor(key, shape);
  return sum;
}

TEST(TilingSum, OfATilingIsZero) {
  EXPECT_TRUE(SumOf(kKey, {4, 6}, {BoxAt({0, 0}, {4, 2}), BoxAt({0, 2}, {4, 4})}).is_zero());
  EXPECT_TRUE(SumOf(kKey, {}, {Region::Whole({})}).is_zero());
  EXPECT_TRUE(TilingSum().is_zero());
}

TEST(TilingSum, OfRunsIsThatOfTheirBoxes) {
  Region first = Region::Whole({4, 6});
  Region second = first;
  first.run.end = second.run.begin = 9;
  EXPECT_TRUE(SumOf(kKey, {4, 6}, {first, second}).is_zero());
  second.run.begin = 10;
  EXPECT_FALSE(SumOf(kKey, {4, 6}, {first, second}).is_zero());
}

TEST(TilingSum, ShowsHolesAndOverlaps) {
  EXPECT_FALSE(SumOf(kKey, {4}, {BoxAt({0}, {3})}).is_zero());
  EXPECT_FALSE(SumOf(kKey, {4}, {BoxAt({0}, {3}), BoxAt({2}, {2})}).is_zero());
  EXPECT_FALSE(SumOf(kKey, {}, {Region::Whole({}), Region::Whole({})}).is_zero());
}

// As many elements are missing as there are too many.
TEST(TilingSum, ShowsAHoleThatAnOverlapBalances) {
  EXPECT_FALSE(SumOf(kKey, {6}, {BoxAt({0}, {3}), BoxAt({2}, {3})}).is_zero());
  EXPECT_FALSE(SumOf(kKey, {2, 2}, {BoxAt({0, 0}, {1, 2}), BoxAt({0, 0}, {2, 1})}).is_zero());
}

TEST(TilingSum, KeepsTensorsApart) {
  TilingSum sum;
  sum.AddRegion(kKey, Region::Whole({4}));
  sum.SubtractTensor(kOtherKey, {4});
  EXPECT_FALSE(sum.is_zero());
}

TEST(TilingSum, KeepsDimensionsApart) {
  TilingSum sum;
  sum.AddRegion(kKey, BoxAt({0, 1}, {1, 1}));
  sum.AddRegion(kKey, BoxAt({1, 0}, {1, 1}));
  TilingSum other;
  other.AddRegion(kKey, BoxAt({0, 0}, {1, 1}));
  other.AddRegion(kKey, BoxAt({1, 1}, {1, 1}));
  EXPECT_NE(sum.values(), other.values());
}

TEST(TilingSum, OfRanksIsThatOfAll) {
  TilingSum first;
  first.AddRegion(kKey, BoxAt({0}, {3}));
  TilingSum second;
  second.AddRegion(kKey, BoxAt({3}, {2}));
  second.SubtractTensor(kKey, {5});
  EXPECT_FALSE(second.is_zero());
  first.Add(TilingSum::FromValues(second.values()));
  EXPECT_TRUE(first.is_zero());
}

struct Member {
  int rank;
  std::vector<int> holders;
};

TilingSum NameOf(const Region& region) {
  TilingSum name;
  name.AddName(kKey, region);
  return name;
}

bool Agree(const std::vector<Member>& members) {
  TilingSum sum;
  for (const Member& member : members) {
    sum.AddHolder(NameOf(Region::Whole({5})), member.holders, member.rank);
  }
  return sum.is_zero();
}

TEST(TilingSum, ShowsHoldersThatDoNotNameEachOther) {
  EXPECT_TRUE(Agree({{0, {0, 2}}, {2, {0, 2}}}));
  EXPECT_FALSE(Agree({{0, {0, 2}}}));
  EXPECT_FALSE(Agree({{2, {0, 2}}}));
  EXPECT_FALSE(Agree({{0, {0, 2}}, {2, {2}}}));
  EXPECT_FALSE(Agree({{0, {0, 1, 2}}, {1, {0, 1, 2}}, {1, {0, 1, 2}}}));
  EXPECT_FALSE(Agree({{0, {0, 2}}, {2, {1, 2}}}));
}

TEST(TilingSum, KeepsTheGroupsOfRegionsApart) {
  TilingSum sum;
  const std::vector<int> holders = {0, 1};
  sum.AddHolder(NameOf(BoxAt({0}, {2})), holders, 0);
  sum.AddHolder(NameOf(BoxAt({2}, {2})), holders, 1);
  EXPECT_FALSE(sum.is_zero());
}

// As many regions and as many holders, but two of them are exchanged.
TEST(TilingSum, ShowsHoldersOfTwoRegionsThatAreExchanged) {
  const auto sum_of = [](const Region& of_rank_1, const Region& of_rank_2) {
    TilingSum sum;
    sum.AddHolder(NameOf(BoxAt({0}, {2})), std::vector<int>{0, 1}, 0);
    sum.AddHolder(NameOf(BoxAt({2}, {2})), std::vector<int>{0, 2}, 0);
    sum.AddHolder(NameOf(of_rank_1), std::vector<int>{0, 1}, 1);
    sum.AddHolder(NameOf(of_rank_2), std::vector<int>{0, 2}, 2);
    return sum;
  };
  EXPECT_TRUE(sum_of(BoxAt({0}, {2}), BoxAt({2}, {2})).is_zero());
  EXPECT_FALSE(sum_of(BoxAt({2}, {2}), BoxAt({0}, {2})).is_zero());
}

TEST(TilingSum, OfHoldersOfManyRegionsIsThatOfEach) {
  const std::vector<int> holders = {0, 1, 5};
  TilingSum sum;
  TilingSum names = NameOf(BoxAt({0}, {2}));
  names.Add(NameOf(BoxAt({2}, {3})));
  sum.AddHolder(names, holders, 0);
  sum.AddHolder(names, holders, 5);
  sum.AddHolder(NameOf(BoxAt({2}, {3})), holders, 1);
  EXPECT_FALSE(sum.is_zero());
  sum.AddHolder(NameOf(BoxAt({0}, {2})), holders, 1);
  EXPECT_TRUE(sum.is_zero());
}

}  // namespace
}  // namespace sealpoint::internal::layout
