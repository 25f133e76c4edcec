// SPDX-License-Identifier: Apache-2.0
//
// Which reads of a load bypass the page cache.
#include "readers/load/range_files.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "lib/container/open_checkpoint.h"
#include "tests/support/storage/forwarding_storage.h"
#include "tests/unit/load/load_fixture.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kLargeBytes = 16 * kMiB;
constexpr std::uint64_t kLargeChunkBytes = 4 * kMiB;

// What the files of a CacheStorage say and note.
struct CacheState {
  std::atomic<bool> is_cached = false;
  std::atomic<bool> is_cached_after_a_read = false;  // as if another process fetched the file
  std::atomic<std::uint64_t> direct_bytes = 0;
  std::atomic<std::uint64_t> buffered_bytes = 0;
};

class FileOfCache final : public ForwardingReader {
 public:
  FileOfCache(std::unique_ptr<ReadableFile> inner, bool is_direct, CacheState& state)
      : ForwardingReader(std::move(inner)), is_direct_(is_direct), state_(state) {}
  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override {
    (is_direct_ ? state_.direct_bytes : state_.buffered_bytes) += out.size();
    if (is_direct_ && state_.is_cached_after_a_read) state_.is_cached = true;
    return ForwardingReader::ReadAt(offset, out);
  }
  bool IsCached(std::uint64_t, std::uint64_t) const override { return state_.is_cached; }
  bool is_direct() const override { return is_direct_; }

 private:
  const bool is_direct_;
  CacheState& state_;
};

class CacheStorage final : public ForwardingStorage {
 public:
  CacheStorage(std::shared_ptr<Storage> inner, CacheState& state)
      : ForwardingStorage(std::move(inner)), state_(state) {}
  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override {
    auto inner = ForwardingStorage::OpenDirectory(path);
    if (!inner) return inner.error();
    return std::unique_ptr<Directory>(std::make_unique<Opened>(*std::move(inner), state_));
  }

 private:
  class Opened final : public ForwardingDirectory {
   public:
    Opened(std::unique_ptr<Directory> inner, CacheState& state)
        : ForwardingDirectory(std::move(inner)), state_(state) {}
    Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name,
                                                      IoMode mode) const override {
      auto file = ForwardingDirectory::OpenForRead(name, mode);
      if (!file) return file;
      return std::unique_ptr<ReadableFile>(
          std::make_unique<FileOfCache>(*std::move(file), mode == IoMode::kDirect, state_));
    }

   private:
    CacheState& state_;
  };

  CacheState& state_;
};

class RangeFilesTest : public LoadFixture {
 protected:
  RangeFilesTest() {
    for (std::size_t i = 0; i < bytes_.size(); i += 1000) bytes_[i] = std::byte{1};
    MiniSpec spec;
    spec.tensors.push_back({.name = "w",
                            .dtype = DType::kUInt8,
                            .shape = {kLargeBytes},
                            .chunk_size = kLargeChunkBytes,
                            .shards = {{.region = whole_, .bytes = bytes_}}});
    StoreFiles(*memory_, "c", BuildMini(spec).files);
    unsetenv("LOCAL_WORLD_SIZE");
  }
  ~RangeFilesTest() override { unsetenv("LOCAL_WORLD_SIZE"); }

  // Loads the first bytes. How they were read is in `state_`.
  void Load(std::optional<bool> direct_io, std::uint64_t size = kLargeBytes) {
    const auto checkpoint =
        Checkpoint::Open("c", {.storage = std::make_shared<CacheStorage>(memory_, state_),
                               .direct_io = direct_io})
            .value();
    Bytes out(size);
    ReadRequest request;
    request.Add("w", Region::Of({.offset = {0}, .extent = {size}}), MutableMemoryView::Host(out));
    const ReadPlan plan = checkpoint->Plan(request).value();
    state_.direct_bytes = state_.buffered_bytes = 0;
    ASSERT_TRUE(checkpoint->Read(plan, {.threads = 1}).ok());
    EXPECT_EQ(std::memcmp(out.data(), bytes_.data(), size), 0);
  }

  const Region whole_ = Region::Whole({kLargeBytes});
  Bytes bytes_ = Bytes(kLargeBytes);
  CacheState state_;
};

TEST_F(RangeFilesTest, ColdBytesAreReadDirectly) {
  Load({});
  EXPECT_EQ(state_.direct_bytes, kLargeBytes);
  EXPECT_EQ(state_.buffered_bytes, 0u);
}

TEST_F(RangeFilesTest, CachedBytesAreReadFromTheCache) {
  state_.is_cached = true;
  Load({});
  EXPECT_EQ(state_.direct_bytes, 0u);
  EXPECT_EQ(state_.buffered_bytes, kLargeBytes);
}

TEST_F(RangeFilesTest, TheRestIsReadFromTheCacheOnceAnotherProcessFetchesIt) {
  state_.is_cached_after_a_read = true;
  Load({});
  EXPECT_GT(state_.direct_bytes, 0u);
  EXPECT_LE(state_.direct_bytes, kLargeBytes / 2);
  EXPECT_EQ(state_.direct_bytes + state_.buffered_bytes, kLargeBytes);
}

TEST_F(RangeFilesTest, SmallReadsUseTheCache) {
  Load({}, 3 * kLargeChunkBytes);
  EXPECT_EQ(state_.direct_bytes, 0u);
}

TEST_F(RangeFilesTest, SmallRangesAndThoseOfOtherRanksUseTheCache) {
  using namespace internal;
  const CacheStorage storage(memory_, state_);
  const auto opened = container::OpenCommitted(storage, "c", {}, true, {}).value();
  load::RangeFiles files(
      container::BlobFiles(*opened.directory, opened.index.metadata, IoMode::kBuffered),
      load::DirectReads::kIfCold);
  transfer::PlanRange range{.size = kMiB};
  EXPECT_TRUE(files.Open(range).value()->is_direct());
  EXPECT_TRUE(files.TryOpen(range)->is_direct());
  EXPECT_TRUE(files.AreMostlyDirect({&range, 1}));
  range.size = kMiB - 1;
  EXPECT_FALSE(files.Open(range).value()->is_direct());
  range = {.size = kMiB, .has_other_readers = true};
  EXPECT_FALSE(files.Open(range).value()->is_direct());
  EXPECT_FALSE(files.TryOpen(range)->is_direct());
  EXPECT_FALSE(files.AreMostlyDirect({&range, 1}));
}

TEST_F(RangeFilesTest, TheOptionDecides) {
  for (const bool is_cached : {false, true}) {
    state_.is_cached = is_cached;
    Load(true);
    EXPECT_EQ(state_.buffered_bytes, 0u);
    Load(false);
    EXPECT_EQ(state_.direct_bytes, 0u);
  }
}

TEST_F(RangeFilesTest, ProcessesOfAJobThatLoadForThemselvesShareTheCache) {
  setenv("LOCAL_WORLD_SIZE", "2", 1);
  Load({});
  EXPECT_EQ(state_.direct_bytes, 0u);
  Load(true);
  EXPECT_EQ(state_.direct_bytes, kLargeBytes);
}

}  // namespace
}  // namespace sealpoint::testing
