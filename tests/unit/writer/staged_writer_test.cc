// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/staged_writer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "lib/base/internal_access.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/writer/blob_writer_impl.h"
#include "sealpoint/commit.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/unit/writer/checkpoint_dir.h"

namespace sealpoint::testing {
namespace {

using internal::writer::BlobWriterImpl;
using internal::writer::StagedWriter;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class StagedWriterTest : public ::testing::Test {
 protected:
  StagedWriterTest() {
    EXPECT_TRUE(storage_->CreateDirectories(kDir).ok());
    MakeWriter();
  }

  void MakeWriter() {
    constexpr std::uint64_t kReserved = 200;
    EXPECT_TRUE(InternalAccess::PartsOf(*engine_).TryReserve(kReserved));
    writer_ = std::make_unique<StagedWriter>(InternalAccess::PartsOf(*engine_), kReserved,
                                             BlobWriterOptions{.size_max_bytes = kMiB});
  }

  // Each needs a blob of its own.
  void AddTensors() {
    for (int i = 0; i < 5; ++i) {
      const TensorSpec tensor = ByteTensor(std::to_string(i), bytes_.size());
      ASSERT_TRUE(
          writer_->AddTensor(tensor, Slice(0, bytes_.size()), MemoryView::Host(bytes_)).ok());
    }
  }
  StagedWriter::Bound Bind() {
    return std::move(*writer_).Bind(storage_->OpenDirectory(kDir).value(), AttemptId{});
  }

  const Bytes bytes_ = NoiseBytes(1, 500000);
  const std::shared_ptr<FailingStorage> storage_ =
      std::make_shared<FailingStorage>(MemoryStorage());
  const std::unique_ptr<Engine> engine_ = SmallEngine(storage_, 300);
  std::unique_ptr<StagedWriter> writer_;
};

TEST_F(StagedWriterTest, TouchesNothingBeforeItIsBound) {
  AddTensors();
  EXPECT_THAT(storage_->changes(), SizeIs(1)) << "of the test itself";
  const StagedWriter::Bound bound = Bind();
  ASSERT_TRUE(bound.status.ok());
  EXPECT_THAT(bound.writer->Finish().value(), SizeIs(5));
}

// As if it were new, in blobs of their own: those that were staged are being written.
TEST_F(StagedWriterTest, TakesMoreWhenItIsBound) {
  AddTensors();
  const StagedWriter::Bound bound = Bind();
  const TensorSpec tensor = ByteTensor("more", bytes_.size());
  ASSERT_TRUE(bound.writer->Add(tensor, Slice(0, bytes_.size()), MemoryView::Host(bytes_)).ok());
  sealpoint::Commit(*storage_, kDir, {}, bound.writer->Finish().value()).value();
  EXPECT_EQ(FindDamage(storage_, kDir), "");
  EXPECT_EQ(LoadWhole(*OpenFrom(storage_, kDir), "more"), bytes_);
  EXPECT_EQ(LoadWhole(*OpenFrom(storage_, kDir), "4"), bytes_);
}

TEST_F(StagedWriterTest, GivesItsMemoryBackWhenItIsAbandoned) {
  AddTensors();
  EXPECT_FALSE(InternalAccess::PartsOf(*engine_).TryReserve(200)) << "of 300 buffers";
  writer_.reset();
  EXPECT_TRUE(InternalAccess::PartsOf(*engine_).TryReserve(200));
}

TEST_F(StagedWriterTest, EachFileThatCannotBeCreatedIsAnError) {
  for (int nth = 1; nth <= 5; ++nth) {
    AddTensors();
    storage_->Fail({.op = StorageOp::kCreate, .nth = nth, .error = Status(Code::kIo, "refused")});
    const StagedWriter::Bound bound = Bind();
    EXPECT_THAT(bound.status.message(), HasSubstr("refused")) << nth;
    EXPECT_THAT(bound.writer->Finish().status().message(), HasSubstr("refused"));
    EXPECT_TRUE(bound.writer->Abandon().ok());
    EXPECT_THAT(FileNames(*storage_, kDir), IsEmpty());
    storage_->Heal();
    MakeWriter();
  }
}

TEST_F(StagedWriterTest, EachBlobThatCannotBeSyncedIsAnError) {
  for (int nth = 1; nth <= 5; ++nth) {
    AddTensors();
    const StagedWriter::Bound bound = Bind();
    ASSERT_TRUE(bound.status.ok());
    storage_->Fail({.op = StorageOp::kSyncFile, .nth = nth, .error = Status(Code::kIo, "lost")});
    EXPECT_THAT(bound.writer->Finish().status().message(), HasSubstr("lost")) << nth;
    EXPECT_TRUE(bound.writer->Abandon().ok());
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
  const Bytes bytes(100);
  const auto for_each_shard = [&](const internal::writer::StateWriter::AddShard& add) {
    Status added = add(ByteTensor("t", 100), Slice(0, 100), MemoryView::Host(bytes), nullptr);
    EXPECT_EQ(engine->stats().mapped_bytes, kBuffer);
    return added;
  };
  ASSERT_TRUE(writer
                  ->AddState({.expected = {.bytes = 10 * kBuffer},
                              .for_each_shard = for_each_shard,
                              .add_rest = [] { return Status(); }})
                  .ok());
  EXPECT_EQ(engine->stats().mapped_bytes, 11 * kBuffer);
}

}  // namespace
}  // namespace sealpoint::testing
