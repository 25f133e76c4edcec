// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "lib/interop/foreign/files.h"
#include "sealpoint/object_store.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/storage/memory_object_store.h"
#include "tests/support/storage/write_file.h"

namespace sealpoint::internal::foreign {
namespace {

using testing::Trouble;

TEST(KindAt, OfAPathThatTheSystemKnows) {
  const testing::TempDir folder;
  const std::string file = folder / "file";
  const auto storage = PosixStorage();
  testing::WriteFile(*storage, file, "x");
  EXPECT_EQ(KindAt("", *storage).value(), PathKind::kNothing);
  EXPECT_EQ(KindAt(folder.path(), *storage).value(), PathKind::kDirectory);
  EXPECT_EQ(KindAt(file, *storage).value(), PathKind::kFile);
  // Whatever the system says of them: the caller says what was expected.
  EXPECT_EQ(KindAt(file + "/below", *storage).value(), PathKind::kNothing);
  EXPECT_EQ(KindAt(folder / "none/below", *storage).value(), PathKind::kNothing);
}

// Trouble with a store is not taken for the absence of a checkpoint.
TEST(KindAt, OfAPathInAnObjectStore) {
  const auto store = std::make_shared<testing::MemoryObjectStore>();
  const auto storage = ObjectStorage(store).value();
  store->Set("a/file", Bytes(3));
  EXPECT_EQ(KindAt("mem://bucket/a", *storage).value(), PathKind::kDirectory);
  EXPECT_EQ(KindAt("mem://bucket/a/file", *storage).value(), PathKind::kFile);
  EXPECT_EQ(KindAt("mem://bucket/none", *storage).value(), PathKind::kNothing);
  EXPECT_EQ(KindAt("mem://bucket/none/below", *storage).value(), PathKind::kNothing);
  for (const char* const path : {"mem://bucket/none", "mem://bucket/none/below"}) {
    store->ResetCounts();
    static_cast<void>(KindAt(path, *storage));
    const std::uint64_t requests = store->request_count();
    for (std::uint64_t number = 0; number < requests; ++number) {
      store->FailAt(number, Trouble::kRefused);
      EXPECT_EQ(KindAt(path, *storage).status().code(), Code::kIo) << path << " " << number;
    }
  }
}

}  // namespace
}  // namespace sealpoint::internal::foreign
