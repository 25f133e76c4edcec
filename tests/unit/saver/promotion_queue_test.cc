// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/promotion_queue.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/support/container/mini_container.h"
#include "tests/support/container/rule_matchers.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::internal::saver {
namespace {

using testing::HasCode;
using testing::StorageOp;

class DropLocalTest : public ::testing::Test {
 protected:
  DropLocalTest() {
    for (const char* const place : {"local/a", "final/a"}) {
      testing::StoreFiles(*memory_, place, testing::BuildInSeries(1, 0, 1).files);
    }
  }
  const std::shared_ptr<Storage> memory_ = MemoryStorage();
  const std::shared_ptr<testing::FailingStorage> storage_ =
      std::make_shared<testing::FailingStorage>(memory_);
};

TEST_F(DropLocalTest, WhatIsGoneAlreadyIsDropped) {
  EXPECT_TRUE(DropLocal(*storage_, "none/a", "final/a").ok());
  EXPECT_TRUE(DropLocal(*storage_, "local/none", "final/a").ok());
  EXPECT_TRUE(DropLocal(*storage_, "local/a", "final/a").ok());
  EXPECT_THAT(memory_->OpenDirectory("local/a").status(), HasCode(Code::kNotFound));
}

TEST_F(DropLocalTest, WhatIsKeptStays) {
  const Bytes nothing;
  testing::ReplaceFile(*memory_, "local/a", "KEEP", &nothing);
  const auto before = testing::FileNames(*memory_, "local/a");
  EXPECT_TRUE(DropLocal(*storage_, "local/a", "final/a").ok());
  EXPECT_EQ(testing::FileNames(*memory_, "local/a"), before);
}

// R-STG-08: the same one at another place.
TEST_F(DropLocalTest, OnlyACopyIsDropped) {
  testing::StoreFiles(*memory_, "final/b", testing::BuildInSeries(2, 0, 1).files);
  EXPECT_THAT(DropLocal(*storage_, "local/a", "final/b"), HasCode(Code::kAlreadyExists));
  EXPECT_THAT(DropLocal(*storage_, "local/a", "./local/a/"), HasCode(Code::kInvalidArgument));
  EXPECT_EQ(testing::FileNames(*memory_, "local/a").size(), 3u);
}

TEST_F(DropLocalTest, WhatFailsIsTheAnswer) {
  for (int nth = 1;; ++nth) {
    const auto storage = MemoryStorage();
    for (const char* const place : {"local/a", "final/a"}) {
      testing::StoreFiles(*storage, place, testing::BuildInSeries(1, 0, 1).files);
    }
    testing::FailingStorage failing(storage);
    failing.Fail({.any_op = true, .nth = nth});
    const Status status = DropLocal(failing, "local/a", "final/a");
    if (failing.fault_count() == 0) {
      EXPECT_GT(nth, 5);
      break;
    }
    EXPECT_EQ(status.code(), Code::kIo) << nth << " " << status.ToString();
  }
}

// The final place cannot be made for now, so that what is added stays.
TEST(PromotionQueueTest, AWaitForRoomEndsWithItsCaller) {
  const auto memory = MemoryStorage();
  const testing::MiniContainer good = testing::BuildInSeries(1, 0, 1);
  testing::StoreFiles(*memory, "local/a", good.files);
  const auto storage = std::make_shared<testing::FailingStorage>(memory);
  std::mutex promoting;
  promoting.lock();
  storage->SetHook([&](StorageOp op, std::string_view) {
    if (op == StorageOp::kCreateDirectories) const std::lock_guard held(promoting);
  });
  const auto queue = PromotionQueue::Create(
      storage, {.unpromoted_max = 1, .unpromoted_wait = std::chrono::milliseconds(1000)});
  StagedCommit staged{.local = "local/a", .final = "final/a"};
  staged.marker = good.files.at("COMMIT");
  staged.index = good.files.at(good.index_name);
  staged.blobs = {good.blobs.at(0).id};
  queue->Add(staged);
  const auto cancelled = [] { return Status(Code::kCancelled, "by the caller"); };
  EXPECT_THAT(queue->MakeRoom(cancelled), HasCode(Code::kCancelled));
  promoting.unlock();
  EXPECT_TRUE(queue->WaitFor(std::chrono::minutes(1)));
  EXPECT_TRUE(queue->MakeRoom(cancelled).ok()) << "nothing waits";
  queue->Close();
}

// R-STG-11: what no try will promote is told, and does not keep others out for ever.
TEST(PromotionQueueTest, WhatCannotBePromotedAnyMoreTakesNoRoom) {
  const testing::MiniContainer good = testing::BuildInSeries(1, 0, 1);
  for (const bool is_taken : {false, true}) {
    const auto memory = MemoryStorage();
    const auto storage = std::make_shared<testing::FailingStorage>(memory);
    if (is_taken) {
      testing::StoreFiles(*memory, "local/a", good.files);
      testing::StoreFiles(*memory, "final/a", testing::BuildInSeries(2, 0, 1).files);
    }
    const auto queue = PromotionQueue::Create(
        storage, {.unpromoted_max = 1, .unpromoted_wait = std::chrono::milliseconds(0)});
    StagedCommit staged{.local = "local/a", .final = "final/a"};
    staged.marker = good.files.at("COMMIT");
    staged.index = good.files.at(good.index_name);
    staged.blobs = {good.blobs.at(0).id};
    queue->Add(staged);
    EXPECT_TRUE(queue->WaitFor(std::chrono::minutes(1)));
    const auto over = queue->Take();
    ASSERT_EQ(over.size(), 1u);
    EXPECT_EQ(over[0].status.code(), is_taken ? Code::kAlreadyExists : Code::kNotFound);
    EXPECT_TRUE(queue->MakeRoom([] { return Status(); }).ok()) << is_taken;
    queue->Close();
  }
}

}  // namespace
}  // namespace sealpoint::internal::saver
