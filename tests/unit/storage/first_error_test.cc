// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/first_error.h"

#include <gtest/gtest.h>

#include "sealpoint/storage.h"

namespace sealpoint::internal::storage {
namespace {

TEST(FirstError, KeepsTheFirstWhateverFollows) {
  FirstError errors;
  EXPECT_TRUE(errors.Note(Status()).ok());
  EXPECT_TRUE(errors.Get().ok());
  EXPECT_EQ(errors.Note(Status(Code::kIo, "first")).message(), "first");
  EXPECT_EQ(errors.Note(Status(Code::kNoSpace, "second")).message(), "second");
  EXPECT_TRUE(errors.Note(Status()).ok());
  EXPECT_EQ(errors.Get().message(), "first");
}

TEST(MemoryStorage, KeepsItsRoot) {
  const auto storage = MemoryStorage();
  EXPECT_EQ(storage->OpenDirectory("/").value()->RemoveSubdirectory("/").code(),
            Code::kInvalidArgument);
  EXPECT_TRUE(storage->CreateDirectories("a").ok());
}

TEST(MemoryStorage, NamesHave255BytesAtMost) {
  const auto storage = MemoryStorage();
  EXPECT_TRUE(storage->CreateDirectories(std::string(255, 'x')).ok());
  EXPECT_FALSE(storage->CreateDirectories(std::string(256, 'x')).ok());
}

}  // namespace
}  // namespace sealpoint::internal::storage
