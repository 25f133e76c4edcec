// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/storage/storage_fixture.h"

#include <array>
#include <utility>

#include "sealpoint/object_store.h"
#include "tests/support/storage/memory_object_store.h"

namespace sealpoint::testing {
namespace {

std::shared_ptr<Storage> MakeStorage(StorageKind kind) {
  if (kind == StorageKind::kPosix) return PosixStorage();
  if (kind == StorageKind::kMemory) return MemoryStorage();
  return ObjectStorage(std::make_shared<MemoryObjectStore>()).value();
}

// Tests whose contract is not that of an object store, and what it does instead, which
// object_storage_test.cc checks.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kOtherInObjectStores = {{
    {"MissingFileIsNotFound", "removing what is not there succeeds"},
    {"DirectoryIsNotReadAsAFile", "a prefix is NotFound"},
    {"NameThatIsTooLongIsAnError", "a key may have 1024 bytes"},
    {"LinkPublishesOnceAndKeepsTheSource", "published by PutIfAbsent"},
    {"ALinkFromAnotherDirectoryIsASecondName", "the store copies, and replaces"},
    {"RenamePublishesOnceAndTakesTheSource", "published by PutIfAbsent"},
    {"PublishingNothingIsNotFound", "published by PutIfAbsent"},
    {"PublishingOverADirectoryFails", "published by PutIfAbsent"},
    {"OneThreadWinsAndItsContentStands", "published by PutIfAbsent"},
    {"ProbeFindsAMethodAndLeavesNothingBehind", "finds PutIfAbsent"},
    {"MissingDirectoryIsNotFound", "removing an empty prefix succeeds"},
    {"FileIsNotADirectory", "an object and a prefix of one name can both be there"},
    {"RemovedDirectoryTakesNoFiles", "a prefix is there as soon as an object is"},
    {"WritesInAnyOrderAndZeroesTheGap", "an object has no holes and is written once"},
    {"SizeIsThatOfTheOpening", "an object is there when it is complete"},
    {"OneThreadCreatesAFile", "two that were created at once are told apart when they complete"},
}};

}  // namespace

StorageTest::StorageTest()
    : storage_(MakeStorage(GetParam())),
      root_(GetParam() == StorageKind::kObjects ? "mem://bucket/root" : temp_ / "root") {
  const Status made = storage_->CreateDirectories(root_);
  EXPECT_TRUE(made.ok()) << made.ToString();
  directory_ = storage_->OpenDirectory(root_).value();
}

void StorageTest::SetUp() {
  if (GetParam() != StorageKind::kObjects) return;
  const std::string_view test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  for (const auto& [name, instead] : kOtherInObjectStores) {
    if (test.substr(0, test.find('/')) == name) GTEST_SKIP() << "object stores: " << instead;
  }
}

std::string StorageName(const ::testing::TestParamInfo<StorageKind>& info) {
  return info.param == StorageKind::kPosix    ? "Posix"
         : info.param == StorageKind::kMemory ? "Memory"
                                              : "Objects";
}

void WriteFile(Directory& directory, std::string_view name, std::string_view content) {
  auto file = directory.CreateExclusive(name, {});
  ASSERT_TRUE(file.ok()) << file.error().ToString();
  for (const Status& status :
       {(*file)->WriteAt(0, AsBytes(content)), (*file)->Sync(), (*file)->Close()}) {
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
}

std::string ReadFile(const Directory& directory, std::string_view name) {
  const auto file = directory.OpenForRead(name, IoMode::kBuffered);
  EXPECT_TRUE(file.ok()) << file.error().ToString();
  if (!file.ok()) return {};
  Bytes bytes((*file)->size_bytes());
  const Status status = (*file)->ReadAt(0, bytes);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return std::string(AsText(bytes));
}

std::vector<std::string> Names(const Directory& directory) {
  std::vector<std::string> names;
  const auto entries = directory.List();
  EXPECT_TRUE(entries.ok()) << entries.error().ToString();
  for (const EntryInfo& entry : entries.value_or(std::vector<EntryInfo>())) {
    names.push_back(entry.name);
  }
  return names;
}

}  // namespace sealpoint::testing
