// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/id.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <string>
#include <utility>

namespace {

int random_error = 0;  // the error with which the next calls fail

}  // namespace

// Replaces the function of the C library.
extern "C" ssize_t getrandom(void* buffer, std::size_t size, unsigned flags) {
  if (random_error != 0) {
    errno = std::exchange(random_error, random_error == EINTR ? 0 : random_error);
    return -1;
  }
  return ::syscall(SYS_getrandom, buffer, size, flags);
}

namespace sealpoint {
namespace {

constexpr std::string_view kHex = "00112233445566778899aabbccddeeff";

TEST(Id128Hex, PrintsInByteOrder) {
  Id128 id;
  for (std::size_t i = 0; i < 16; ++i) id.bytes[i] = static_cast<std::byte>(i * 0x11);
  EXPECT_EQ(id.ToHex(), kHex);
}

TEST(Id128Hex, RoundTrips) { EXPECT_EQ(Id128::FromHex(kHex).value().ToHex(), kHex); }

TEST(Id128Hex, RefusesAnyOtherLength) {
  for (const std::string& hex :
       {std::string(), std::string(kHex.substr(1)), std::string(kHex) + "0"}) {
    const auto id = Id128::FromHex(hex);
    ASSERT_FALSE(id.ok()) << hex;
    EXPECT_EQ(id.error().code(), Code::kInvalidArgument);
  }
}

TEST(Id128Hex, RefusesUpperCase) {
  std::string hex(kHex);
  hex[20] = 'A';
  EXPECT_FALSE(Id128::FromHex(hex).ok());
}

TEST(Id128Hex, RefusesOtherCharactersAndNamesThePosition) {
  for (const char bad : {'g', ' ', '-', '\0', '/', ':', '`'}) {
    std::string hex(kHex);
    hex[31] = bad;
    const auto id = Id128::FromHex(hex);
    ASSERT_FALSE(id.ok()) << bad;
    EXPECT_NE(id.error().message().find("position 31"), std::string::npos);
  }
}

TEST(Id128, ZeroIsOnlyAllZero) {
  EXPECT_TRUE(Id128{}.is_zero());
  Id128 id;
  id.bytes[15] = std::byte{1};
  EXPECT_FALSE(id.is_zero());
}

TEST(Id128, OrdersByBytes) {
  EXPECT_LT(Id128::FromHex("00ff0000000000000000000000000000").value(),
            Id128::FromHex("01000000000000000000000000000000").value());
}

TEST(Id128Random, GivesNoIdTwice) {
  std::set<Id128> seen;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(Id128::Random().value()).second);
}

TEST(Id128Random, FailsWhereTheSystemGivesNothing) {
  random_error = ENOSYS;
  const auto id = Id128::Random();
  random_error = 0;
  EXPECT_EQ(id.status().code(), Code::kIo);
}

TEST(Id128Random, AsksAgainAfterASignal) {
  random_error = EINTR;
  EXPECT_TRUE(Id128::Random().ok());
  EXPECT_EQ(random_error, 0);
}

TEST(Id128Random, FillsEveryByte) {
  // Each byte is zero in all of 64 ids with a probability of 2^-512.
  Id128 any;
  for (int i = 0; i < 64; ++i) {
    const Id128 id = Id128::Random().value();
    for (std::size_t b = 0; b < 16; ++b) any.bytes[b] |= id.bytes[b];
  }
  for (const std::byte byte : any.bytes) EXPECT_NE(byte, std::byte{0});
}

}  // namespace
}  // namespace sealpoint
