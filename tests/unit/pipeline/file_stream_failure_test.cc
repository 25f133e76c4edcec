// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "lib/pipeline/file_stream.h"
#include "tests/unit/pipeline/fake_files.h"

namespace sealpoint::internal::pipeline {
namespace {

constexpr std::uint64_t kBufferBytes = 8 * kKiB;

// One writing thread, so that writes fail in a known order.
class FileStreamFailure : public testing::Test {
 protected:
  // Fails the second write, and appends until the stream knows.
  void FailSecondWrite() {
    file_.FailWrite(2, failure_);
    const Bytes bytes(kBufferBytes);
    while (stream_.Append(bytes).ok()) {
    }
  }

  std::unique_ptr<device::StagingPool> pool_ =
      device::StagingPool::Create(2 * kBufferBytes, kBufferBytes).value();
  FakeWritableFile file_;
  ThreadPool io_{1};
  FileStream stream_{file_, *pool_, io_};
  const Status failure_{Code::kNoSpace, "write: no space left on device"};
};

TEST_F(FileStreamFailure, OfAWriteIsReportedByFlush) {
  file_.FailWrite(1, failure_);
  static_cast<void>(stream_.Append(NumberedBytes(kBufferBytes)));
  EXPECT_EQ(stream_.Flush(), failure_);
}

TEST_F(FileStreamFailure, OfAWriteIsReportedByEveryLaterCall) {
  FailSecondWrite();
  digest::Hasher hasher;
  EXPECT_EQ(stream_.Append(NumberedBytes(1)), failure_);
  EXPECT_EQ(stream_.Append(NumberedBytes(1), hasher), failure_);
  EXPECT_EQ(stream_.AppendZeros(1), failure_);
  EXPECT_EQ(stream_.AlignTo(64), failure_);
  EXPECT_EQ(stream_.Window().status(), failure_);
  EXPECT_EQ(stream_.Flush(), failure_);
  EXPECT_EQ(stream_.Flush(), failure_);
}

// A device may still write into the held buffers: they must not be lent again.
TEST_F(FileStreamFailure, OfAWriteLeavesWhatIsHeldWhereItIs) {
  file_.CloseGate();
  file_.FailWrite(1, failure_);
  ASSERT_TRUE(stream_.Append(Bytes(kBufferBytes)).ok());
  stream_.HoldFrom(stream_.offset());
  ASSERT_TRUE(stream_.Append(Bytes(1)).ok());
  file_.OpenGate();
  // Less than a buffer is appended, whenever the write fails.
  for (int i = 0; i < 5000 && stream_.Append(Bytes(1)).ok(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const device::StagingBuffer other = pool_->Acquire().value();
  EXPECT_TRUE(pool_->TryAcquire()->empty()) << "of two buffers one is held";
  stream_.HoldFrom(std::nullopt);
  EXPECT_EQ(stream_.Append(Bytes(1)), failure_);
  EXPECT_FALSE(pool_->TryAcquire()->empty());
}

TEST_F(FileStreamFailure, OfAWriteStopsTheWritesBehindIt) {
  file_.CloseGate();
  file_.FailWrite(1, failure_);
  ASSERT_TRUE(stream_.Append(NumberedBytes(2 * kBufferBytes)).ok());
  file_.WaitUntilBegun(1);
  file_.OpenGate();
  EXPECT_EQ(stream_.Flush(), failure_);
  EXPECT_EQ(file_.writes().size(), 1U);
}

TEST_F(FileStreamFailure, OfAWriteGivesThePartlyFilledBufferBackToo) {
  file_.FailWrite(1, failure_);
  file_.CloseGate();
  ASSERT_TRUE(stream_.Append(NumberedBytes(kBufferBytes + 4096)).ok());
  file_.OpenGate();
  const auto first = pool_->Acquire();  // waits for the write
  EXPECT_EQ(stream_.Flush(), failure_);
  EXPECT_TRUE(pool_->Acquire().ok());  // would wait for ever
}

TEST(FileStreamFailures, OfTwoWritesTheFirstIsKept) {
  const Status earlier(Code::kNoSpace, "earlier");
  const auto pool = device::StagingPool::Create(3 * kBufferBytes, kBufferBytes).value();
  FakeWritableFile file;
  ThreadPool io(2);
  FileStream stream(file, *pool, io);
  file.FailWrite(1, Status(Code::kIo, "later"));
  file.FailWrite(2, earlier);
  file.CloseGate();
  ASSERT_TRUE(stream.Append(NumberedBytes(2 * kBufferBytes)).ok());
  file.WaitUntilBegun(2);
  file.Admit(2);
  while (stream.Window().ok()) {
  }
  file.OpenGate();
  const auto first = pool->Acquire();
  const auto second = pool->Acquire();
  const auto third = pool->Acquire();  // all are back: both failures are known
  EXPECT_EQ(stream.Flush(), earlier);
}

TEST_F(FileStreamFailure, OfAFlushAtAnUnalignedOffsetWritesNothing) {
  ASSERT_TRUE(stream_.Append(NumberedBytes(4097)).ok());
  EXPECT_EQ(stream_.Flush().code(), Code::kInvalidArgument);
  EXPECT_EQ(stream_.Append(NumberedBytes(1)).code(), Code::kInvalidArgument);
  EXPECT_TRUE(file_.writes().empty());
}

TEST_F(FileStreamFailure, ForWantOfMemoryIsKept) {
  const auto pool = device::StagingPool::Create(0, std::uint64_t{1} << 50).value();
  FileStream stream(file_, *pool, io_);
  EXPECT_EQ(stream.Append(NumberedBytes(1)).code(), Code::kIo);
  EXPECT_EQ(stream.Flush().code(), Code::kIo);
}

TEST(FileStreamDeathTest, RefusesToAdvanceBeyondTheWindow) {
  const auto pool = device::StagingPool::Create(2 * kBufferBytes, kBufferBytes).value();
  FakeWritableFile file;
  ThreadPool io(1);
  FileStream stream(file, *pool, io);
  static_cast<void>(stream.Window().value());
  EXPECT_DEATH(stream.Advance(kBufferBytes + 1), "count <=");
}

}  // namespace
}  // namespace sealpoint::internal::pipeline
