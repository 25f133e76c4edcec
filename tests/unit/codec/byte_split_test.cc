// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>

#include "lib/codec/chunk_codec.h"

namespace sealpoint::internal::codec {
namespace {

Bytes Numbered(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 151 + i / 256 * 7);
  return bytes;
}

// The definition, written down once more.
Bytes SplitByDefinition(std::size_t element_size, const Bytes& raw) {
  const std::size_t count = raw.size() / element_size;
  Bytes out = raw;
  for (std::size_t p = 0; p < element_size; ++p) {
    for (std::size_t i = 0; i < count; ++i) out[p * count + i] = raw[i * element_size + p];
  }
  return out;
}

TEST(SplitBytes, BringsBytesOfEqualSignificanceTogetherAndKeepsTheRest) {
  Bytes out(11);
  SplitBytes(4, AsBytes("abcdABCDxyz"), out);
  EXPECT_EQ(AsText(out), "aAbBcCdDxyz");
}

TEST(SplitBytes, CopiesElementsOfOneByte) {
  const Bytes raw = Numbered(1000);
  Bytes out(raw.size());
  SplitBytes(1, raw, out);
  EXPECT_EQ(out, raw);
}

class ByteSplitSizes : public testing::TestWithParam<std::uint32_t> {};

// Counts around the tile of 512 elements, with and without a rest behind the last whole element.
TEST_P(ByteSplitSizes, FollowsTheDefinitionAndJoinsBack) {
  for (const std::size_t count : {0U, 1U, 2U, 15U, 16U, 17U, 511U, 512U, 513U, 1025U}) {
    for (const std::size_t rest : {std::size_t{0}, std::size_t{GetParam() - 1}}) {
      const Bytes raw = Numbered(count * GetParam() + rest);
      Bytes split(raw.size());
      SplitBytes(GetParam(), raw, split);
      EXPECT_EQ(split, SplitByDefinition(GetParam(), raw)) << count << " elements";
      Bytes joined(raw.size());
      JoinBytes(GetParam(), split, joined);
      EXPECT_EQ(joined, raw) << count << " elements";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ByteSplitSizes, testing::Values(1, 2, 3, 4, 7, 8, 12, 16, 32));

}  // namespace
}  // namespace sealpoint::internal::codec
