// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "sealpoint/object_store.h"

namespace sealpoint::testing {
namespace {

// Byte i is i mod 251.
class CountingFile final : public ReadableFile {
 public:
  struct Counts {
    std::atomic<int> reads = 0;
    std::atomic<int> failures = 0;  // of the next reads
  };
  CountingFile(std::shared_ptr<Counts> counts, std::optional<int> descriptor)
      : counts_(std::move(counts)), descriptor_(descriptor) {}

  std::uint64_t size_bytes() const override { return 1050; }
  bool is_direct() const override { return false; }
  std::optional<int> descriptor() const override { return descriptor_; }
  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override {
    ++counts_->reads;
    if (counts_->failures > 0 && counts_->failures-- > 0) return Status(Code::kIo, "injected");
    if (offset + out.size() > size_bytes()) return Status(Code::kIncomplete, "too short");
    for (std::byte& byte : out) byte = static_cast<std::byte>(offset++ % 251);
    return {};
  }

 private:
  const std::shared_ptr<Counts> counts_;
  const std::optional<int> descriptor_;
};

class BlockCacheTest : public ::testing::Test {
 protected:
  std::unique_ptr<ReadableFile> Open() {
    return cache_->Wrap(std::make_unique<CountingFile>(counts_, std::nullopt));
  }
  static void ExpectRead(const ReadableFile& file, std::uint64_t offset, std::size_t size) {
    Bytes bytes(size);
    ASSERT_TRUE(file.ReadAt(offset, bytes).ok());
    for (const std::byte byte : bytes) EXPECT_EQ(byte, static_cast<std::byte>(offset++ % 251));
  }

  const std::shared_ptr<CountingFile::Counts> counts_ = std::make_shared<CountingFile::Counts>();
  std::shared_ptr<BlockCache> cache_ = BlockCache::Create(100, 3);
};

TEST_F(BlockCacheTest, SmallReadsShareBlocksAndLargeOnesDoNot) {
  const auto file = Open();
  cache_.reset();
  for (std::uint64_t at = 0; at + 49 <= 1050; at += 7) ExpectRead(*file, at, 49);
  EXPECT_EQ(counts_->reads, 11);
  ExpectRead(*file, 1049, 1);
  EXPECT_EQ(counts_->reads, 11);
  ExpectRead(*file, 1000, 50);
  EXPECT_EQ(counts_->reads, 12);
  ExpectRead(*file, 0, 0);
  Bytes beyond(10);
  EXPECT_EQ(file->ReadAt(1045, beyond).code(), Code::kIncomplete);
}

TEST_F(BlockCacheTest, FilesShareIt) {
  auto first = Open();
  const auto second = Open();
  for (const std::uint64_t at : {0u, 100u, 0u}) ExpectRead(*first, at, 1);
  ExpectRead(*second, 0, 1);
  EXPECT_EQ(counts_->reads, 3);
  ExpectRead(*second, 100, 1);  // instead of the one at 100 of the first
  ExpectRead(*first, 0, 1);
  EXPECT_EQ(counts_->reads, 4);
  ExpectRead(*first, 100, 1);
  EXPECT_EQ(counts_->reads, 5);
  first.reset();  // and makes room
  for (const std::uint64_t at : {0u, 100u, 200u, 0u, 100u}) ExpectRead(*second, at, 1);
  EXPECT_EQ(counts_->reads, 7);
}

TEST_F(BlockCacheTest, AReadThatFailsIsRepeated) {
  const auto file = Open();
  counts_->failures = 1;
  Bytes byte(1);
  EXPECT_EQ(file->ReadAt(7, byte).code(), Code::kIo);
  ExpectRead(*file, 7, 1);
}

TEST_F(BlockCacheTest, ThreadsThatWantABlockReadItOnce) {
  const auto file = Open();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t at = 0; at < 300; ++at) ExpectRead(*file, at, 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counts_->reads, 3);
}

TEST_F(BlockCacheTest, AFileOfTheSystemStaysAsItIs) {
  auto file = std::make_unique<CountingFile>(counts_, 5);
  const ReadableFile* const before = file.get();
  EXPECT_EQ(cache_->Wrap(std::move(file)).get(), before);
}

}  // namespace
}  // namespace sealpoint::testing
