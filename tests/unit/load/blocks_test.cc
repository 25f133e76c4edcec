// SPDX-License-Identifier: Apache-2.0
//
// Files of the system are read in blocks, each of which is hashed while it is in the cache.
#include <algorithm>
#include <vector>

#include "tests/support/container/rule_matchers.h"
#include "tests/support/process/in_child.h"
#include "tests/support/storage/descriptor_storage.h"
#include "tests/unit/load/load_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kBlock = 256 * kKiB;
constexpr std::uint64_t kWidth = 1024;  // bytes of a row

class BlocksTest : public LoadFixture {
 protected:
  explicit BlocksTest(bool has_descriptors = true) : has_descriptors_(has_descriptors) {}

  void Renew() {
    memory_ = MemoryStorage();
    storage_ = std::make_shared<ReadingStorage>(std::make_shared<DescriptorStorage>(
        memory_,
        DescriptorOptions{
            .is_direct = false, .has_descriptors = has_descriptors_, .for_buffered = true}));
  }
  // `rows` rows of bytes in chunks of `chunk_rows`.
  void OpenRows(std::uint64_t rows, std::uint64_t chunk_rows, Codec codec = Codec::kNone,
                const std::function<void(MiniContainer&)>& damage = {}) {
    memory_ = MemoryStorage();
    storage_ = std::make_shared<ReadingStorage>(std::make_shared<DescriptorStorage>(
        memory_,
        DescriptorOptions{
            .is_direct = false, .has_descriptors = has_descriptors_, .for_buffered = true}));
    shape_ = {rows, kWidth};
    bytes_ = NoiseBytes(1, rows * kWidth);
    if (codec != Codec::kNone) {
      for (std::size_t i = 0; i < bytes_.size(); i += 2) bytes_[i] = std::byte{0};
    }
    MiniSpec spec;
    spec.tensors.push_back(CutTensor("w", DType::kUInt8, shape_, bytes_, {Region::Whole(shape_)}));
    spec.tensors.back().chunk_size = chunk_rows * kWidth;
    spec.tensors.back().codec = codec;
    Open(spec, damage);
  }
  Region Columns() const { return Region::Of({{0, 100}, {shape_[0], 200}}); }
  Bytes Expected(const Region& region) const { return ExtractRegion(bytes_, shape_, 1, region); }

  // The sizes of the last `count` reads; those of the tables come before.
  std::vector<std::uint64_t> LastReads(std::size_t count) const {
    std::vector<std::uint64_t> sizes;
    const ReadLog log = storage_->log();
    for (std::size_t i = log.reads.size() - std::min(count, log.reads.size()); i < log.reads.size();
         ++i) {
      sizes.push_back(log.reads[i].size);
    }
    return sizes;
  }
  static void FlipLastByte(MiniContainer& container) {
    const auto& record = container.blobs.at(0).records.back();
    container.blob(0)[record.offset + record.stored_size - 1] ^= std::byte{1};
  }

  std::uint64_t last_chunk_offset() const { return container_.blobs.at(0).records.back().offset; }

  const bool has_descriptors_;
  Shape shape_;
  Bytes bytes_;
};

TEST_F(BlocksTest, InPlace) {
  OpenRows(1000, 512);
  const Region whole = Region::Whole(shape_);
  EXPECT_EQ(ReadDense("w", whole).value(), Expected(whole));
  EXPECT_THAT(LastReads(4), ElementsAre(kBlock, kBlock, kBlock, 1000 * kWidth - 3 * kBlock));
}

// Such copies from the page cache are slow. The detour leaves the bytes around the target alone.
TEST_F(BlocksTest, NoLargeReadGoesToMemoryThatIsSlow) {
  for (const std::uint64_t chunk_rows : {512u, 8u}) {
    OpenRows(1000, chunk_rows);
    const Region whole = Region::Whole(shape_);
    for (const std::size_t shift : {0u, 1u, 16u, 31u, 32u}) {
      storage_->ClearLog();
      Bytes memory(bytes_.size() + 8192, std::byte{0xAB});
      const std::size_t begin =
          4096 - reinterpret_cast<std::uintptr_t>(memory.data()) % 4096 + shift;
      ReadRequest request;
      request.Add("w", whole,
                  MutableMemoryView::Host(MutableByteSpan(memory).subspan(begin, bytes_.size())));
      ASSERT_TRUE(checkpoint_->Load(request, LoadContract::Partial()).ok());
      Bytes expected(memory.size(), std::byte{0xAB});
      std::copy(bytes_.begin(), bytes_.end(), expected.begin() + static_cast<long>(begin));
      EXPECT_EQ(memory, expected);
      EXPECT_LT(storage_->log().skewed_bytes, 64 * kKiB);  // tables
    }
  }
}

TEST_F(BlocksTest, SmallChunksInPlace) {
  OpenRows(300, 8);
  const Region whole = Region::Whole(shape_);
  EXPECT_EQ(ReadDense("w", whole).value(), Expected(whole));
  EXPECT_THAT(LastReads(2), ElementsAre(kBlock, 300 * kWidth - kBlock));
}

// The border between two chunks lies within a block.
TEST_F(BlocksTest, LargeChunksOfTwoTensorsInPlace) {
  OpenRows(300, 512);
  MiniSpec spec;
  for (const std::string name : {"a", "b"}) {
    spec.tensors.push_back(CutTensor(name, DType::kUInt8, shape_, bytes_, {Region::Whole(shape_)}));
    spec.tensors.back().chunk_size = 512 * kWidth;
  }
  Renew();
  Open(spec);
  Bytes out(2 * bytes_.size());
  ReadRequest request;
  request.Add("a", MutableMemoryView::Host(MutableByteSpan(out).first(bytes_.size())));
  request.Add("b", MutableMemoryView::Host(MutableByteSpan(out).subspan(bytes_.size())));
  ASSERT_TRUE(checkpoint_->Load(request).ok());
  EXPECT_TRUE(std::equal(bytes_.begin(), bytes_.end(), out.begin()));
  EXPECT_TRUE(std::equal(bytes_.rbegin(), bytes_.rend(), out.rbegin()));
  EXPECT_THAT(LastReads(3), ElementsAre(kBlock, kBlock, 600 * kWidth - 2 * kBlock));
}

TEST_F(BlocksTest, LargeChunksThatAreCopied) {
  OpenRows(1000, 512);
  EXPECT_EQ(ReadDense("w", Columns()).value(), Expected(Columns()));
  EXPECT_THAT(LastReads(4), ElementsAre(kBlock, kBlock, kBlock, 1000 * kWidth - 3 * kBlock));
}

TEST_F(BlocksTest, SmallChunksThatAreCopiedShareABlock) {
  OpenRows(300, 8);
  EXPECT_EQ(ReadDense("w", Columns()).value(), Expected(Columns()));
  EXPECT_THAT(LastReads(2), ElementsAre(kBlock, 300 * kWidth - kBlock));
}

TEST_F(BlocksTest, CodedChunks) {
  for (const std::uint64_t chunk_rows : {1024u, 8u}) {
    OpenRows(2000, chunk_rows, Codec::kZstd);
    EXPECT_EQ(ReadDense("w", Columns()).value(), Expected(Columns()));
    const Region whole = Region::Whole(shape_);
    EXPECT_EQ(ReadDense("w", whole).value(), Expected(whole));
  }
}

TEST_F(BlocksTest, ADamagedByteOfTheLastBlock) {
  for (const std::uint64_t chunk_rows : {512u, 8u}) {
    OpenRows(1000, chunk_rows, Codec::kNone, FlipLastByte);
    for (const Region& region : {Columns(), Region::Whole(shape_)}) {
      EXPECT_THAT(ReadDense("w", region).status(),
                  BreaksRule(Code::kCorrupt, "R-CHK-02", last_chunk_offset()));
    }
  }
}

TEST_F(BlocksTest, ADamagedByteOfACodedChunk) {
  for (const std::uint64_t chunk_rows : {1024u, 8u}) {
    OpenRows(2000, chunk_rows, Codec::kZstd, FlipLastByte);
    EXPECT_THAT(ReadDense("w", Columns()).status(),
                BreaksRule(Code::kCorrupt, "R-CHK-01", last_chunk_offset()));
  }
}

// After a fork the child must not use the staging memory.
TEST_F(BlocksTest, WithoutMemoryTheErrorNamesTheTensor) {
  OpenRows(1000, 512);
  EXPECT_TRUE(HoldsInChild([&] {
    const Status error = ReadDense("w", Columns()).status();
    return error.code() == Code::kInvalidArgument && error.place().tensor == "w";
  }));
}

// In another storage each call may be a request.
class WithoutDescriptorTest : public BlocksTest {
 protected:
  WithoutDescriptorTest() : BlocksTest(false) {}
};

TEST_F(WithoutDescriptorTest, ARangeIsReadAtOnce) {
  OpenRows(1000, 512);
  for (const Region& region : {Columns(), Region::Whole(shape_)}) {
    storage_->ClearLog();
    EXPECT_EQ(ReadDense("w", region).value(), Expected(region));
    EXPECT_THAT(LastReads(1), ElementsAre(1000 * kWidth));
  }
}

}  // namespace
}  // namespace sealpoint::testing
