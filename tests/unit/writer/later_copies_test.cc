// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/later_copies.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lib/format/chunk_table.h"
#include "tests/support/container/mini_container.h"

namespace sealpoint::internal {
namespace {

using sealpoint::testing::NoiseBytes;

// From and to any address.
TEST(LaterCopiesTest, CopiesPastCachesAreWholeAndTouchNothingElse) {
  const Bytes from = NoiseBytes(3, 400);
  for (std::size_t size = 0; size <= 200; ++size) {
    for (std::size_t begin = 0; begin < 70; begin += 3) {
      Bytes expected(400, std::byte{7});
      std::copy_n(from.begin() + 5, size, expected.begin() + static_cast<std::ptrdiff_t>(begin));
      Bytes to(400, std::byte{7});
      CopyPastCaches(ByteSpan(from).subspan(5, size), MutableByteSpan(to).subspan(begin, size));
      ASSERT_EQ(to, expected) << size << " bytes to " << begin;
    }
  }
}

// What the source becomes after the copy is nobody's business.
TEST(LaterCopiesTest, AreHashedAsTheyWereCopied) {
  const Bytes before = NoiseBytes(4, 1000);
  Bytes from = before;
  Bytes to(1000);
  Bytes records(3 * kRecordSize);
  EncodeRecord({.stored_size = 600, .raw_size = 600}, MutableByteSpan(records).first(kRecordSize));
  EncodeRecord({.stored_size = 400, .raw_size = 400}, MutableByteSpan(records).last(kRecordSize));
  LaterCopies copies;
  const MutableByteSpan room(to);
  copies.Add(ByteSpan(from).first(600), {room.first(100), room.subspan(100, 500)}, 0);
  EXPECT_TRUE(copies.has_unmade());
  copies.Make(2);
  EXPECT_FALSE(copies.has_unmade());
  copies.Add(ByteSpan(from).last(400), {room.last(400)}, 2);
  copies.Make(2);
  std::ranges::fill(from, std::byte{0});
  EXPECT_EQ(to, before);
  copies.Hash(records);
  EXPECT_EQ(DecodeRecord(ByteSpan(records).first(kRecordSize)).value().raw_digest,
            ComputeDigest(ByteSpan(before).first(600)));
  EXPECT_EQ(DecodeRecord(ByteSpan(records).last(kRecordSize)).value().raw_digest,
            ComputeDigest(ByteSpan(before).last(400)));
}

}  // namespace
}  // namespace sealpoint::internal
