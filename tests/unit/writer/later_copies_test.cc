// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/later_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

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
  const TensorTable tensors;
  BlobLayout layout({}, tensors);
  ASSERT_TRUE(layout.AddShard({.raw_size = 1000, .chunk_size = 600}).ok());
  layout.AddChunk({.stored_size = 600});
  layout.AddChunk({.stored_size = 400});
  LaterCopies copies;
  const MutableByteSpan room(to);
  copies.Add(ByteSpan(from).first(600), {room.first(100), room.subspan(100, 500)}, 0);
  EXPECT_TRUE(copies.has_unmade());
  copies.Make(2);
  EXPECT_FALSE(copies.has_unmade());
  copies.Add(ByteSpan(from).last(400), {room.last(400)}, 1);
  copies.Make(2);
  std::ranges::fill(from, std::byte{0});
  EXPECT_EQ(to, before);
  copies.Hash(layout);
  std::vector<Bytes> pieces;
  ASSERT_TRUE(layout
                  .End([&](std::uint64_t, ByteSpan bytes) -> Status {
                    pieces.emplace_back(bytes.begin(), bytes.end());
                    return {};
                  })
                  .ok());
  const ByteSpan records = pieces[1];
  EXPECT_EQ(DecodeRecord(records.first(kRecordSize)).value().raw_digest,
            ComputeDigest(ByteSpan(before).first(600)));
  EXPECT_EQ(DecodeRecord(records.last(kRecordSize)).value().raw_digest,
            ComputeDigest(ByteSpan(before).last(400)));
}

}  // namespace
}  // namespace sealpoint::internal
