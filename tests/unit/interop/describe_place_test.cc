// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "sealpoint/interop.h"
#include "sealpoint/object_store.h"
#include "tests/support/storage/memory_object_store.h"

// Texts of file systems are those of tests/python/test_places.py and of the goldens of ckpt.

namespace sealpoint {
namespace {

TEST(DescribePlace, InAnObjectStore) {
  const auto store = std::make_shared<testing::MemoryObjectStore>();
  const DescribeOptions options{.storage = ObjectStorage(store).value()};
  for (const char* const key : {"run/step-1/COMMIT", "other/model.safetensors", "text"}) {
    store->Set(key, Bytes(20));
  }
  const auto text = [&](const char* path) { return DescribePlace(path, options).text; };
  EXPECT_EQ(text("mem://bucket/rn"),
            "there is no mem://bucket/rn: mem://bucket exists, but has no entry rn; did "
            "you mean mem://bucket/run?");
  EXPECT_EQ(text("mem://bucket/text/x"),
            "there is no mem://bucket/text/x: mem://bucket/text is a file");
  EXPECT_EQ(text("mem://bucket/run"), "it is a series, but none of its checkpoints can be opened");
  EXPECT_EQ(text("mem://bucket/other"),
            "it is a directory of safetensors (Hugging Face); `ckpt convert mem://bucket/other "
            "DST` converts it, `ckpt ls mem://bucket/other` shows it");
  EXPECT_EQ(text("mem://bucket/text"), "it is a file, but not a checkpoint of a known format");
  EXPECT_EQ(DescribePlace("mem://bucket/run/step-1", options).kind, PlaceKind::kCheckpoint);
  // What cannot be looked at may be there.
  EXPECT_EQ(text("mem://other/run"), "");
}

}  // namespace
}  // namespace sealpoint
