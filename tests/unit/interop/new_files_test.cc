// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/new_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/storage/failing_storage.h"
#include "tests/support/storage/write_file.h"

namespace sealpoint::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::StorageOp;

class NewFilesTest : public ::testing::Test {
 protected:
  NewFilesTest() {
    static_cast<void>(storage_->CreateDirectories("d"));
    directory_ = storage_->OpenDirectory("d").value();
    storage_->ClearLog();
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const EntryInfo& entry : directory_->List().value()) names.push_back(entry.name);
    return names;
  }
  // Makes the files a and b.
  Status MakeTwo() {
    auto made = NewFiles::Create(*directory_);
    if (!made.ok()) return made.error();
    for (const char* const name : {"a", "b"}) {
      auto file = (*made)->Begin(name);
      if (!file.ok()) return file.error();
      static_cast<void>((*file)->WriteAt(0, AsBytes(name)));
      static_cast<void>((*file)->Sync());
      static_cast<void>((*file)->Close());
    }
    EXPECT_THAT(Names(), ElementsAre(::testing::StartsWith("a.partial-"),
                                     ::testing::StartsWith("b.partial-")));
    return (*made)->Publish();
  }

  std::shared_ptr<testing::FailingStorage> storage_ =
      std::make_shared<testing::FailingStorage>(MemoryStorage());
  std::unique_ptr<Directory> directory_;
};

TEST_F(NewFilesTest, FilesGetTheirNamesTogether) {
  ASSERT_TRUE(MakeTwo().ok());
  EXPECT_THAT(Names(), ElementsAre("a", "b"));
  EXPECT_EQ(AsText(testing::ReadFile(*storage_, "d/b")), "b");
}

// Names before the directory is synced could be lost together with what they had replaced.
TEST_F(NewFilesTest, NamesAreDurableBeforeAndAfterPublication) {
  ASSERT_TRUE(MakeTwo().ok());
  std::vector<StorageOp> order;
  for (const auto& call : storage_->calls()) {
    if (call.op == StorageOp::kSyncDirectory || call.op == StorageOp::kPublish) {
      order.push_back(call.op);
    }
  }
  EXPECT_THAT(order, ElementsAre(StorageOp::kSyncDirectory, StorageOp::kPublish,
                                 StorageOp::kPublish, StorageOp::kSyncDirectory));
}

TEST_F(NewFilesTest, WithoutPublicationNothingIsLeft) {
  {
    const auto made = NewFiles::Create(*directory_).value();
    static_cast<void>(made->Begin("a").value()->Close());
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(NewFilesTest, ReplacesNothing) {
  testing::WriteFile(*storage_, "d/b", std::string_view("old"));
  auto made = NewFiles::Create(*directory_).value();
  for (const char* const name : {"a", "b"}) {
    static_cast<void>(made->Begin(name).value()->Close());
  }
  EXPECT_EQ(made->Publish().code(), Code::kAlreadyExists);
  made.reset();
  EXPECT_THAT(Names(), ElementsAre("b"));
  EXPECT_EQ(AsText(testing::ReadFile(*storage_, "d/b")), "old");
}

TEST_F(NewFilesTest, AfterAnErrorNothingIsLeft) {
  for (const auto op :
       {StorageOp::kProbe, StorageOp::kCreate, StorageOp::kSyncDirectory, StorageOp::kPublish}) {
    for (const int nth : {1, 2}) {
      storage_->Heal();
      storage_->Fail({.op = op, .nth = nth});
      const Status status = MakeTwo();
      if (op == StorageOp::kProbe && nth == 2) continue;
      EXPECT_EQ(status.code(), Code::kIo);
      EXPECT_THAT(Names(), IsEmpty()) << static_cast<int>(op) << nth;
    }
    for (const std::string& name : Names()) static_cast<void>(directory_->Remove(name));
  }
}

TEST_F(NewFilesTest, NeedsExclusivePublicationAndDirectorySync) {
  storage_->Claim(Capabilities{.publish = PublishMethod::kNone, .directory_sync = true});
  EXPECT_EQ(NewFiles::Create(*directory_).status().code(), Code::kUnsupported);
  storage_->Claim(Capabilities{.publish = PublishMethod::kLink, .directory_sync = false});
  EXPECT_EQ(NewFiles::Create(*directory_).status().code(), Code::kUnsupported);
  storage_->Claim(Capabilities{.publish = PublishMethod::kPutIfAbsent, .directory_sync = true});
  EXPECT_EQ(NewFiles::Create(*directory_).status().code(), Code::kUnsupported) << "object stores";
}

}  // namespace
}  // namespace sealpoint::internal
