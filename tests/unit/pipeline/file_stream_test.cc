// SPDX-License-Identifier: Apache-2.0
#include "lib/pipeline/file_stream.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/pipeline/range_reader.h"
#include "tests/unit/pipeline/fake_files.h"

namespace sealpoint::internal::pipeline {
namespace {

constexpr std::uint64_t kBuffer = 8 * kKiB;

class FileStreamTest : public testing::Test {
 protected:
  std::unique_ptr<device::StagingPool> pool_ =
      device::StagingPool::Create(2 * kBuffer, kBuffer).value();
  FakeWritableFile file_;
  ThreadPool io_{2};
};

TEST_F(FileStreamTest, WritesWhatWasAppendedWhateverThePieces) {
  const Bytes bytes = NumberedBytes(5 * kBuffer + 4096);
  for (const std::size_t piece : {std::size_t{97}, std::size_t{4096}, std::size_t{kBuffer},
                                  std::size_t{kBuffer + 1}, bytes.size()}) {
    FakeWritableFile file;
    FileStream stream(file, *pool_, io_);
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      const auto part = ByteSpan(bytes).subspan(at, std::min(piece, bytes.size() - at));
      ASSERT_TRUE(stream.Append(part).ok());
      EXPECT_EQ(stream.offset(), at + part.size());
    }
    ASSERT_TRUE(stream.Flush().ok());
    EXPECT_EQ(file.content(), bytes) << "pieces of " << piece;
  }
}

TEST_F(FileStreamTest, WritesWholeAlignedBuffersAndOneRest) {
  FileStream stream(file_, *pool_, io_);
  ASSERT_TRUE(stream.Append(NumberedBytes(2 * kBuffer + 4096)).ok());
  ASSERT_TRUE(stream.Flush().ok());
  const auto writes = file_.writes();
  ASSERT_EQ(writes.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(writes[i].offset, i * kBuffer);
    EXPECT_EQ(writes[i].size, i < 2 ? kBuffer : 4096);
    EXPECT_TRUE(writes[i].aligned);
  }
}

TEST_F(FileStreamTest, TellsWhatIsWritten) {
  constexpr std::chrono::milliseconds kMoment(1);
  file_.CloseGate();
  FileStream stream(file_, *pool_, io_);
  EXPECT_TRUE(stream.WaitForWrites(kMoment)) << "there are none";
  ASSERT_TRUE(stream.Append(NumberedBytes(kBuffer)).ok());
  file_.WaitUntilBegun(1);
  EXPECT_FALSE(stream.WaitForWrites(kMoment));
  EXPECT_EQ(stream.bytes_written(), 0U);
  file_.OpenGate();
  EXPECT_TRUE(stream.WaitForWrites(std::chrono::minutes(1)));
  EXPECT_EQ(stream.bytes_written(), kBuffer);
}

TEST_F(FileStreamTest, WritesBorrowedMemoryBehindWhatWasAppended) {
  constexpr std::uint64_t kUnit = 4096;
  const Bytes front = NumberedBytes(100);
  const Bytes borrowed = NumberedBytes(5 * kBuffer + 10);
  std::vector<Digest> digests(11);
  FileStream stream(file_, *pool_, io_);
  ASSERT_TRUE(stream.Append(front).ok());
  ASSERT_TRUE(stream.AppendBorrowed(borrowed, kUnit, digests).ok());
  EXPECT_EQ(stream.offset(), front.size() + borrowed.size());
  ASSERT_TRUE(stream.WaitForBorrowed().ok());
  ASSERT_TRUE(stream.AlignTo(4096).ok());
  ASSERT_TRUE(stream.Flush().ok());
  Bytes expected = front;
  expected.insert(expected.end(), borrowed.begin(), borrowed.end());
  expected.resize(expected.size() + (4096 - expected.size() % 4096) % 4096);
  EXPECT_EQ(file_.content(), expected);
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const ByteSpan unit = ByteSpan(borrowed).subspan(i * kUnit);
    EXPECT_EQ(digests[i], ComputeDigest(unit.first(std::min<std::size_t>(unit.size(), kUnit))))
        << i;
  }
}

TEST_F(FileStreamTest, LeavesBorrowedMemoryOnceItIsWritten) {
  const Bytes borrowed = NumberedBytes(kBuffer);
  std::vector<Digest> digests(2);
  file_.CloseGate();
  FileStream stream(file_, *pool_, io_);
  ASSERT_TRUE(stream.AppendBorrowed(borrowed, 4096, digests).ok());
  auto waited = std::async(std::launch::async, [&] { return stream.WaitForBorrowed(); });
  EXPECT_EQ(waited.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  file_.OpenGate();
  EXPECT_TRUE(waited.get().ok());
  EXPECT_EQ(stream.bytes_written(), kBuffer);
}

TEST_F(FileStreamTest, ReportsThatBorrowedMemoryWasNotWritten) {
  const Status failure(Code::kIo, "disk");
  // So many that the thread whose write fails says so before another one has done the rest.
  constexpr std::uint64_t kWrites = 256;
  const Bytes borrowed = NumberedBytes(kWrites * kBuffer);
  std::vector<Digest> digests(kWrites * kBuffer / 4096);
  file_.FailWrite(2, failure);
  FileStream stream(file_, *pool_, io_);
  static_cast<void>(stream.AppendBorrowed(borrowed, 4096, digests));
  EXPECT_EQ(stream.WaitForBorrowed(), failure);
  EXPECT_EQ(stream.AppendBorrowed(borrowed, 4096, digests), failure);
  EXPECT_LT(file_.finished(), kWrites) << "writes went on after the failure";
}

TEST_F(FileStreamTest, CountsNothingThatWasNotWritten) {
  file_.FailWrite(1, Status(Code::kIo, "disk"));
  FileStream stream(file_, *pool_, io_);
  static_cast<void>(stream.Append(NumberedBytes(kBuffer)));
  EXPECT_TRUE(stream.WaitForWrites(std::chrono::minutes(1)));
  EXPECT_EQ(stream.bytes_written(), 0U);
}

TEST_F(FileStreamTest, HashesInTheSamePassWhatIsAppendedWithAHasher) {
  const Bytes bytes = NumberedBytes(3 * kBuffer + 1000);
  FileStream stream(file_, *pool_, io_);
  digest::Hasher hasher;
  ASSERT_TRUE(stream.Append(AsBytes("not hashed")).ok());
  ASSERT_TRUE(stream.Append(bytes, hasher).ok());
  ASSERT_TRUE(stream.AppendZeros(5).ok());
  EXPECT_EQ(hasher.Finish(), ComputeDigest(bytes));
}

TEST_F(FileStreamTest, AppendsZerosOverRecycledBuffers) {
  FileStream stream(file_, *pool_, io_);
  ASSERT_TRUE(stream.Append(Bytes(4 * kBuffer, std::byte{0xff})).ok());
  ASSERT_TRUE(stream.AppendZeros(2 * kBuffer + 4096).ok());
  ASSERT_TRUE(stream.Flush().ok());
  const Bytes content = file_.content();
  ASSERT_EQ(content.size(), 6 * kBuffer + 4096);
  EXPECT_EQ(std::count(content.begin() + 4 * kBuffer, content.end(), std::byte{0}),
            2 * kBuffer + 4096);
}

TEST_F(FileStreamTest, AlignsToTheNextMultipleAndNotBeyond) {
  FileStream stream(file_, *pool_, io_);
  ASSERT_TRUE(stream.AlignTo(64).ok());
  EXPECT_EQ(stream.offset(), 0U);
  ASSERT_TRUE(stream.Append(NumberedBytes(1)).ok());
  ASSERT_TRUE(stream.AlignTo(64).ok());
  EXPECT_EQ(stream.offset(), 64U);
  ASSERT_TRUE(stream.AlignTo(64).ok());
  EXPECT_EQ(stream.offset(), 64U);
  ASSERT_TRUE(stream.AlignTo(4096).ok());
  EXPECT_EQ(stream.offset(), 4096U);
}

TEST_F(FileStreamTest, TakesBytesThatTheProducerWritesInPlace) {
  const Bytes bytes = NumberedBytes(3 * kBuffer);
  FileStream stream(file_, *pool_, io_);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const MutableByteSpan window = stream.Window().value();
    ASSERT_FALSE(window.empty());
    const std::size_t piece = std::min({window.size(), bytes.size() - done, std::size_t{3000}});
    std::copy_n(bytes.data() + done, piece, window.data());
    stream.Advance(piece);
    done += piece;
  }
  ASSERT_TRUE(stream.Flush().ok());
  EXPECT_EQ(file_.content(), bytes);
}

TEST_F(FileStreamTest, GoesOnAfterAFlush) {
  const Bytes bytes = NumberedBytes(2 * kBuffer);
  FileStream stream(file_, *pool_, io_);
  ASSERT_TRUE(stream.Append(ByteSpan(bytes).first(4096)).ok());
  ASSERT_TRUE(stream.Flush().ok());
  EXPECT_EQ(file_.content().size(), 4096U);
  ASSERT_TRUE(stream.Append(ByteSpan(bytes).subspan(4096)).ok());
  ASSERT_TRUE(stream.Flush().ok());
  EXPECT_EQ(file_.content(), bytes);
}

TEST_F(FileStreamTest, HoldsNoBufferAfterAFlush) {
  FileStream stream(file_, *pool_, io_);
  ASSERT_TRUE(stream.Window().ok());
  ASSERT_TRUE(stream.Flush().ok());
  const auto first = pool_->Acquire();
  EXPECT_TRUE(pool_->Acquire().ok());  // would wait for ever
}

TEST_F(FileStreamTest, FillsTheNextBufferWhileTheLastIsWritten) {
  file_.CloseGate();
  FileStream stream(file_, *pool_, io_);
  ASSERT_TRUE(stream.Append(NumberedBytes(kBuffer + 100)).ok());  // would wait for ever
  EXPECT_EQ(file_.finished(), 0U);
  file_.OpenGate();
}

TEST_F(FileStreamTest, WaitsForABufferWhenThePoolIsUnderWay) {
  file_.CloseGate();
  FileStream stream(file_, *pool_, io_);
  ASSERT_TRUE(stream.Append(NumberedBytes(2 * kBuffer)).ok());
  auto third = std::async(std::launch::async, [&] { return stream.Append(AsBytes("more")); });
  EXPECT_EQ(third.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  file_.OpenGate();
  EXPECT_TRUE(third.get().ok());
}

TEST_F(FileStreamTest, FlushWaitsForEveryWrite) {
  file_.CloseGate();
  FileStream stream(file_, *pool_, io_);
  ASSERT_TRUE(stream.Append(NumberedBytes(2 * kBuffer)).ok());
  auto flush = std::async(std::launch::async, [&] { return stream.Flush(); });
  EXPECT_EQ(flush.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  file_.OpenGate();
  EXPECT_TRUE(flush.get().ok());
  EXPECT_EQ(file_.finished(), 2U);
}

// Every buffer is back before the last write counts as done; repeated, since it is a race.
TEST_F(FileStreamTest, ThePoolMayGoRightAfterAFlush) {
  const Bytes bytes(kBuffer);
  for (int i = 0; i < 500; ++i) {
    auto pool = device::StagingPool::Create(2 * kBuffer, kBuffer).value();
    FileStream stream(file_, *pool, io_);
    ASSERT_TRUE(stream.Append(bytes).ok());
    ASSERT_TRUE(stream.Flush().ok());
    pool.reset();  // aborts if a buffer is missing
  }
}

TEST_F(FileStreamTest, DestructorWaitsForWritesUnderWay) {
  file_.CloseGate();
  auto stream = std::make_unique<FileStream>(file_, *pool_, io_);
  ASSERT_TRUE(stream->Append(NumberedBytes(kBuffer)).ok());
  file_.WaitUntilBegun(1);
  auto destruction = std::async(std::launch::async, [&] { stream.reset(); });
  EXPECT_EQ(destruction.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  file_.OpenGate();
  destruction.get();
  EXPECT_EQ(file_.finished(), 1U);
}

TEST_F(FileStreamTest, DestructorDoesNotFlush) {
  {
    FileStream stream(file_, *pool_, io_);
    ASSERT_TRUE(stream.Append(NumberedBytes(kBuffer + 4096)).ok());
  }
  EXPECT_EQ(file_.content().size(), kBuffer);
}

TEST_F(FileStreamTest, StreamsOfSeveralThreadsShareAPoolOfTwoBuffers) {
  const Bytes bytes = NumberedBytes(20 * kBuffer + 4096);
  std::vector<FakeWritableFile> files(4);
  std::vector<Status> statuses(files.size());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < files.size(); ++t) {
    threads.emplace_back([&, t] {
      FileStream stream(files[t], *pool_, io_);
      statuses[t] = stream.Append(bytes);
      if (statuses[t].ok()) statuses[t] = stream.Flush();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < files.size(); ++t) {
    EXPECT_TRUE(statuses[t].ok()) << statuses[t].ToString();
    EXPECT_EQ(files[t].content(), bytes);
  }
}

// A temporary directory that goes away with its one file "blob".
class BlobFolder {
 public:
  BlobFolder() : path_(testing::TempDir() + "file_stream_XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
    directory_ = PosixStorage()->OpenDirectory(path_).value();
  }
  ~BlobFolder() {
    static_cast<void>(directory_->Remove("blob"));
    std::filesystem::remove(path_);
  }
  BlobFolder(const BlobFolder&) = delete;
  BlobFolder& operator=(const BlobFolder&) = delete;
  Directory& directory() { return *directory_; }

 private:
  std::string path_;
  std::unique_ptr<Directory> directory_;
};

TEST_F(FileStreamTest, WritesARealFileDirectlyAndReadsRangesOfItBack) {
  BlobFolder folder;
  const Bytes bytes = NumberedBytes(5 * kBuffer + 4096);
  {
    const auto file = folder.directory().CreateExclusive("blob", {.mode = IoMode::kDirect}).value();
    FileStream stream(*file, *pool_, io_);
    ASSERT_TRUE(stream.Append(bytes).ok());
    const Status flushed = stream.Flush();
    ASSERT_TRUE(flushed.ok()) << flushed.ToString();
    ASSERT_TRUE(file->Close().ok());
  }
  const auto file = folder.directory().OpenForRead("blob", IoMode::kDirect).value();
  const auto range = ReadRange(*file, *pool_, 5000, 30000);
  ASSERT_TRUE(range.ok()) << range.error().ToString();
  EXPECT_EQ(Bytes(range->bytes.begin(), range->bytes.end()),
            Bytes(bytes.begin() + 5000, bytes.begin() + 35000));
}

}  // namespace
}  // namespace sealpoint::internal::pipeline
