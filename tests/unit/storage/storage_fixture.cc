// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/storage/storage_fixture.h"

namespace sealpoint::testing {

StorageTest::StorageTest()
    : storage_(GetParam() ? PosixStorage() : MemoryStorage()), root_(temp_ / "root") {
  const Status made = storage_->CreateDirectories(root_);
  EXPECT_TRUE(made.ok()) << made.ToString();
  directory_ = storage_->OpenDirectory(root_).value();
}

std::string StorageName(const ::testing::TestParamInfo<bool>& info) {
  return info.param ? "Posix" : "Memory";
}

void WriteFile(Directory& directory, std::string_view name, std::string_view content) {
  auto file = directory.CreateExclusive(name, IoMode::kBuffered);
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
