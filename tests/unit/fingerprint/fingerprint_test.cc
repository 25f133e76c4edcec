// SPDX-License-Identifier: Apache-2.0
//
// Fingerprints of host memory against the definition in spec/fingerprint.md, computed word by word.
#include "sealpoint/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "lib/base/endian.h"
#include "lib/fingerprint/coefficients.h"
#include "lib/fingerprint/part.h"
#include "lib/layout/box_copy.h"
#include "lib/layout/region_algebra.h"

namespace sealpoint {
namespace {

using internal::fingerprint::Add;
using internal::fingerprint::Dimension;
using internal::fingerprint::Multiply;
using internal::fingerprint::Pair;
using internal::fingerprint::Part;
using internal::fingerprint::SumOfRow;

using Random = std::mt19937_64;

Bytes RandomBytes(Random& random, std::size_t size) {
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::uint64_t Below(Random& random, std::uint64_t end) { return random() % end; }

template <typename Element>
Fingerprint OfElements(const Shape& shape, const std::vector<Element>& elements) {
  return ComputeFingerprint(shape, sizeof(Element), Region::Whole(shape),
                            MemoryView::Host(elements))
      .value();
}

Fingerprint OfBytes(const Shape& shape, std::uint32_t element_size, const Bytes& bytes) {
  return ComputeFingerprint(shape, element_size, Region::Whole(shape), MemoryView::Host(bytes))
      .value();
}

// Section 5 of the specification.
TEST(FingerprintTest, HasTheValuesOfTheSpecification) {
  EXPECT_EQ(OfElements<float>({}, {1}).ToString(), "spf1:000000003f800000000000003f800000");
  EXPECT_EQ(OfElements<float>({2}, {1, 2}).ToString(), "spf1:11d8b270b0f6b31603957a521bb2b613");
  Bytes twelve(12);
  for (std::size_t i = 0; i < twelve.size(); ++i) twelve[i] = static_cast<std::byte>(i + 1);
  EXPECT_EQ(OfBytes({2, 3}, 2, twelve).ToString(), "spf1:05cfe74d20c5d8a407f4ec55fee9f38e");
  EXPECT_EQ(OfElements<std::int64_t>({3, 2}, {-3, -2, -1, 0, 1, 2}).ToString(),
            "spf1:1017226f06be87f5153b63f1673e9cc9");
  std::vector<std::uint32_t> numbers(3000);
  for (std::uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  EXPECT_EQ(OfElements({2, 1500}, numbers).ToString(), "spf1:0cc2a129080107841822c87dc352f4c7");
  EXPECT_EQ(Dimension::FromLast(0)[1], (Pair{0x18bb598b4762c9c1, 0x0e195b098e55e947}));
  EXPECT_EQ(Dimension::FromLast(2)[31 << 5][0], 0x013c2b4ad17ba0c1U);
}

TEST(FingerprintTest, IsParsedFromItsText) {
  const Fingerprint some({Fingerprint::kModulus - 1, 5});
  EXPECT_EQ(some.ToString(), "spf1:1ffffffffffffffe0000000000000005");
  EXPECT_EQ(Fingerprint::FromString(some.ToString()).value(), some);
  for (const std::string text :
       {"", "spf1:", "spf2:1ffffffffffffffe0000000000000005", "spf1:1ffffffffffffffe00000000000005",
        "spf1:1fffffffffffffff0000000000000005", "spf1:1ffffffffffffffe000000000000000g",
        "spf1:-ffffffffffffffe0000000000000005"}) {
    EXPECT_EQ(Fingerprint::FromString(text).status().code(), Code::kInvalidArgument) << text;
  }
}

TEST(FingerprintTest, OfNoElementsIsZero) {
  const Bytes nothing;
  EXPECT_EQ(ComputeFingerprint({3, 0}, 4, Region::Whole({3, 0}), MemoryView::Host(nothing)).value(),
            Fingerprint());
}

TEST(FingerprintTest, RefusesMemoryThatDoesNotFit) {
  const Bytes bytes(12);
  const auto code = [&](const Shape& shape, std::uint32_t size, const Region& region) {
    return ComputeFingerprint(shape, size, region, MemoryView::Host(bytes)).status().code();
  };
  EXPECT_EQ(code({3}, 4, Region::Whole({3})), Code::kOk);
  EXPECT_EQ(code({4}, 4, Region::Whole({4})), Code::kInvalidArgument);
  EXPECT_EQ(code({3}, 0, Region::Whole({3})), Code::kInvalidArgument);
  EXPECT_EQ(code({3}, 4, Region::Whole({4})), Code::kInvalidArgument);
  EXPECT_EQ(code({3}, 4, Region()), Code::kInvalidArgument);
  const Shape deep(33, 1);
  const Bytes one(1);
  EXPECT_EQ(ComputeFingerprint(deep, 1, Region::Whole(deep), MemoryView::Host(one)).status().code(),
            Code::kLimitExceeded);
  const auto of_device = ComputeFingerprint({4}, 4, Region::Whole({4}),
                                            MemoryView::Cuda(bytes.data(), 12, 0, nullptr));
  EXPECT_EQ(of_device.status().code(), Code::kInvalidArgument);
}

// Word by word, as the text says.
Pair SlowSumOfRow(std::uint64_t begin, const Bytes& bytes) {
  Pair sum{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::uint64_t at = begin + i;
    const Pair coefficient = Dimension::FromLast(0)[at / 4];
    const std::uint64_t value = std::to_integer<std::uint64_t>(bytes[i]) << (8 * (at % 4));
    sum = Add(sum, Multiply(coefficient, {value, value}));
  }
  return sum;
}

TEST(FingerprintTest, RowsOfAnySizeAndPlaceAreSummedAlike) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t begin = Below(random, i % 3 == 0 ? std::uint64_t{1} << 45 : 10000);
    const Bytes bytes = RandomBytes(random, Below(random, i % 10 == 0 ? 9000 : 300));
    EXPECT_EQ(SumOfRow(begin, bytes), SlowSumOfRow(begin, bytes)) << begin << " " << bytes.size();
  }
  // Sums of the largest words fill 64 bits nearly.
  const Bytes ones(8192, std::byte{255});
  EXPECT_EQ(SumOfRow(0, ones), SlowSumOfRow(0, ones));
}

// A random tensor of random shape, and its elements.
struct Sample {
  Shape shape{};
  std::uint32_t element_size = 1;
  Bytes bytes{};
};

Sample RandomTensor(Random& random) {
  Sample sample{.element_size = std::uint32_t{1} << Below(random, 5)};
  std::uint64_t elements = 1;
  for (std::uint64_t ndim = Below(random, 5); sample.shape.size() < ndim;) {
    sample.shape.push_back(1 + Below(random, 12));
    elements *= sample.shape.back();
  }
  sample.bytes = RandomBytes(random, elements * sample.element_size);
  return sample;
}

// Cuts a box at random planes, and boxes into runs.
void Divide(Random& random, const Box& box, std::vector<Region>& parts) {
  const std::uint64_t elements = internal::layout::BoxElementCount(box);
  const std::size_t d = box.extent.empty() ? 0 : Below(random, box.extent.size());
  if (!box.extent.empty() && box.extent[d] > 1 && Below(random, 3) > 0) {
    const std::uint64_t cut = 1 + Below(random, box.extent[d] - 1);
    Box low = box;
    Box high = box;
    low.extent[d] = cut;
    high.offset[d] += cut;
    high.extent[d] -= cut;
    Divide(random, low, parts);
    Divide(random, high, parts);
    return;
  }
  const std::uint64_t cut = Below(random, elements + 1);
  if (cut > 0) parts.push_back({box, Run{0, cut}});
  if (cut < elements) parts.push_back({box, Run{cut, elements}});
}

TEST(FingerprintTest, PartsOfAnyShapeAddUp) {
  Random random(2);
  for (int i = 0; i < 10000; ++i) {
    const Sample sample = RandomTensor(random);
    std::vector<Region> parts;
    Divide(random, Region::Whole(sample.shape).box, parts);
    const auto strides = internal::layout::DenseStridesBytes(sample.shape, sample.element_size);
    Fingerprint sum;
    for (const Region& region : parts) {
      std::uint64_t origin = 0;
      for (std::size_t d = 0; d < strides.size(); ++d) {
        origin += region.box.offset[d] * static_cast<std::uint64_t>(strides[d]);
      }
      sum += ComputeFingerprint(
                 sample.shape, sample.element_size, region,
                 MemoryView::Host(sample.bytes.data(), sample.bytes.size(), strides, origin))
                 .value();
    }
    ASSERT_EQ(sum, OfBytes(sample.shape, sample.element_size, sample.bytes))
        << ShapeToString(sample.shape) << " of " << sample.element_size;
  }
}

// Large enough for blocks of rows: of one dimension, of several, and in boxes that begin within
// one.
TEST(FingerprintTest, NarrowRowsAreSummedAsAnyOthers) {
  Random random(7);
  const std::vector<Shape> shapes = {{40000, 1},   {3000, 17},           {130, 97, 3, 3},
                                     {7, 1100, 5}, {2, 40, 33, 2, 2, 3}, {64, 640},
                                     {600, 63}};
  for (const Shape& shape : shapes) {
    Box box = Region::Whole(shape).box;
    for (int i = 0; i < 4; ++i) {
      const Region region = Region::Of(box);
      const std::uint64_t size = region.element_count() * 4;
      const Bytes bytes = RandomBytes(random, size);
      const Part part(shape, 4, region);
      // Rows one by one are no block.
      Fingerprint sum;
      const std::uint64_t row_size = box.extent.back() * 4;
      for (std::uint64_t at = 0; at < size; at += row_size) {
        sum += part.Of(at, ByteSpan(bytes).subspan(at, row_size));
      }
      const std::uint64_t cut = Below(random, size);
      ASSERT_EQ(part.Of(0, ByteSpan(bytes).first(cut)) + part.Of(cut, ByteSpan(bytes).subspan(cut)),
                sum)
          << region.ToString();
      const std::size_t d = Below(random, shape.size());
      if (box.extent[d] < 3) continue;
      box.offset[d] += 1;
      box.extent[d] -= 2;
    }
  }
}

TEST(FingerprintTest, PiecesMayBeginWithinAnElement) {
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    const Sample sample = RandomTensor(random);
    const Part part(sample.shape, sample.element_size, Region::Whole(sample.shape));
    Fingerprint sum;
    for (std::size_t at = 0; at < sample.bytes.size();) {
      const std::size_t size = std::min(sample.bytes.size() - at, 1 + Below(random, 40));
      sum += part.Of(at, ByteSpan(sample.bytes).subspan(at, size));
      at += size;
    }
    ASSERT_EQ(sum, OfBytes(sample.shape, sample.element_size, sample.bytes));
  }
}

TEST(FingerprintTest, OfATransposedViewIsThatOfTheOriginal) {
  Random random(4);
  const Bytes original = RandomBytes(random, 30 * 7 * 2);
  Bytes transposed(original.size());
  for (std::size_t i = 0; i < 30; ++i) {
    for (std::size_t j = 0; j < 7; ++j) {
      std::memcpy(&transposed[(j * 30 + i) * 2], &original[(i * 7 + j) * 2], 2);
    }
  }
  const MemoryView view = MemoryView::Host(transposed.data(), transposed.size(), {2, 60});
  EXPECT_EQ(ComputeFingerprint({30, 7}, 2, Region::Whole({30, 7}), view).value(),
            OfBytes({30, 7}, 2, original));
  EXPECT_NE(OfBytes({7, 30}, 2, transposed), OfBytes({30, 7}, 2, original));
}

TEST(FingerprintTest, AnUpdateChangesItByTheChangedElements) {
  Random random(5);
  Bytes bytes = RandomBytes(random, 64 * 64 * 4);
  const Fingerprint before = OfBytes({64, 64}, 4, bytes);
  const Part part({64, 64}, 4, Region::Whole({64, 64}));
  const ByteSpan changed = ByteSpan(bytes).subspan(1000, 100);
  const Fingerprint old_part = part.Of(1000, changed);
  std::ranges::fill(bytes.begin() + 1000, bytes.begin() + 1100, std::byte{7});
  EXPECT_EQ(before - old_part + part.Of(1000, changed), OfBytes({64, 64}, 4, bytes));
}

// Errors of the kinds that happen to checkpoints: each changes some bytes.
TEST(FingerprintTest, MissesNoErrorOfAMillion) {
  constexpr std::size_t kRows = 8;
  constexpr std::size_t kRowSize = 48;
  const Shape shape = {kRows, kRowSize / 2};
  Random random(6);
  const Bytes good = RandomBytes(random, kRows * kRowSize);
  const Bytes stale = RandomBytes(random, good.size());
  const Fingerprint expected = OfBytes(shape, 2, good);
  const Part part(shape, 2, Region::Whole(shape));
  const auto flip = [&](Bytes& bytes) {
    bytes[Below(random, bytes.size())] ^= static_cast<std::byte>(1 << Below(random, 8));
  };
  const auto exchange = [&](Bytes& bytes, std::size_t unit) {
    const std::size_t a = Below(random, bytes.size() / unit) * unit;
    const std::size_t b = Below(random, bytes.size() / unit) * unit;
    if (a != b) std::swap_ranges(&bytes[a], &bytes[a] + unit, &bytes[b]);
  };
  const auto replace = [&](Bytes& bytes, const Bytes& by) {
    const std::size_t begin = Below(random, bytes.size());
    const std::size_t size = 1 + Below(random, bytes.size() - begin);
    std::copy_n(&by[Below(random, by.size() - size + 1)], size, &bytes[begin]);
  };
  const Bytes zeros(good.size());
  int missed = 0;
  for (int i = 0; i < 1000000; ++i) {
    Bytes bad = good;
    switch (i % 7) {
      case 0:
        flip(bad);
        break;
      case 1:
        flip(bad);
        flip(bad);
        break;
      case 2:
        exchange(bad, 2);
        break;
      case 3:
        exchange(bad, kRowSize);
        break;
      case 4:
        replace(bad, zeros);
        break;  // a lost shard
      case 5:
        replace(bad, stale);
        break;
      case 6:
        replace(bad, good);
        break;  // a slice of another place
    }
    if (bad != good && part.Of(0, bad) == expected) ++missed;
  }
  EXPECT_EQ(missed, 0);
}

}  // namespace
}  // namespace sealpoint
