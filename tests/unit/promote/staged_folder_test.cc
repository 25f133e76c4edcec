// SPDX-License-Identifier: Apache-2.0
#include "lib/promote/staged_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "sealpoint/storage.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::internal::promote {
namespace {

using testing::FailingStorage;
using testing::StorageOp;

class StagedFolderTest : public ::testing::Test {
 protected:
  const testing::TempDir dir_{};
  FailingStorage storage_{DefaultStorage()};
  const StagedFolder folder_ = StagedFolderOf(storage_, dir_ / "local", dir_ / "series").value();
};

TEST_F(StagedFolderTest, HasTheRecordOfItsSeries) {
  ASSERT_TRUE(MakeStagedFolder(storage_, folder_).ok());
  EXPECT_EQ(RecordedSeries(storage_, folder_.path).value(), folder_.series);
  EXPECT_TRUE(MakeStagedFolder(storage_, folder_).ok()) << "a second time";
  const StagedFolder of_another = {.path = folder_.path, .series = "/another"};
  EXPECT_EQ(MakeStagedFolder(storage_, of_another).code(), Code::kInvalidArgument);
}

// R-STG-13: copies without a record are nobody's after a power failure.
TEST_F(StagedFolderTest, ARecordThatIsNotDurableIsAnError) {
  storage_.Fail({.op = StorageOp::kSyncDirectory, .nth = 0});
  EXPECT_EQ(MakeStagedFolder(storage_, folder_).code(), Code::kIo);
  EXPECT_GT(storage_.fault_count(), 0u);
}

}  // namespace
}  // namespace sealpoint::internal::promote
