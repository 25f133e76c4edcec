// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/durable.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "sealpoint/object_store.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/support/storage/memory_object_store.h"

namespace sealpoint::internal::storage {
namespace {

using testing::StorageOp;

// A store that takes no put of the marker until the fourth, which is that of the void one.
class PublishByPutTest : public ::testing::Test {
 protected:
  PublishByPutTest() {
    for (const int nth : {1, 2, 3}) failing_->Fail({.op = StorageOp::kPublish, .nth = nth});
  }
  Status Publish(const std::string& content, const std::string& void_content) {
    return PublishByPut(*directory_, "COMMIT", AsBytes(content), AsBytes(void_content));
  }

  const std::shared_ptr<testing::MemoryObjectStore> store_ =
      std::make_shared<testing::MemoryObjectStore>();
  const std::shared_ptr<testing::FailingStorage> failing_ =
      std::make_shared<testing::FailingStorage>(ObjectStorage(store_).value());
  const std::unique_ptr<Directory> directory_ = failing_->OpenDirectory("mem://bucket").value();
};

TEST_F(PublishByPutTest, TheVoidMarkerDecides) {
  // It is there: what is read afterwards changes nothing.
  failing_->Fail({.op = StorageOp::kOpenForRead, .name = "COMMIT", .nth = 4, .persists = true});
  const Status status = Publish("marker", "void");
  EXPECT_EQ(status.code(), Code::kIo) << status.ToString();
  EXPECT_FALSE(status.has_unknown_outcome()) << status.ToString();
  EXPECT_EQ(AsText(store_->Objects().at("COMMIT")), "void");
}

TEST_F(PublishByPutTest, AVoidMarkerIsPublishedByTheFourthPut) {
  EXPECT_TRUE(Publish("void", "void").ok());
  EXPECT_EQ(AsText(store_->Objects().at("COMMIT")), "void");
}

}  // namespace
}  // namespace sealpoint::internal::storage
