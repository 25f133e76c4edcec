// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/posix_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/storage/storage_fixture.h"

// Direct I/O, and errors of the system, which are made with descriptors that are no regular files.

namespace sealpoint::internal::storage {
namespace {

using testing::TempDir;
using testing::WriteFile;

constexpr std::size_t kBlock = kDirectIoAlignmentBytes;

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using AlignedMemory = std::unique_ptr<std::byte, FreeMemory>;

AlignedMemory Allocate(std::size_t blocks) {
  return AlignedMemory(static_cast<std::byte*>(std::aligned_alloc(kBlock, blocks * kBlock)));
}

class DirectFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!directory_->Probe("probe").value().direct_io) GTEST_SKIP() << "no direct I/O here";
    std::fill(bytes_.begin(), bytes_.end(), std::byte{'x'});
  }

  const TempDir temp_;
  const std::unique_ptr<Directory> directory_ = PosixStorage()->OpenDirectory(temp_.path()).value();
  const AlignedMemory memory_ = Allocate(4);
  const MutableByteSpan bytes_{memory_.get(), 4 * kBlock};
};

// Pages of a file that are in the page cache. Looking fetches none.
class Residency {
 public:
  explicit Residency(const ReadableFile& file)
      : size_(file.size_bytes()),
        memory_(::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.descriptor().value(), 0)) {}
  ~Residency() { ::munmap(memory_, size_); }
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;

  std::uint64_t CountIn(std::uint64_t offset, std::uint64_t size) const {
    std::vector<unsigned char> pages(size / kBlock);
    EXPECT_EQ(::mincore(static_cast<std::byte*>(memory_) + offset, size, pages.data()), 0);
    return static_cast<std::uint64_t>(
        std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; }));
  }

 private:
  const std::uint64_t size_;
  void* const memory_;
};

TEST(WillReadTest, WhatIsNamedIsFetchedAndWhatFollowsIsNot) {
  const TempDir temp;
  const auto directory = PosixStorage()->OpenDirectory(temp.path()).value();
  WriteFile(*directory, "a", std::string(32 * kMiB, 'x'));
  const auto file = std::move(directory->OpenForRead("a", IoMode::kBuffered)).value();
  ASSERT_EQ(::fsync(*file->descriptor()), 0);
  ASSERT_EQ(::posix_fadvise(*file->descriptor(), 0, 0, POSIX_FADV_DONTNEED), 0);
  const Residency resident(*file);
  if (resident.CountIn(0, file->size_bytes()) > 0) GTEST_SKIP() << "files stay in memory here";
  constexpr std::uint64_t kOffset = 4 * kMiB;
  constexpr std::uint64_t kSize = 3 * kMiB;
  file->WillRead(kOffset, kSize);
  for (int i = 0; i < 5000 && resident.CountIn(kOffset, kSize) < kSize / kBlock; ++i) {
    ::usleep(1000);
  }
  EXPECT_EQ(resident.CountIn(kOffset, kSize), kSize / kBlock);
  Bytes bytes(kSize);
  ASSERT_TRUE(file->ReadAt(kOffset, bytes).ok());
  ::usleep(100'000);  // for what the kernel might read ahead on its own
  EXPECT_EQ(resident.CountIn(0, kOffset), 0u);
  EXPECT_EQ(resident.CountIn(kOffset + kSize, 16 * kMiB), 0u);
}

TEST(WillReadTest, WhatIsNotInTheFileIsIgnored) {
  const TempDir temp;
  const auto directory = PosixStorage()->OpenDirectory(temp.path()).value();
  WriteFile(*directory, "a", "abc");
  const auto file = std::move(directory->OpenForRead("a", IoMode::kBuffered)).value();
  file->WillRead(0, 0);
  file->WillRead(2, 2);
  file->WillRead(~std::uint64_t{0}, 1);
  Bytes bytes(3);
  EXPECT_TRUE(file->ReadAt(0, bytes).ok());
}

TEST(IsCachedTest, SaysWhetherMostOfARangeIsInThePageCache) {
  const TempDir temp;
  const auto directory = PosixStorage()->OpenDirectory(temp.path()).value();
  constexpr std::uint64_t kSize = 16 * kMiB;
  WriteFile(*directory, "a", std::string(kSize, 'x'));
  const auto file = std::move(directory->OpenForRead("a", IoMode::kBuffered)).value();
  EXPECT_TRUE(file->IsCached(0, kSize));
  ASSERT_EQ(::fsync(*file->descriptor()), 0);
  ASSERT_EQ(::posix_fadvise(*file->descriptor(), 0, 0, POSIX_FADV_DONTNEED), 0);
  const Residency resident(*file);
  if (resident.CountIn(0, kSize) > 0) GTEST_SKIP() << "files stay in memory here";
  EXPECT_FALSE(file->IsCached(0, kSize));
  EXPECT_FALSE(file->IsCached(kSize / 2 + 1, 1));
  EXPECT_EQ(resident.CountIn(0, kSize), 0u);  // nothing was fetched
  ASSERT_EQ(::posix_fadvise(*file->descriptor(), 0, 0, POSIX_FADV_RANDOM), 0);
  Bytes bytes(kSize / 2);
  ASSERT_TRUE(file->ReadAt(kSize / 2, bytes).ok());
  EXPECT_TRUE(file->IsCached(kSize / 2 + 1, kSize / 2 - 1));
  EXPECT_TRUE(file->IsCached(0, kSize));
  EXPECT_FALSE(file->IsCached(0, kSize - kSize / 4));
  for (const std::uint64_t offset : {kSize, ~std::uint64_t{0}}) {
    EXPECT_TRUE(file->IsCached(offset, 1));  // not in the file
  }
}

TEST(DescriptorTest, ReadsTheFileAndIsThatOfAFileOfTheSystemOnly) {
  const TempDir temp;
  const auto directory = PosixStorage()->OpenDirectory(temp.path()).value();
  WriteFile(*directory, "a", "abc");
  const auto file = std::move(directory->OpenForRead("a", IoMode::kBuffered)).value();
  std::array<char, 4> read{};
  ASSERT_TRUE(file->descriptor().has_value());
  EXPECT_EQ(::pread(*file->descriptor(), read.data(), read.size(), 0), 3);
  EXPECT_EQ(std::string(read.data()), "abc");
  const auto memory = MemoryStorage();
  ASSERT_TRUE(memory->CreateDirectories("d").ok());
  const auto in_memory = memory->OpenDirectory("d").value();
  WriteFile(*in_memory, "a", "abc");
  EXPECT_FALSE((*in_memory->OpenForRead("a", IoMode::kDirect))->descriptor().has_value());
}

TEST_F(DirectFileTest, WritesAndReads) {
  const auto file = std::move(directory_->CreateExclusive("a", {.mode = IoMode::kDirect})).value();
  ASSERT_TRUE(file->WriteAt(kBlock, bytes_.first(2 * kBlock)).ok());
  EXPECT_TRUE(file->is_direct());
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(file->Close().ok());
  auto reader = directory_->OpenForRead("a", IoMode::kDirect);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->size_bytes(), 3 * kBlock);
  ASSERT_TRUE((*reader)->ReadAt(0, bytes_.first(2 * kBlock)).ok());
  EXPECT_TRUE((*reader)->is_direct());
  EXPECT_EQ(bytes_[kBlock - 1], std::byte{0});
  EXPECT_EQ(bytes_[kBlock], std::byte{'x'});
}

// Linux takes the flag there since 6.6, and copies as before.
TEST(FileInMemoryTest, IsNotDirect) {
  std::string folder = "/dev/shm/sealpoint-test-XXXXXX";
  struct statfs system = {};
  if (::statfs("/dev/shm", &system) != 0 || system.f_type != TMPFS_MAGIC ||
      ::mkdtemp(folder.data()) == nullptr) {
    GTEST_SKIP() << "no RAM disk at /dev/shm";
  }
  auto directory = PosixStorage()->OpenDirectory(folder).value();
  auto file = directory->CreateExclusive("a", {.mode = IoMode::kDirect}).value();
  EXPECT_FALSE(file->is_direct());
  EXPECT_TRUE(file->WriteAt(1, Bytes(100)).ok());
  EXPECT_FALSE(directory->OpenForRead("a", IoMode::kDirect).value()->is_direct());
  EXPECT_TRUE(directory->Remove("a").ok());
  EXPECT_EQ(::rmdir(folder.c_str()), 0);
}

TEST_F(DirectFileTest, MisalignedWriteIsRefused) {
  const std::array<std::pair<std::uint64_t, ByteSpan>, 3> wrong = {{
      {512, bytes_.first(kBlock)},       // offset
      {0, bytes_.first(kBlock + 512)},   // size
      {0, bytes_.subspan(512, kBlock)},  // address
  }};
  int count = 0;
  for (const auto& [offset, data] : wrong) {
    auto file = directory_->CreateExclusive(std::to_string(count++), {.mode = IoMode::kDirect});
    ASSERT_TRUE(file.ok());
    const Status status = (*file)->WriteAt(offset, data);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << count;
    EXPECT_EQ((*file)->Sync(), status);
  }
}

TEST_F(DirectFileTest, MisalignedReadIsRefused) {
  WriteFile(*directory_, "a", std::string(4 * kBlock, 'y'));
  auto file = directory_->OpenForRead("a", IoMode::kDirect);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->ReadAt(512, bytes_.first(kBlock)).code(), Code::kInvalidArgument);
  EXPECT_EQ((*file)->ReadAt(0, bytes_.first(512)).code(), Code::kInvalidArgument);
  EXPECT_EQ((*file)->ReadAt(0, bytes_.subspan(512, kBlock)).code(), Code::kInvalidArgument);
  EXPECT_TRUE((*file)->ReadAt(0, bytes_.first(kBlock)).ok());
}

TEST_F(DirectFileTest, LastBlockOfAnOddLengthStaysDirect) {
  WriteFile(*directory_, "a", std::string(kBlock + 5, 'y'));
  auto file = directory_->OpenForRead("a", IoMode::kDirect);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->ReadAt(kBlock, bytes_.first(kBlock)).ok());
  EXPECT_TRUE((*file)->is_direct());
  EXPECT_EQ(bytes_[4], std::byte{'y'});
  EXPECT_EQ(bytes_[5], std::byte{0});
  EXPECT_EQ(bytes_[kBlock - 1], std::byte{0});
}

TEST_F(DirectFileTest, FileThatWasCutSinceIsIncomplete) {
  WriteFile(*directory_, "a", std::string(4 * kBlock, 'y'));
  for (const IoMode mode : {IoMode::kDirect, IoMode::kBuffered}) {
    auto file = directory_->OpenForRead("a", mode);
    ASSERT_TRUE(file.ok());
    ASSERT_EQ(::truncate((temp_ / "a").c_str(), kBlock + 5), 0);
    const Status status = (*file)->ReadAt(0, bytes_.first(3 * kBlock));
    // With direct I/O the odd rest is asked for again, buffered.
    EXPECT_EQ(status.code(), Code::kIncomplete) << status.ToString();
    EXPECT_EQ(status.place().offset, kBlock + 5);
    ASSERT_EQ(::truncate((temp_ / "a").c_str(), 4 * kBlock), 0);
  }
}

// Poisoning. A pipe has no fsync; a closed descriptor has no close; /dev/full is always full.

TEST(PoisonedFile, FullDeviceIsNoSpaceAndIsNotTriedAgain) {
  PosixWritableFile file(UniqueFd(::open("/dev/full", O_WRONLY | O_CLOEXEC)), "d/full",
                         IoMode::kBuffered);
  const Status first = file.WriteAt(8, AsBytes("abc"));
  EXPECT_EQ(first.code(), Code::kNoSpace) << first.ToString();
  EXPECT_EQ(first.message(), "pwrite: No space left on device (errno 28)");
  EXPECT_EQ(first.place().path, "d/full");
  EXPECT_EQ(first.place().offset, 8u);
  EXPECT_EQ(file.WriteAt(16, AsBytes("abc")), first);
  EXPECT_EQ(file.Sync(), first);
  EXPECT_EQ(file.Close(), first);
}

TEST(PoisonedFile, FailedSyncIsTheAnswerToAllThatFollows) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  PosixWritableFile file(UniqueFd(ends[1]), "p", IoMode::kBuffered);
  const Status first = file.Sync();
  EXPECT_EQ(first.code(), Code::kIo);
  EXPECT_EQ(file.WriteAt(0, AsBytes("abc")), first);
  EXPECT_EQ(file.Sync(), first);
  EXPECT_EQ(file.Close(), first);
}

TEST(PoisonedFile, FailedCloseIsReported) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  PosixWritableFile file(UniqueFd(ends[1]), "p", IoMode::kBuffered);
  ::close(ends[1]);
  const Status first = file.Close();
  EXPECT_EQ(first.code(), Code::kIo) << first.ToString();
  EXPECT_EQ(first.message(), "close: Bad file descriptor (errno 9)");
  EXPECT_EQ(file.Sync(), first);
}

TEST(PoisonedFile, PreallocationThatFailsIsAnErrorButDoesNotPoison) {
  const TempDir temp;
  const std::string path = temp / "a";
  PosixWritableFile file(UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), path,
                         IoMode::kBuffered);
  // Greater than any file system's longest file, or than its free space.
  EXPECT_FALSE(file.Preallocate(std::uint64_t{1} << 62).ok());
  EXPECT_TRUE(file.WriteAt(0, AsBytes("abc")).ok());
  EXPECT_TRUE(file.Close().ok());
}

}  // namespace
}  // namespace sealpoint::internal::storage
