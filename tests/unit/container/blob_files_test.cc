// SPDX-License-Identifier: Apache-2.0
#include "lib/container/blob_files.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "lib/container/open_checkpoint.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::internal::container {
namespace {

using sealpoint::testing::FailingStorage;
using sealpoint::testing::MiniSpec;
using sealpoint::testing::MiniTensor;
using sealpoint::testing::StorageOp;

// A checkpoint of three blobs, of which the first is open already.
class TooManyFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MiniTensor tensor{.name = "w", .dtype = DType::kUInt8, .shape = {3}};
    for (std::uint64_t i = 0; i < 3; ++i) {
      tensor.shards.push_back({.region = Region::Of({.offset = {i}, .extent = {1}}),
                               .bytes = Bytes(1),
                               .blob = static_cast<int>(i)});
    }
    sealpoint::testing::StoreFiles(*memory_, "c",
                                   sealpoint::testing::BuildMini({.tensors = {tensor}}).files);
    opened_ = std::make_unique<CommittedFiles>(OpenCommitted(*storage_, "c", {}, true, {}).value());
    files_ = std::make_unique<BlobFiles>(*opened_->directory, opened_->index.metadata,
                                         IoMode::kBuffered);
    EXPECT_TRUE(files_->Open(0).ok());
  }
  void FailOpens(Status error, bool persists) {
    storage_->Fail(
        {.op = StorageOp::kOpenForRead, .persists = persists, .error = std::move(error)});
  }

  const std::shared_ptr<Storage> memory_ = MemoryStorage();
  const std::shared_ptr<FailingStorage> storage_ = std::make_shared<FailingStorage>(memory_);
  std::unique_ptr<CommittedFiles> opened_;
  std::unique_ptr<BlobFiles> files_;
};

TEST_F(TooManyFilesTest, TooManyOpenFilesAreClosedAndTheOpenIsTriedAgain) {
  FailOpens(Status(Code::kIo, "too many open files").OutOfFiles(), false);
  EXPECT_TRUE(files_->Open(1).ok());
}

TEST_F(TooManyFilesTest, FilesOfAnotherModeAreClosedForIt) {
  BlobFiles direct = files_->InMode(IoMode::kDirect);
  FailOpens(Status(Code::kIo, "too many open files").OutOfFiles(), false);
  EXPECT_TRUE(direct.Open(1).ok());
}

TEST_F(TooManyFilesTest, TooManyOpenFilesOfOthersAreAnError) {
  FailOpens(Status(Code::kIo, "too many open files").OutOfFiles(), true);
  EXPECT_EQ(files_->Open(1).status().code(), Code::kIo);
}

TEST_F(TooManyFilesTest, AnotherErrorIsNotTriedAgain) {
  FailOpens(Status(Code::kIo, "broken"), false);
  EXPECT_EQ(files_->Open(1).status().code(), Code::kIo);
  EXPECT_TRUE(files_->Open(1).ok());
}

}  // namespace
}  // namespace sealpoint::internal::container
