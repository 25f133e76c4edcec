// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/blob_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/format/constants.h"
#include "lib/writer/blob_summary_parts.h"
#include "lib/writer/tensor_checks.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/container/rule_matchers.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::internal::writer {
namespace {

using sealpoint::testing::ByteTensor;
using sealpoint::testing::HasCode;
using sealpoint::testing::NoiseBytes;
using sealpoint::testing::Slice;

constexpr std::uint64_t kChunk = 64 * kKiB;

class BlobLayoutTest : public ::testing::Test {
 protected:
  // A shard of a tensor of so many bytes.
  BlobLayout::ShardPlace Add(const std::string& name, std::uint64_t size,
                             Codec codec = Codec::kNone) {
    TensorSpec tensor = ByteTensor(name, size);
    tensor.chunk_size_bytes = kChunk;
    const std::uint32_t number = tensors_.Add(AttributesOf(tensor));
    const auto place =
        layout_.AddShard({.raw_size = size, .chunk_size = kChunk, .codec = codec}).value();
    layout_.DeclareShard(number, Slice(0, size), place.first_record);
    if (codec == Codec::kNone) AddChunks(size);
    return place;
  }

  void AddChunks(std::uint64_t size) {
    for (std::uint64_t left = size; left > 0; left -= std::min(left, kChunk)) {
      layout_.AddChunk({.stored_size = std::min(left, kChunk)});
    }
  }

  // Ends the layout and returns its records; what follows the chunks is in tail_.
  std::vector<format::ChunkRecord> End() {
    std::vector<Bytes> pieces;
    const std::uint64_t begin = layout_.offset();
    const Status status = layout_.End([&](std::uint64_t zeros, ByteSpan bytes) -> Status {
      tail_.resize(tail_.size() + zeros);
      tail_.insert(tail_.end(), bytes.begin(), bytes.end());
      pieces.emplace_back(bytes.begin(), bytes.end());
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ((begin + tail_.size()) % format::kFileAlignment, 0);
    std::vector<format::ChunkRecord> records;
    for (std::size_t at = 0; at < pieces[1].size(); at += format::kRecordSize) {
      records.push_back(
          format::DecodeRecord(ByteSpan(pieces[1]).subspan(at, format::kRecordSize)).value());
    }
    return records;
  }

  metadata::TensorTable tensors_;
  BlobLayout layout_{{.id = BlobId::Random().value(), .step = 5}, tensors_};
  Bytes tail_;
};

TEST_F(BlobLayoutTest, BeginsSmallShardsAt64BytesAndLargeOnesAtPages) {
  EXPECT_EQ(layout_.offset(), format::kHeaderSize);
  EXPECT_EQ(Add("a", 10).padding, 0);
  EXPECT_EQ(Add("b", format::kLargeShardSize - 1).padding, 54);
  const std::uint64_t end = layout_.offset();
  EXPECT_EQ((end + Add("c", format::kLargeShardSize).padding) % format::kLargeShardAlignment, 0);
  EXPECT_EQ(Add("d", 1).first_record, 3);
}

TEST_F(BlobLayoutTest, CutsAShardIntoChunksBackToBack) {
  Add("a", 3);
  EXPECT_EQ(Add("b", 2 * kChunk + 7).first_record, 1);
  const Digest digest = ComputeDigest(NoiseBytes(1, 7));
  layout_.SetDigest(3, digest);
  const auto records = End();
  ASSERT_EQ(records.size(), 4);
  EXPECT_EQ(records[0].raw_digest, Digest());
  for (std::uint32_t i = 1; i < 4; ++i) {
    EXPECT_EQ(records[i].offset, format::kFileAlignment + (i - 1) * kChunk);
    EXPECT_EQ(records[i].raw_size, i < 3 ? kChunk : 7);
    EXPECT_EQ(records[i].stored_size, records[i].raw_size);
    EXPECT_EQ(records[i].shard, 1);
    EXPECT_EQ(records[i].chunk, i - 1);
  }
  EXPECT_EQ(records[3].raw_digest, digest);
}

TEST_F(BlobLayoutTest, PlacesEncodedChunksAsTheyCome) {
  Add("a", 2 * kChunk, Codec::kZstd);
  const std::uint64_t begin = layout_.offset();
  layout_.AddChunk({.stored_size = 100,
                    .codec = Codec::kZstd,
                    .raw_digest = ComputeDigest(NoiseBytes(1, 1)),
                    .stored_digest = ComputeDigest(NoiseBytes(2, 1))});
  layout_.AddChunk({.stored_size = kChunk, .raw_digest = ComputeDigest(NoiseBytes(3, 1))});
  EXPECT_EQ(layout_.offset(), begin + 100 + kChunk);
  const auto records = End();
  ASSERT_EQ(records.size(), 2);
  EXPECT_EQ(records[0].codec, Codec::kZstd);
  EXPECT_EQ(records[0].stored_digest, ComputeDigest(NoiseBytes(2, 1)));
  EXPECT_EQ(records[0].raw_size, kChunk);
  EXPECT_EQ(records[1].offset, begin + 100);
  EXPECT_EQ(records[1].codec, Codec::kNone);
  EXPECT_EQ(records[1].chunk, 1);
}

TEST_F(BlobLayoutTest, EndsInWhatASummaryIsMadeOf) {
  layout_.SetAttempt(AttemptId::Random().value());
  Add("a", 3 * kChunk);
  const auto object = layout_.AddShard({.raw_size = 9, .chunk_size = kChunk}).value();
  AddChunks(9);
  layout_.DeclareObject({.name = "o", .media_type = "text/plain"},
                        {.raw_size = 9, .chunk_size = kChunk}, object.first_record);
  const std::uint64_t chunks_end = layout_.offset();
  const std::uint64_t projected = layout_.projected_size();
  End();
  EXPECT_LE(chunks_end + tail_.size(), projected);
  const auto summary =
      DecodeSummary(std::make_shared<const Bytes>(layout_.TakeSummary()), Limits()).value();
  EXPECT_EQ(summary.header.id, layout_.id());
  EXPECT_EQ(summary.header.step, 5);
  EXPECT_NE(summary.header.attempt, AttemptId());
  EXPECT_EQ(summary.trailer.chunks_end, chunks_end);
  EXPECT_EQ(summary.trailer.record_count, 4);
  EXPECT_EQ(summary.trailer.shard_count, 2);
  EXPECT_EQ(summary.trailer.raw_bytes, 3 * kChunk + 9);
  EXPECT_EQ(summary.trailer.file_size, chunks_end + tail_.size());
}

TEST_F(BlobLayoutTest, HasRecordsThatACountCanNumber) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
  const transfer::ShardEncoding most{.raw_size = kMax, .chunk_size = 1};
  EXPECT_TRUE(layout_.AddShard(most).ok());
  Add("a", 1);
  EXPECT_THAT(layout_.AddShard(most).status(), HasCode(Code::kLimitExceeded));
}

TEST_F(BlobLayoutTest, StopsWithTheErrorOfWhoAppends) {
  for (int failing = 0; failing < 4; ++failing) {
    BlobLayout layout({}, tensors_);
    int count = 0;
    const Status status = layout.End([&](std::uint64_t, ByteSpan) {
      return count++ == failing ? Status(Code::kIo, "injected") : Status();
    });
    EXPECT_THAT(status, HasCode(Code::kIo)) << failing;
    EXPECT_EQ(count, failing + 1);
  }
}

}  // namespace
}  // namespace sealpoint::internal::writer
