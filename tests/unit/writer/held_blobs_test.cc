// SPDX-License-Identifier: Apache-2.0
// Blobs that begin before their directory is known.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "lib/base/internal_access.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/writer/blob_writer_impl.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/unit/writer/checkpoint_dir.h"

namespace sealpoint::testing {
namespace {

using internal::BlobWriterImpl;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class HeldBlobsTest : public ::testing::Test {
 protected:
  HeldBlobsTest() {
    EXPECT_TRUE(storage_->CreateDirectories(kDir).ok());
    MakeWriter();
  }

  void MakeWriter() {
    constexpr std::uint64_t kHeld = 200;
    EXPECT_TRUE(InternalAccess::PartsOf(*engine_).TryReserve(kHeld));
    writer_ = std::make_unique<BlobWriterImpl>(InternalAccess::PartsOf(*engine_), kHeld,
                                               BlobWriterOptions{.size_max_bytes = kMiB});
  }

  // Each needs a blob of its own.
  void AddTensors() {
    for (int i = 0; i < 5; ++i) {
      const TensorSpec tensor = ByteTensor(std::to_string(i), bytes_.size());
      ASSERT_TRUE(writer_->Add(tensor, Slice(0, bytes_.size()), MemoryView::Host(bytes_)).ok());
    }
  }
  Status Bind() { return writer_->Bind(storage_->OpenDirectory(kDir).value(), AttemptId{}); }

  const Bytes bytes_ = NoiseBytes(1, 500000);
  const std::shared_ptr<FailingStorage> storage_ =
      std::make_shared<FailingStorage>(MemoryStorage());
  const std::unique_ptr<Engine> engine_ = SmallEngine(storage_, 300);
  std::unique_ptr<BlobWriterImpl> writer_;
};

TEST_F(HeldBlobsTest, TouchNothingBeforeTheyAreBound) {
  AddTensors();
  EXPECT_THAT(storage_->changes(), SizeIs(1)) << "of the test itself";
  ASSERT_TRUE(Bind().ok());
  EXPECT_THAT(writer_->Finish().value(), SizeIs(5));
}

TEST_F(HeldBlobsTest, AreNotFinishedBeforeTheyAreBound) {
  AddTensors();
  EXPECT_THAT(writer_->Finish().status(), HasCode(Code::kInvalidArgument));
}

TEST_F(HeldBlobsTest, GiveTheirMemoryBackWhenTheyAreAbandoned) {
  AddTensors();
  EXPECT_FALSE(InternalAccess::PartsOf(*engine_).TryReserve(200)) << "of 300 buffers";
  ASSERT_TRUE(writer_->Abandon().ok());
  EXPECT_TRUE(InternalAccess::PartsOf(*engine_).TryReserve(200));
}

TEST_F(HeldBlobsTest, EachThatCannotBeSyncedIsAnError) {
  for (int nth = 1; nth <= 5; ++nth) {
    AddTensors();
    ASSERT_TRUE(Bind().ok());
    storage_->Fail({.op = StorageOp::kSyncFile, .nth = nth, .error = Status(Code::kIo, "lost")});
    EXPECT_THAT(writer_->Finish().status().message(), HasSubstr("lost")) << nth;
    EXPECT_TRUE(writer_->Abandon().ok());
    EXPECT_THAT(FileNames(*storage_, kDir), IsEmpty());
    storage_->Heal();
    MakeWriter();
  }
}

// Mapping it before the first byte is written would delay them all.
TEST(WriterMemoryTest, IsMappedAsItIsUsedAndTheRestBehindTheLastByte) {
  constexpr std::uint64_t kBuffer = 16 * kKiB;
  const auto storage = MemoryStorage();
  ASSERT_TRUE(storage->CreateDirectories(kDir).ok());
  const auto engine = SmallEngine(storage, 64, kBuffer);
  const auto writer =
      BlobWriterImpl::Create(InternalAccess::PartsOf(*engine), kDir, BlobWriterOptions{}).value();
  writer->DeferCopies();
  writer->Expect({.bytes = 10 * kBuffer});
  const Bytes bytes(100);
  ASSERT_TRUE(writer->Add(ByteTensor("t", 100), Slice(0, 100), MemoryView::Host(bytes)).ok());
  EXPECT_EQ(engine->stats().mapped_bytes, kBuffer);
  ASSERT_TRUE(writer->AwaitCopies().ok());
  EXPECT_EQ(engine->stats().mapped_bytes, 11 * kBuffer);
}

}  // namespace
}  // namespace sealpoint::testing
