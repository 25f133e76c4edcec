// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "lib/base/errors.h"
#include "sealpoint/object_store.h"
#include "tests/support/storage/memory_object_store.h"
#include "tests/unit/storage/storage_fixture.h"

namespace sealpoint::testing {
namespace {

Result<std::shared_ptr<Storage>> MakeInMemory(std::string_view authority) {
  return ObjectStorage(std::make_shared<MemoryObjectStore>(std::string(authority)));
}

TEST(DefaultStorage, ChoosesByTheSchemeOfEachPath) {
  const TempDir temp;
  ASSERT_TRUE(RegisterStorage("Dflt", MakeInMemory).ok());
  for (const std::string& path :
       {temp / "plain", "file://" + (temp / "uri"), std::string("dflt://bucket/a")}) {
    ASSERT_TRUE(DefaultStorage()->CreateDirectories(path).ok()) << path;
    WriteFile(**DefaultStorage()->OpenDirectory(path), "f", path);
    EXPECT_EQ(ReadFile(**DefaultStorage()->OpenDirectory(path), "f"), path);
  }
  EXPECT_TRUE(PosixStorage()->OpenDirectory(temp / "uri").ok());
  EXPECT_EQ(DefaultStorage()->OpenDirectory("dflt://other/a").error().code(), Code::kNotFound);
  EXPECT_EQ(StorageFor("file://host/a").value()->CreateDirectories("file://host/a").code(),
            Code::kInvalidArgument);
}

TEST(DefaultStorage, SaysWhatRegistersAScheme) {
  for (const auto& [path, needed] : {std::pair{"nos://b/a", "RegisterStorage"}, {"s3://b", "s3"}}) {
    const Status missing = DefaultStorage()->CreateDirectories(path);
    EXPECT_EQ(missing.code(), Code::kUnsupported);
    EXPECT_EQ(missing.place().path, path);
    EXPECT_NE(missing.message().find(needed), std::string::npos) << missing.ToString();
    EXPECT_NE(missing.message().find("pip install obstore"), std::string::npos);
  }
}

TEST(DefaultStorage, KeepsOneStorageForEachAuthorityUntilItIsRegisteredAnew) {
  std::atomic<int> made = 0;
  const auto factory = [&](std::string_view authority) {
    ++made;
    return MakeInMemory(authority);
  };
  ASSERT_TRUE(RegisterStorage("kept", factory).ok());
  const auto first = StorageFor("kept://a/x").value();
  EXPECT_EQ(StorageFor("kept://a").value(), first);
  EXPECT_NE(StorageFor("kept://b").value(), first);
  EXPECT_EQ(made, 2);
  ASSERT_TRUE(RegisterStorage("kept", MakeInMemory).ok());
  EXPECT_NE(StorageFor("kept://a").value(), first);
  for (const char* const scheme : {"", "file", "FILE", "3s", "a b", "a://", "a/"}) {
    EXPECT_EQ(RegisterStorage(scheme, MakeInMemory).code(), Code::kInvalidArgument) << scheme;
  }
  EXPECT_EQ(RegisterStorage("kept", nullptr).code(), Code::kInvalidArgument);
  ASSERT_TRUE(RegisterStorage("none", [](std::string_view) -> Result<std::shared_ptr<Storage>> {
                return std::shared_ptr<Storage>();
              }).ok());
  EXPECT_EQ(StorageFor("none://a").error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace sealpoint::testing
