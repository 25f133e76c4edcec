// SPDX-License-Identifier: Apache-2.0
//
// Large host memory goes into files that are not direct from where it lies, without staging memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "sealpoint/blob_writer.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/unit/writer/checkpoint_dir.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kBorrowedSize = 5 * kMiB + 777;
constexpr std::chrono::milliseconds kWriteTime(30);

class BorrowedMemoryTest : public ::testing::Test {
 protected:
  BorrowedMemoryTest() {
    EXPECT_TRUE(storage_->CreateDirectories(kDir).ok());
    storage_->SetHook([this, own = std::this_thread::get_id()](StorageOp op, std::string_view) {
      // The writing threads are late, so that a caller who does not wait for them is seen.
      if (op != StorageOp::kWrite) return;
      std::this_thread::sleep_for(std::this_thread::get_id() == own ? own_time_ : kWriteTime);
      if (!is_lent_) ++late_writes_;
    });
  }

  std::unique_ptr<BlobWriter> Writer() { return BlobWriter::Create(*engine_, kDir).value(); }
  Bytes Commit(BlobWriter& writer, std::string_view tensor) {
    sealpoint::Commit(*storage_, kDir, {}, writer.Finish().value()).value();
    EXPECT_EQ(FindDamage(storage_, kDir), "");
    return LoadWhole(*OpenFrom(storage_, kDir), tensor);
  }

  const std::shared_ptr<FailingStorage> storage_ =
      std::make_shared<FailingStorage>(MemoryStorage());
  std::unique_ptr<Engine> engine_ = SmallEngine(storage_, 8, 256 * kKiB);
  std::chrono::milliseconds own_time_{0};
  std::atomic<bool> is_lent_{true};
  std::atomic<int> late_writes_{0};
};

TEST_F(BorrowedMemoryTest, MayChangeAfterAdd) {
  Bytes bytes = NoiseBytes(4, kBorrowedSize);
  const Bytes before = bytes;
  const auto writer = Writer();
  ASSERT_TRUE(
      writer->Add(ByteTensor("w", kBorrowedSize), Slice(0, kBorrowedSize), MemoryView::Host(bytes))
          .ok());
  std::ranges::fill(bytes, std::byte{0});
  EXPECT_EQ(Commit(*writer, "w"), before);
}

TEST_F(BorrowedMemoryTest, OfAnObjectMayChangeAfterAddObject) {
  Bytes bytes = NoiseBytes(5, kBorrowedSize);
  const Bytes before = bytes;
  const auto writer = Writer();
  ASSERT_TRUE(writer->AddObject({.name = "o", .media_type = "text/plain"}, bytes).ok());
  std::ranges::fill(bytes, std::byte{0});
  sealpoint::Commit(*storage_, kDir, {}, writer->Finish().value()).value();
  EXPECT_EQ(OpenFrom(storage_, kDir)->ReadObject("o").value(), before);
}

// The caller may free it then.
TEST_F(BorrowedMemoryTest, IsReadByNobodyAfterAnError) {
  own_time_ = kWriteTime / 5;  // both threads are writing when it happens
  storage_->Fail({.op = StorageOp::kWrite, .name = ".blob", .nth = 12});
  auto bytes = std::make_unique<Bytes>(NoiseBytes(6, kBorrowedSize));
  const auto writer = Writer();
  const Status status = writer->Add(ByteTensor("w", kBorrowedSize), Slice(0, kBorrowedSize),
                                    MemoryView::Host(*bytes));
  is_lent_ = false;
  bytes.reset();
  EXPECT_THAT(status, HasCode(Code::kIo));
  EXPECT_THAT(status.message(), HasSubstr("injected"));
  EXPECT_TRUE(writer->Abandon().ok());
  EXPECT_EQ(late_writes_.load(), 0);
}

}  // namespace
}  // namespace sealpoint::testing
