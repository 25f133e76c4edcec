// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/interop.h"
#include "sealpoint/object_store.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/support/storage/memory_object_store.h"
#include "tests/support/storage/write_file.h"

namespace sealpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::StorageOp;

const std::vector<std::string> kTwo = {"a", "b"};

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
    auto made = NewFiles::Create(*directory_, kTwo);
    if (!made.ok()) return made.error();
    for (std::size_t i = 0; i < 2; ++i) {
      auto file = (*made)->Begin(i);
      if (!file.ok()) return file.error();
      static_cast<void>((*file)->WriteAt(0, AsBytes(kTwo[i])));
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
    const auto made = NewFiles::Create(*directory_, kTwo).value();
    static_cast<void>(made->Begin(0).value()->Close());
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(NewFilesTest, ReplacesNothing) {
  testing::WriteFile(*storage_, "d/b", std::string_view("old"));
  auto made = NewFiles::Create(*directory_, kTwo).value();
  for (std::size_t i = 0; i < 2; ++i) static_cast<void>(made->Begin(i).value()->Close());
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
  EXPECT_EQ(NewFiles::Create(*directory_, kTwo).status().code(), Code::kUnsupported);
  storage_->Claim(Capabilities{.publish = PublishMethod::kLink, .directory_sync = false});
  EXPECT_EQ(NewFiles::Create(*directory_, kTwo).status().code(), Code::kUnsupported);
}

class StoredFilesTest : public ::testing::Test {
 protected:
  using Names = std::vector<std::string>;

  Names Keys() const {
    Names keys;
    for (const auto& [key, content] : store_->Objects()) keys.push_back(key.substr(2));
    return keys;
  }
  // Makes these files of two bytes.
  Status Make(const Names& names) {
    const auto made = NewFiles::Create(*directory_, names);
    if (!made.ok()) return made.error();
    for (std::size_t i = 0; i < names.size(); ++i) {
      auto file = (*made)->Begin(i);
      if (!file.ok()) return file.error();
      Status status = (*file)->WriteAt(0, AsBytes("12"));
      if (status.ok()) status = (*file)->Close();
      if (!status.ok()) return status;
    }
    return (*made)->Publish();
  }
  Status MakeTwo() { return Make(kTwo); }

  const std::shared_ptr<testing::MemoryObjectStore> store_ =
      std::make_shared<testing::MemoryObjectStore>();
  const std::shared_ptr<Storage> storage_ = ObjectStorage(store_).value();
  const std::unique_ptr<Directory> directory_ = [this] {
    static_cast<void>(storage_->CreateDirectories("mem://bucket/d"));
    return storage_->OpenDirectory("mem://bucket/d").value();
  }();
};

TEST_F(StoredFilesTest, EachIsThereWhenItIsClosedAndAMarkerNamesThem) {
  const auto made = NewFiles::Create(*directory_, kTwo).value();
  const auto file = made->Begin(0).value();
  ASSERT_TRUE(file->WriteAt(0, AsBytes("a")).ok());
  EXPECT_THAT(Keys(), ElementsAre(::testing::StartsWith(".partial-")));
  ASSERT_TRUE(file->Close().ok());
  EXPECT_THAT(Keys(), ElementsAre(::testing::StartsWith(".partial-"), "a"));
  EXPECT_THAT(NewFiles::Left(*directory_).value(),
              ElementsAre(::testing::StartsWith(".partial-"), "a"));
  ASSERT_TRUE(made->Begin(1).value()->Close().ok());
  ASSERT_TRUE(made->Publish().ok());
  EXPECT_THAT(Keys(), ElementsAre("a", "b"));
  store_->ResetCounts();
  ASSERT_TRUE(Make({"one"}).ok());
  EXPECT_EQ(store_->count(testing::Request::kPutIfAbsent), 3) << "the probe, and no marker";
}

// Whatever request fails or is the last one of a process: the last file is there only behind the
// first, or a marker says that it is left; a repetition makes both, and what was there before
// stays.
TEST_F(StoredFilesTest, EveryRequestMayFail) {
  ASSERT_TRUE(Make({"other"}).ok());
  store_->ResetCounts();
  ASSERT_TRUE(MakeTwo().ok());
  const std::uint64_t requests = store_->request_count();
  store_->delay = 1000;
  for (const testing::Trouble trouble : testing::kTroubles) {
    for (std::uint64_t number = 0; number < requests; ++number) {
      for (const std::string& name : kTwo) static_cast<void>(directory_->Remove(name));
      store_->ResetCounts();
      store_->FailAt(number, trouble);
      const Status status = MakeTwo();
      store_->Settle();
      const Names keys = Keys();
      const auto has = [&](std::string_view name) { return std::ranges::count(keys, name) == 1; };
      SCOPED_TRACE(::testing::PrintToString(std::pair(static_cast<int>(trouble), number)));
      EXPECT_TRUE(has("other"));
      EXPECT_TRUE(!status.ok() || (has("a") && has("b")));
      const Names left = NewFiles::Left(*directory_).value();
      EXPECT_TRUE(!status.ok() || left.empty()) << "a marker would have the next one remove both";
      for (const char* const name : {"a", "b"}) {
        EXPECT_TRUE(status.ok() || !has(name) || std::ranges::count(left, name) == 1) << name;
      }
      if (!status.ok()) EXPECT_TRUE(MakeTwo().ok());
      Names names = Keys();
      std::erase_if(names, [](const std::string& name) { return name.starts_with(".partial-"); });
      EXPECT_THAT(names, ElementsAre("a", "b", "other"));
    }
  }
}

TEST_F(StoredFilesTest, OnlyItsOwnNamesAreMarkers) {
  const std::string content = "a\nb\n";
  const ByteSpan bytes = AsBytes(content);
  for (const char* const name : {".partial-1234567", ".partial-123456789", ".partial-1234567g",
                                 "abcdefghi12345678", "a", "b"}) {
    store_->Set(std::string("d/") + name, Bytes(bytes.begin(), bytes.end()));
  }
  EXPECT_THAT(NewFiles::Left(*directory_).value(), IsEmpty());
  store_->Set("d/.partial-12345678", Bytes(bytes.begin(), bytes.end()));
  EXPECT_THAT(NewFiles::Left(*directory_).value(), ElementsAre(".partial-12345678", "a", "b"));
}

TEST_F(StoredFilesTest, TroubleIsToldAsItIs) {
  const auto made = NewFiles::Create(*directory_, kTwo).value();
  const auto file = made->Begin(0).value();
  EXPECT_EQ(file->WriteAt(std::uint64_t{1} << 63, AsBytes("x")).code(), Code::kInvalidArgument);
  store_->FailAt(0, testing::Trouble::kRefused);
  EXPECT_THAT(made->Begin(1).status().message(), ::testing::HasSubstr("has trouble"));
}

TEST_F(StoredFilesTest, ASecondProgramEndsTheFirst) {
  {
    const auto first = NewFiles::Create(*directory_, kTwo).value();
    static_cast<void>(first->Begin(0).value()->Close());
    const auto second = NewFiles::Create(*directory_, {"a", "c"}).value();
    EXPECT_EQ(first->Begin(1).status().code(), Code::kIo);
    static_cast<void>(second->Begin(0).value()->Close());
    EXPECT_TRUE(second->Begin(1).value()->Close().ok());
    EXPECT_TRUE(second->Publish().ok());
  }
  EXPECT_THAT(Keys(), ElementsAre("a", "c"));
}

TEST_F(StoredFilesTest, ReplacesNothing) {
  store_->Set("d/b", Bytes(3));
  EXPECT_EQ(MakeTwo().code(), Code::kAlreadyExists);
  EXPECT_THAT(Keys(), ElementsAre("b"));
  store_->hook_on = "/a";  // another program is faster
  store_->hook = [this] { store_->Set("d/a", Bytes(3)); };
  EXPECT_EQ(Make({"a", "c"}).code(), Code::kAlreadyExists);
  EXPECT_THAT(Keys(), ElementsAre("a", "b"));
  store_->ignores_condition = true;
  EXPECT_EQ(MakeTwo().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace sealpoint
