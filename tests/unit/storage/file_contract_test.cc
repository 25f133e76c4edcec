// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/storage/storage_fixture.h"

// The contract of files, checked on every storage.

namespace sealpoint {
namespace {

using testing::ReadFile;
using testing::WriteFile;

class FileContract : public testing::StorageTest {
 protected:
  std::unique_ptr<WritableFile> Create(std::string_view name) {
    return std::move(directory_->CreateExclusive(name, {})).value();
  }
  std::unique_ptr<ReadableFile> Open(std::string_view name, IoMode mode = IoMode::kBuffered) {
    return std::move(directory_->OpenForRead(name, mode)).value();
  }
};

TEST_P(FileContract, ReadsBackWhatWasWritten) {
  WriteFile(*directory_, "a", "0123456789");
  const auto file = Open("a");
  EXPECT_EQ(file->size_bytes(), 10u);
  Bytes middle(4);
  ASSERT_TRUE(file->ReadAt(3, middle).ok());
  EXPECT_EQ(AsText(middle), "3456");
}

TEST_P(FileContract, WritesInAnyOrderAndZeroesTheGap) {
  const auto file = Create("a");
  ASSERT_TRUE(file->WriteAt(5, AsBytes("xy")).ok());
  ASSERT_TRUE(file->WriteAt(0, AsBytes("ab")).ok());
  ASSERT_TRUE(file->WriteAt(6, AsBytes("z")).ok());
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(ReadFile(*directory_, "a"), std::string("ab\0\0\0xz", 7));
}

TEST_P(FileContract, ThreadsWriteDisjointRanges) {
  constexpr std::size_t kPart = 10'000;
  const auto file = Create("a");
  std::vector<std::thread> threads;
  for (std::size_t part = 0; part < 8; ++part) {
    threads.emplace_back([&file, part] {
      const std::string text(kPart, static_cast<char>('a' + part));
      EXPECT_TRUE(file->WriteAt(part * kPart, AsBytes(text)).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(file->Close().ok());
  const std::string content = ReadFile(*directory_, "a");
  ASSERT_EQ(content.size(), 8 * kPart);
  for (std::size_t part = 0; part < 8; ++part) {
    EXPECT_EQ(content.substr(part * kPart, kPart),
              std::string(kPart, static_cast<char>('a' + part)));
  }
}

TEST_P(FileContract, EmptyWriteDoesNotMakeTheFileLonger) {
  const auto file = Create("a");
  ASSERT_TRUE(file->WriteAt(100, {}).ok());
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(ReadFile(*directory_, "a"), "");
}

TEST_P(FileContract, PreallocationChangesNeitherLengthNorContent) {
  const auto file = Create("a");
  ASSERT_TRUE(file->WriteAt(0, AsBytes("abc")).ok());
  ASSERT_TRUE(file->Preallocate(1 << 20).ok());
  ASSERT_TRUE(file->Preallocate(0).ok());
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(ReadFile(*directory_, "a"), "abc");
}

TEST_P(FileContract, OffsetThatIsNoOffsetIsRefusedAndPoisons) {
  const auto file = Create("a");
  const Status first = file->WriteAt(std::numeric_limits<std::uint64_t>::max(), AsBytes("x"));
  EXPECT_EQ(first.code(), Code::kInvalidArgument);
  EXPECT_EQ(first.place().path, directory_->path() + "/a");
  EXPECT_EQ(file->WriteAt(0, AsBytes("x")), first);
  EXPECT_EQ(file->Sync(), first);
  EXPECT_EQ(file->Preallocate(1), first);
  EXPECT_EQ(file->Close(), first);
}

TEST_P(FileContract, PreallocationOfMoreThanAnOffsetIsRefused) {
  EXPECT_EQ(Create("a")->Preallocate(~std::uint64_t{0}).code(), Code::kInvalidArgument);
}

TEST_P(FileContract, NothingIsDoneAfterClose) {
  const auto file = Create("a");
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(file->WriteAt(0, AsBytes("x")).code(), Code::kInvalidArgument);
  EXPECT_EQ(file->Sync().code(), Code::kInvalidArgument);
  EXPECT_EQ(file->Preallocate(1).code(), Code::kInvalidArgument);
  EXPECT_EQ(file->Close().code(), Code::kInvalidArgument);
}

TEST_P(FileContract, RangeBehindTheEndIsIncomplete) {
  WriteFile(*directory_, "a", "0123456789");
  const auto file = Open("a");
  Bytes out(4);
  const Status status = file->ReadAt(7, out);
  EXPECT_EQ(status.code(), Code::kIncomplete) << status.ToString();
  EXPECT_EQ(status.place().path, directory_->path() + "/a");
  EXPECT_EQ(status.place().offset, 10u);
  EXPECT_EQ(file->ReadAt(11, MutableByteSpan(out).first(0)).code(), Code::kIncomplete);
  EXPECT_TRUE(file->ReadAt(10, MutableByteSpan(out).first(0)).ok());
}

TEST_P(FileContract, ReadAtAnOffsetThatIsNoOffsetIsRefused) {
  WriteFile(*directory_, "a", "0123456789");
  Bytes out(4);
  EXPECT_EQ(Open("a")->ReadAt(~std::uint64_t{0} - 1, out).code(), Code::kInvalidArgument);
}

TEST_P(FileContract, SizeIsThatOfTheOpening) {
  const auto writer = Create("a");
  ASSERT_TRUE(writer->WriteAt(0, AsBytes("abc")).ok());
  const auto reader = Open("a");
  ASSERT_TRUE(writer->WriteAt(3, AsBytes("def")).ok());
  EXPECT_EQ(reader->size_bytes(), 3u);
}

TEST_P(FileContract, DirectReadMayPassTheEndUpToTheAlignment) {
  WriteFile(*directory_, "a", std::string(kDirectIoAlignmentBytes + 5, 'x'));
  const auto file = Open("a", IoMode::kDirect);
  struct alignas(kDirectIoAlignmentBytes) Block {
    std::array<std::byte, 3 * kDirectIoAlignmentBytes> bytes;
  };
  const auto block = std::make_unique<Block>();
  block->bytes.fill(std::byte{0xee});
  const MutableByteSpan two = MutableByteSpan(block->bytes).first(2 * kDirectIoAlignmentBytes);
  const Status status = file->ReadAt(0, two);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(two[kDirectIoAlignmentBytes + 4], std::byte{'x'});
  EXPECT_EQ(two[kDirectIoAlignmentBytes + 5], std::byte{0});
  EXPECT_EQ(two.back(), std::byte{0});
  EXPECT_EQ(block->bytes[2 * kDirectIoAlignmentBytes], std::byte{0xee});
  EXPECT_EQ(file->ReadAt(0, block->bytes).code(), Code::kIncomplete);
}

TEST_P(FileContract, BufferedReadMayNotPassTheEnd) {
  WriteFile(*directory_, "a", "x");
  Bytes out(kDirectIoAlignmentBytes);
  EXPECT_EQ(Open("a")->ReadAt(0, out).code(), Code::kIncomplete);
}

TEST_P(FileContract, ContentStaysWhileTheFileIsOpen) {
  WriteFile(*directory_, "a", "still here");
  const auto file = Open("a");
  ASSERT_TRUE(directory_->Remove("a").ok());
  Bytes out(10);
  ASSERT_TRUE(file->ReadAt(0, out).ok());
  EXPECT_EQ(AsText(out), "still here");
}

TEST_P(FileContract, FileLivesLongerThanItsDirectoryObject) {
  auto file = Create("a");
  directory_.reset();
  ASSERT_TRUE(file->WriteAt(0, AsBytes("x")).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_TRUE(file->Close().ok());
}

SEALPOINT_FOR_ALL_STORAGES(FileContract);

}  // namespace
}  // namespace sealpoint
