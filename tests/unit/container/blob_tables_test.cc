// SPDX-License-Identifier: Apache-2.0
#include "lib/container/blob_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lib/container/open_checkpoint.h"
#include "lib/format/constants.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/container/rule_matchers.h"
#include "tests/support/storage/reading_storage.h"

namespace sealpoint::internal::container {
namespace {

using ::sealpoint::testing::BreaksRule;
using ::sealpoint::testing::BuildMini;
using ::sealpoint::testing::CutTensor;
using ::sealpoint::testing::MiniContainer;
using ::sealpoint::testing::MiniSpec;
using ::sealpoint::testing::NoiseBytes;
using ::sealpoint::testing::ReadCall;
using ::sealpoint::testing::ReadingStorage;
using ::sealpoint::testing::StoreFiles;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kChunk = 4096;
constexpr std::uint32_t kChunks = 200;  // of the shard: four groups

// One shard of 200 chunks in one blob.
MiniSpec OneLongShard() {
  MiniSpec spec;
  const Shape shape = {kChunks * kChunk / 16};
  spec.tensors.push_back(CutTensor("w", DType::kComplex128, shape, NoiseBytes(1, kChunks * kChunk),
                                   {Region::Whole(shape)}));
  return spec;
}

class BlobTablesTest : public ::testing::Test {
 protected:
  void Open(const MiniSpec& spec, const std::function<void(MiniContainer&)>& damage = {}) {
    container_ = BuildMini(spec);
    if (damage) damage(container_);
    StoreFiles(*memory_, "c", container_.files);
    files_ = OpenCommitted(storage_, "c", {}, true).value();
    tables_.emplace(*files_->directory, files_->index.metadata);
    storage_.ClearLog();
  }
  Result<std::vector<format::ChunkRecord>> Load(std::uint32_t first, std::uint32_t count) {
    return tables_->Load({.shard = {.blob = 0, .first_record = 0},
                          .shape = {.raw_size = kChunks * kChunk, .chunk_size = kChunk},
                          .first_chunk = first,
                          .count = count},
                         bytes_read_);
  }
  const format::BlobSections& sections() const { return container_.blobs.at(0).sections; }
  std::uint64_t RecordAt(std::uint32_t number) const {
    return sections().records + number * format::kRecordSize;
  }
  std::string path() const { return "c/" + container_.blobs.at(0).name; }

  std::shared_ptr<Storage> memory_ = MemoryStorage();
  ReadingStorage storage_{memory_};
  MiniContainer container_;
  std::optional<CommittedFiles> files_;
  std::optional<BlobTables> tables_;
  std::uint64_t bytes_read_ = 0;
};

TEST_F(BlobTablesTest, GivesTheRecordsOfTheChunks) {
  Open(OneLongShard());
  const auto records = Load(60, 10);
  ASSERT_TRUE(records.ok()) << records.error().ToString();
  const std::vector<format::ChunkRecord>& all = container_.blobs.at(0).records;
  EXPECT_EQ(*records, std::vector<format::ChunkRecord>(all.begin() + 60, all.begin() + 70));
}

TEST_F(BlobTablesTest, ReadsTheGroupListAndTheTouchedGroupsOnly) {
  Open(OneLongShard());
  ASSERT_TRUE(Load(60, 10).ok());
  const std::string name = container_.blobs.at(0).name;
  const std::vector<ReadCall> expected = {
      {name, sections().table, 4 * format::kDigestSize},
      {name, sections().records, 2 * format::kRecordsPerGroup * format::kRecordSize}};
  EXPECT_EQ(storage_.log().reads, expected);
  EXPECT_EQ(bytes_read_,
            4 * format::kDigestSize + 2 * format::kRecordsPerGroup * format::kRecordSize);
}

TEST_F(BlobTablesTest, ReadsNothingTwice) {
  Open(OneLongShard());
  ASSERT_TRUE(Load(60, 10).ok());
  storage_.ClearLog();
  const std::uint64_t before = bytes_read_;
  ASSERT_TRUE(Load(0, 128).ok());
  EXPECT_THAT(storage_.log().reads, IsEmpty());
  EXPECT_EQ(bytes_read_, before);
  ASSERT_TRUE(Load(0, kChunks).ok());  // two more groups, of which the last is short
  ASSERT_THAT(storage_.log().reads, SizeIs(1));
  EXPECT_EQ(storage_.log().reads[0].size, (kChunks - 128) * format::kRecordSize);
}

TEST_F(BlobTablesTest, DamagedGroupListIsCorrupt) {
  Open(OneLongShard(), [](MiniContainer& container) {
    container.blob(0)[container.blobs.at(0).sections.table + 50] ^= std::byte{1};
  });
  const Status error = Load(0, 1).status();
  EXPECT_THAT(error, BreaksRule(Code::kCorrupt, "R-BLB-05", sections().table));
  EXPECT_EQ(error.place().path, path());
}

TEST_F(BlobTablesTest, DamagedGroupIsCorruptWhereItIsTouched) {
  Open(OneLongShard(), [](MiniContainer& container) {
    container.blob(0)[container.blobs.at(0).sections.records + 70 * format::kRecordSize] ^=
        std::byte{1};
  });
  const Status error = Load(0, 65).status();
  EXPECT_THAT(error,
              BreaksRule(Code::kCorrupt, "R-BLB-05", sections().table + format::kDigestSize));
  EXPECT_EQ(error.place().path, path());
}

TEST_F(BlobTablesTest, DamagedGroupDoesNotMatterWhereItIsNotTouched) {
  Open(OneLongShard(), [](MiniContainer& container) {
    container.blob(0)[container.blobs.at(0).sections.records + 70 * format::kRecordSize] ^=
        std::byte{1};
  });
  EXPECT_TRUE(Load(0, 64).ok());
  EXPECT_TRUE(Load(128, 10).ok());
}

TEST_F(BlobTablesTest, RecordOfAnotherShardIsCorrupt) {
  MiniSpec spec = OneLongShard();
  spec.hooks.records = [](int, std::vector<format::ChunkRecord>& records) { records[5].shard = 1; };
  Open(spec);
  EXPECT_THAT(Load(4, 2).status(), BreaksRule(Code::kCorrupt, "R-REC-01", RecordAt(5) + 16));
  EXPECT_TRUE(Load(6, 10).ok());
}

TEST_F(BlobTablesTest, WrongRawLengthIsCorrupt) {
  MiniSpec spec = OneLongShard();
  spec.hooks.records = [](int, std::vector<format::ChunkRecord>& records) {
    records[5].raw_size = records[5].stored_size = 100;
  };
  Open(spec);
  EXPECT_THAT(Load(5, 1).status(), BreaksRule(Code::kCorrupt, "R-REC-02", RecordAt(5) + 12));
}

TEST_F(BlobTablesTest, GapBetweenChunksIsCorrupt) {
  MiniSpec spec = OneLongShard();
  spec.hooks.records = [](int, std::vector<format::ChunkRecord>& records) {
    records[5].offset += 8;
  };
  Open(spec);
  EXPECT_THAT(Load(4, 2).status(), BreaksRule(Code::kCorrupt, "R-REC-04", RecordAt(5)));
}

TEST_F(BlobTablesTest, ChunkBehindTheChunkAreaIsCorrupt) {
  MiniSpec spec = OneLongShard();
  spec.hooks.records = [](int, std::vector<format::ChunkRecord>& records) {
    records[199].offset = std::uint64_t{1} << 50;
  };
  Open(spec);
  EXPECT_THAT(Load(199, 1).status(), BreaksRule(Code::kCorrupt, "R-REC-04", RecordAt(199)));
}

TEST_F(BlobTablesTest, ChunkWhoseEndWrapsIsCorrupt) {
  MiniSpec spec = OneLongShard();
  spec.hooks.records = [](int, std::vector<format::ChunkRecord>& records) {
    records[199].offset = ~std::uint64_t{0} - 4095;
  };
  Open(spec);
  EXPECT_THAT(Load(199, 1).status(), BreaksRule(Code::kCorrupt, "R-REC-04", RecordAt(199)));
}

TEST_F(BlobTablesTest, ChunkInTheHeaderIsCorrupt) {
  MiniSpec spec = OneLongShard();
  spec.hooks.records = [](int, std::vector<format::ChunkRecord>& records) {
    records[9].offset = 64;
  };
  Open(spec);
  EXPECT_THAT(Load(9, 1).status(), BreaksRule(Code::kCorrupt, "R-REC-04", RecordAt(9)));
}

TEST_F(BlobTablesTest, MisalignedShardIsCorruptWhereItsBeginIsTouched) {
  MiniSpec spec = OneLongShard();
  spec.hooks.records = [](int, std::vector<format::ChunkRecord>& records) {
    for (format::ChunkRecord& record : records) record.offset -= 64;
  };
  Open(spec);
  EXPECT_THAT(Load(0, 1).status(), BreaksRule(Code::kCorrupt, "R-REC-04", RecordAt(0)));
}

TEST_F(BlobTablesTest, UnknownCodecIsUnsupported) {
  MiniSpec spec = OneLongShard();
  spec.hooks.record_bytes = [](int, Bytes& bytes) { bytes[24] = std::byte{99}; };
  Open(spec);
  EXPECT_THAT(Load(0, 1).status(), BreaksRule(Code::kUnsupported, "R-COD-01", RecordAt(0) + 24));
}

TEST_F(BlobTablesTest, BlobThatWentAwayIsIncomplete) {
  Open(OneLongShard());
  ::sealpoint::testing::ReplaceFile(*memory_, "c", container_.blobs.at(0).name, nullptr);
  const Status error = Load(0, 1).status();
  EXPECT_EQ(error.code(), Code::kIncomplete);
  EXPECT_EQ(error.place().path, path());
}

TEST_F(BlobTablesTest, BlobThatGrewIsCorrupt) {
  Open(OneLongShard());
  Bytes longer = container_.blob(0);
  longer.push_back({});
  ::sealpoint::testing::ReplaceFile(*memory_, "c", container_.blobs.at(0).name, &longer);
  EXPECT_EQ(Load(0, 1).status().place().rule, "R-BLB-09");
}

TEST_F(BlobTablesTest, ThreadsShareTheTables) {
  Open(OneLongShard());
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      std::uint64_t bytes_read = 0;
      for (std::uint32_t first = t; first + 20 <= kChunks; first += 7) {
        const auto records =
            tables_->Load({.shard = {.blob = 0, .first_record = 0},
                           .shape = {.raw_size = kChunks * kChunk, .chunk_size = kChunk},
                           .first_chunk = first,
                           .count = 20},
                          bytes_read);
        ASSERT_TRUE(records.ok());
        EXPECT_EQ(records->front().chunk, first);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(BlobFilesTest, KeepsTheLatestFewOpen) {
  MiniSpec spec;
  const Shape shape = {100};
  std::vector<Region> regions;
  std::vector<int> blobs;
  for (int i = 0; i < 100; ++i) {
    regions.push_back(Region::Of({{static_cast<std::uint64_t>(i)}, {1}}));
    blobs.push_back(i);
  }
  spec.tensors.push_back(CutTensor("w", DType::kUInt8, shape, NoiseBytes(1, 100), regions, blobs));
  const auto memory = MemoryStorage();
  StoreFiles(*memory, "c", BuildMini(spec).files);
  ReadingStorage storage(memory);
  const auto files = OpenCommitted(storage, "c", {}, true).value();
  BlobFiles blob_files(*files.directory, files.index.metadata, IoMode::kBuffered);
  for (std::uint32_t round = 0; round < 2; ++round) {
    for (std::uint32_t blob = 0; blob < 100; ++blob) ASSERT_TRUE(blob_files.Open(blob).ok());
  }
  EXPECT_LE(storage.log().open_file_count_max, 33u);
  const auto first = blob_files.Open(7).value();
  EXPECT_EQ(first, blob_files.Open(7).value());
}

}  // namespace
}  // namespace sealpoint::internal::container
