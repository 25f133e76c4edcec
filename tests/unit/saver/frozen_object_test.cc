// SPDX-License-Identifier: Apache-2.0
//
// Frozen groups in object stores, which copy what did not change.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "sealpoint/object_store.h"
#include "sealpoint/saver.h"
#include "sealpoint/series.h"
#include "tests/support/storage/memory_object_store.h"
#include "tests/unit/saver/frozen_fixture.h"

namespace sealpoint::testing {
namespace {

class FrozenObjectTest : public FrozenTest {
 protected:
  FrozenObjectTest() { step_ = 0; }
  Result<CommitInfo> SaveThere(const LoraState& state, const SaverOptions& options = Options(),
                               const std::string& series = "mem://bucket/run") {
    ++step_;
    const auto engine = SmallEngine(bucket_, BufferCountForSaves(64));
    const auto comm = SelfCommunicator();
    const auto saver = Saver::Create(*engine, *comm, options).value();
    return SaveOn(*comm, *saver, state, SaveTarget::InSeries(series));
  }
  void ExpectThere(const CommitInfo& info, const LoraState& state) {
    EXPECT_EQ(FindDamage(bucket_, info.directory), "");
    ExpectLoadsThere(info, state);
  }
  void ExpectLoadsThere(const CommitInfo& info, const LoraState& state) {
    const auto checkpoint = OpenFrom(bucket_, info.directory);
    for (const auto& [name, content] : state.contents) {
      EXPECT_EQ(LoadWhole(*checkpoint, name), content) << name;
    }
  }

  const std::shared_ptr<MemoryObjectStore> store_ = std::make_shared<MemoryObjectStore>();
  const std::shared_ptr<Storage> bucket_ = ObjectStorage(store_).value();
};

// Three requests for each blob that did not change: a look at it, the copy, a look at that.
TEST_F(FrozenObjectTest, WhatDidNotChangeIsCopiedByTheStore) {
  LoraState state;
  const CommitInfo first = SaveThere(state).value();
  state.contents["adapter"][0] = std::byte{0};
  const std::uint64_t of_first = store_->count(Request::kPart) + store_->count(Request::kPut);
  store_->ResetCounts();
  const CommitInfo second = SaveThere(state).value();
  EXPECT_EQ(second.reused_blob_count, 1u);
  EXPECT_GT(second.reused_bytes, 2 * kBaseSize);
  EXPECT_EQ(store_->count(Request::kCopy), 1u);
  EXPECT_LE(store_->count(Request::kHead), 3u);  // and one of any save
  EXPECT_LT(store_->count(Request::kPart) + store_->count(Request::kPut), of_first);
  ASSERT_TRUE(Series("mem://bucket/run", bucket_)
                  .Delete(first.directory.substr(first.directory.rfind('/') + 1))
                  .ok());
  ExpectThere(second, state);
  ExpectThere(SaveThere(state).value(), state);
}

TEST_F(FrozenObjectTest, WhatIsNotCopiedIsUploaded) {
  const LoraState state;
  ExpectThere(SaveThere(state).value(), state);
  const auto expect_uploaded = [&](std::string_view what, const SaverOptions& options) {
    SCOPED_TRACE(what);
    const CommitInfo info = SaveThere(state, options).value();
    EXPECT_EQ(info.reused_blob_count, 0u);
    ExpectThere(info, state);
  };
  SaverOptions never = Options();
  never.frozen_full_every = 1;
  expect_uploaded("never to link", never);
  store_->can_copy = false;
  expect_uploaded("a client that cannot copy", Options());
  store_->can_copy = true;
  store_->copies_badly = true;
  expect_uploaded("a copy of another etag", Options());
  store_->gives_etags = false;
  store_->copies_badly = false;
  EXPECT_EQ(SaveThere(state)->reused_blob_count, 1u) << "a store without etags";
}

// Each request of a save that copies has each trouble once.
TEST_F(FrozenObjectTest, ATroubleCostsNoOtherCheckpoint) {
  const LoraState state;
  int without_copy = 0;
  for (const Trouble trouble : kTroubles) {
    if (trouble == Trouble::kDead) continue;
    for (std::uint64_t nth = 0;; ++nth) {
      SCOPED_TRACE(::testing::Message()
                   << "trouble " << static_cast<int>(trouble) << " of " << nth);
      const std::string series = "mem://bucket/run-" + std::to_string(static_cast<int>(trouble)) +
                                 "-" + std::to_string(nth);
      const CommitInfo first = SaveThere(state, Options(), series).value();
      store_->ResetCounts();
      store_->FailAt(nth, trouble);
      const auto second = SaveThere(state, Options(), series);
      const bool is_met = store_->request_count() > nth;
      store_->Settle();
      ExpectThere(first, state);
      if (second.ok()) {
        ExpectLoadsThere(*second, state);  // a probe may be left
        without_copy += second->reused_blob_count == 0 ? 1 : 0;
      }
      ExpectThere(SaveThere(state, Options(), series).value(), state);
      if (!is_met || HasFailure()) break;
    }
  }
  EXPECT_GT(without_copy, 3);
}

}  // namespace
}  // namespace sealpoint::testing
