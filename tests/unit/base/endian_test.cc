// SPDX-License-Identifier: Apache-2.0
#include "lib/base/endian.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace sealpoint::internal {
namespace {

std::array<std::byte, 32> Counting() {
  std::array<std::byte, 32> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(0xf0 + i);
  return bytes;
}

TEST(LoadLe, ReadsTheLowestByteFirst) {
  const auto bytes = Counting();
  EXPECT_EQ(LoadLe<std::uint8_t>(bytes, 1), 0xf1u);
  EXPECT_EQ(LoadLe<std::uint16_t>(bytes, 1), 0xf2f1u);
  EXPECT_EQ(LoadLe<std::uint32_t>(bytes, 1), 0xf4f3f2f1u);
  EXPECT_EQ(LoadLe<std::uint64_t>(bytes, 1), 0xf8f7f6f5f4f3f2f1u);
}

TEST(StoreLe, WritesTheLowestByteFirstAndNothingElse) {
  std::array<std::byte, 10> bytes{};
  StoreLe<std::uint64_t>(bytes, 1, 0x0807060504030201u);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(std::to_integer<std::size_t>(bytes[i]), i <= 8 ? i : 0) << i;
  }
}

TEST(StoreLe, RoundTripsTheExtremes) {
  std::array<std::byte, 8> bytes{};
  StoreLe<std::uint32_t>(bytes, 2, 0xffffffffu);
  EXPECT_EQ(LoadLe<std::uint32_t>(bytes, 2), 0xffffffffu);
  StoreLe<std::uint16_t>(bytes, 0, 0x8000u);
  EXPECT_EQ(LoadLe<std::uint16_t>(bytes, 0), 0x8000u);
}

TEST(LoadId, KeepsTheByteOrder) {
  const auto bytes = Counting();
  const Id128 id = LoadId<Id128>(bytes, 3);
  EXPECT_EQ(id.ToHex(), "f3f4f5f6f7f8f9fafbfcfdfeff000102");
}

TEST(StoreId, RoundTrips) {
  const auto source = Counting();
  std::array<std::byte, 20> bytes{};
  StoreId(bytes, 2, LoadId<Id128>(source, 5));
  EXPECT_EQ(LoadId<Id128>(bytes, 2), LoadId<Id128>(source, 5));
  EXPECT_EQ(bytes[1], std::byte{0});
  EXPECT_EQ(bytes[18], std::byte{0});
}

TEST(AllZero, SeesASingleBitAnywhere) {
  std::array<std::byte, 9> bytes{};
  EXPECT_TRUE(AllZero(bytes));
  EXPECT_TRUE(AllZero({}));
  for (std::byte& byte : bytes) {
    byte = std::byte{0x80};
    EXPECT_FALSE(AllZero(bytes));
    byte = std::byte{0};
  }
}

}  // namespace
}  // namespace sealpoint::internal
