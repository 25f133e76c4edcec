// SPDX-License-Identifier: Apache-2.0
#include "lib/digest/hasher.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace sealpoint::internal::digest {
namespace {

// The generator of the vectors that xxHash publishes (its program's self-test).
Bytes TestBytes(std::size_t size) {
  Bytes bytes(size);
  std::uint64_t state = 2654435761U;
  for (std::byte& b : bytes) {
    b = static_cast<std::byte>(state >> 56);
    state *= 11400714785074694797ULL;
  }
  return bytes;
}

constexpr std::size_t kPiece = 64 * kKiB;
constexpr std::size_t kSizes[] = {
    0,    1,    2,    16,   17,         128,    129,        240,           241,
    1023, 1024, 1025, 4096, kPiece - 1, kPiece, kPiece + 1, 3 * kPiece + 5};

TEST(ComputeDigest, GivesThePublishedVectorsInCanonicalOrder) {
  struct Vector {
    std::size_t size;
    std::string_view hex;
  };
  constexpr Vector kVectors[] = {
      {0, "99aa06d3014798d86001c324468d497f"},    {1, "a6cd5e9392000f6ac44bdff4074eecdb"},
      {6, "082afe0b8162d12a3e7039bdda43cfc6"},    {12, "6e3efd8fc7802b18061a192713f69ad9"},
      {24, "0ce966e4678d37611e7044d28b1b901d"},   {48, "a002ac4e5478227ef942219aed80f67b"},
      {81, "4952f58181ab00425e8bafb9f95fb803"},   {222, "337e09641b948717f1aebd597cec6b3a"},
      {403, "1b6de21e332dd73dcdeb804d65c6dea4"},  {512, "18d2d110dcc9bca1617e49599013cb6b"},
      {2048, "f736557fd47073a5dd59e2c3a5f038e0"}, {2240, "ccb134fbfa7ce49d6e73a90539cf2948"},
      {2367, "e89c0f6ff369b427cb37aeb9e5d361ed"}};
  for (const Vector& vector : kVectors) {
    EXPECT_EQ(ComputeDigest(TestBytes(vector.size)).ToHex(), vector.hex) << vector.size;
  }
}

TEST(Hasher, StreamsToTheDigestOfTheWhole) {
  Hasher hasher;
  for (const std::size_t size : kSizes) {
    const Bytes bytes = TestBytes(size);
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{256}, kPiece}) {
      if (step == 1 && size > 8 * kKiB) continue;
      for (std::size_t at = 0; at < size; at += step) {
        hasher.Update(ByteSpan(bytes).subspan(at, std::min(step, size - at)));
      }
      EXPECT_EQ(hasher.Finish(), ComputeDigest(bytes)) << size << " in steps of " << step;
    }
  }
}

TEST(Hasher, BeginsAnewAfterFinish) {
  const Bytes bytes = TestBytes(300);
  Hasher hasher;
  hasher.Update(TestBytes(1000));
  static_cast<void>(hasher.Finish());
  EXPECT_EQ(hasher.Finish(), ComputeDigest({}));
  hasher.Update(bytes);
  EXPECT_EQ(hasher.Finish(), ComputeDigest(bytes));
}

TEST(Hasher, TakesEmptySpansWithoutAddress) {
  const Bytes bytes = TestBytes(500);
  Hasher hasher;
  hasher.Update({});
  hasher.Update(bytes);
  hasher.Update(ByteSpan());
  EXPECT_EQ(hasher.Finish(), ComputeDigest(bytes));
}

TEST(Hasher, KeepsItsStateWhenMoved) {
  const Bytes bytes = TestBytes(2000);
  Hasher first;
  first.Update(ByteSpan(bytes).first(700));
  Hasher second = std::move(first);
  second.Update(ByteSpan(bytes).subspan(700));
  EXPECT_EQ(second.Finish(), ComputeDigest(bytes));
}

TEST(Hasher, CopiesWhatItHashes) {
  Hasher hasher;
  for (const std::size_t size : kSizes) {
    const Bytes from = TestBytes(size);
    Bytes to(size, std::byte{0xee});
    hasher.CopyAndUpdate(from, to);
    EXPECT_EQ(to, from) << size;
    EXPECT_EQ(hasher.Finish(), ComputeDigest(from)) << size;
  }
}

// The destination is one page of memory that is mapped twice in a row: what was copied to the first
// address is overwritten by the copy to the second, as if the memory had dropped it.
TEST(Hasher, HashesTheCopyAndNotTheSource) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (page >= kPiece) GTEST_SKIP() << "what is hashed at a time is one page";
  const int fd = memfd_create("hasher_test", MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, static_cast<off_t>(page)), 0);
  void* const both = mmap(nullptr, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(both, MAP_FAILED);
  auto* const base = static_cast<std::byte*>(both);
  for (std::byte* const at : {base, base + page}) {
    ASSERT_EQ(mmap(at, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), at);
  }
  const Bytes from = TestBytes(2 * page);
  const MutableByteSpan to(base, 2 * page);
  Hasher hasher;
  hasher.CopyAndUpdate(from, to);
  const Digest digest = hasher.Finish();
  EXPECT_EQ(digest, ComputeDigest(to));
  EXPECT_NE(digest, ComputeDigest(from));
  munmap(both, 2 * page);
  close(fd);
}

TEST(HasherDeathTest, RefusesACopyOfAnotherSize) {
  Hasher hasher;
  Bytes to(3);
  EXPECT_DEATH(hasher.CopyAndUpdate(TestBytes(4), to), "from.size\\(\\) == to.size\\(\\)");
}

}  // namespace
}  // namespace sealpoint::internal::digest
