// SPDX-License-Identifier: Apache-2.0
//
// The counterexamples of spec/model/objects.pml, played over an object store in memory: attempts
// without blobs in one directory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "lib/format/marker.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/commit.h"
#include "sealpoint/object_store.h"
#include "sealpoint/series.h"
#include "tests/crash/counterexample_rows.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/memory_object_store.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

const std::string kSeries = "mem://bucket/run";
const std::string kName = "step-000000000001-0a0b0c0d";
const std::string kPath = kSeries + "/" + kName;
// In a commit, a listing, three requests of the probe and the index come before the marker.
constexpr std::uint64_t kMarkerRequest = 5;

class ObjectsCounterexample : public ::testing::Test {
 protected:
  ObjectsCounterexample() { EXPECT_TRUE(storage_->CreateDirectories(kPath).ok()); }

  Status CommitAs(std::uint8_t attempt) {
    return Commit(*storage_, kPath, {.attempt = MiniSpec::MakeId(attempt), .allow_empty = true}, {})
        .status();
  }
  // A step of a committer that leaves another one out.
  Status PutMarker(std::uint8_t attempt, format::MarkerKind kind = format::MarkerKind::kCommit) {
    const auto marker = format::EncodeMarker(
        {.kind = kind, .attempt = MiniSpec::MakeId(attempt), .sequence = 1, .index_size = 128});
    return Folder()->PutIfAbsent("COMMIT", marker);
  }
  std::unique_ptr<Directory> Folder() { return storage_->OpenDirectory(kPath).value(); }
  // The attempt of the commit marker that a reader sees when nothing is under way any more; 0:
  // there is none.
  int Attempt() {
    store_->Settle();
    const auto bytes = Folder()->OpenForRead("COMMIT", IoMode::kBuffered);
    if (!bytes.ok()) return 0;
    const Bytes content = ReadWholeFile(*storage_, kPath, "COMMIT");
    const auto marker = format::DecodeMarker(content).value();
    return marker.kind == format::MarkerKind::kVoid ? 0 : static_cast<int>(marker.attempt.bytes[0]);
  }
  bool IsDamaged() {
    const auto opened = Checkpoint::Open(kPath, {.storage = storage_});
    return opened.error().code() == Code::kIncomplete || opened.error().code() == Code::kCorrupt;
  }
  void StartAnew() {
    for (const auto& [key, content] : store_->Objects()) {
      EXPECT_TRUE(store_->Delete({&key, 1}).ok());
    }
  }
  void TearDown() override {
    const CounterexampleRow* const row = RowOfRunningTest();
    ASSERT_NE(row, nullptr) << "no row of counterexamples.md has this name";
    NotePlayed(*row, true, !row->is_excluded);
  }

  const std::shared_ptr<MemoryObjectStore> store_ = std::make_shared<MemoryObjectStore>();
  const std::shared_ptr<Storage> storage_ = ObjectStorage(store_).value();
};

TEST_F(ObjectsCounterexample, not_read_back) {
  store_->FailAt(0, Trouble::kLostReply);
  EXPECT_FALSE(PutMarker(1).ok());
  EXPECT_EQ(Attempt(), 1) << "reported failed, and its marker is there";
  StartAnew();
  store_->FailAt(kMarkerRequest, Trouble::kLostReply);
  EXPECT_TRUE(CommitAs(1).ok());
  EXPECT_EQ(Attempt(), 1);
}

TEST_F(ObjectsCounterexample, not_settled) {
  store_->delay = 1000;
  store_->FailAt(0, Trouble::kDelayed);
  EXPECT_FALSE(PutMarker(1).ok());
  EXPECT_THAT(FileNames(*storage_, kPath), ::testing::IsEmpty());
  EXPECT_EQ(Attempt(), 1) << "reported failed, and its marker is there";
  StartAnew();
  store_->FailAt(kMarkerRequest, Trouble::kDelayed);
  EXPECT_TRUE(CommitAs(1).ok()) << "it is put once more, under the same condition";
  EXPECT_EQ(Attempt(), 1);
}

TEST_F(ObjectsCounterexample, settling_not_read_back) {
  store_->delay = 3;  // it comes behind the look: here behind two openings
  store_->FailAt(0, Trouble::kDelayed);
  EXPECT_FALSE(PutMarker(1).ok());
  EXPECT_FALSE(Folder()->Stat("COMMIT").ok());
  EXPECT_FALSE(PutMarker(1, format::MarkerKind::kVoid).ok());
  EXPECT_EQ(Attempt(), 1) << "reported failed, and its marker is there";
  StartAnew();
  store_->delay = 2;
  store_->FailAt(kMarkerRequest, Trouble::kDelayed);
  EXPECT_TRUE(CommitAs(1).ok());
  EXPECT_EQ(Attempt(), 1);
}

TEST_F(ObjectsCounterexample, index_after_marker) {
  EXPECT_TRUE(PutMarker(1).ok());
  EXPECT_TRUE(IsDamaged());
  for (std::uint64_t i = 0; i <= kMarkerRequest + 1; ++i) {
    StartAnew();
    store_->FailAt(i, Trouble::kDead);
    static_cast<void>(CommitAs(1));
    store_->Settle();
    EXPECT_FALSE(IsDamaged()) << i;
  }
}

TEST_F(ObjectsCounterexample, any_marker_is_own) {
  EXPECT_TRUE(PutMarker(1).ok());
  EXPECT_EQ(PutMarker(2).code(), Code::kAlreadyExists);
  EXPECT_EQ(Attempt(), 1) << "what attempt 2 takes for its own";
  StartAnew();
  store_->hook_on = "/COMMIT";
  store_->hook = [this] { EXPECT_TRUE(CommitAs(1).ok()); };
  EXPECT_THAT(CommitAs(2), FailsRule(Code::kAlreadyExists, "R-CMT-01"));
  EXPECT_EQ(Attempt(), 1);
}

TEST_F(ObjectsCounterexample, cleaned_without_void) {
  EXPECT_TRUE(CommitAs(1).ok());
  const Bytes marker = ReadWholeFile(*storage_, kPath, "COMMIT");
  StartAnew();  // all that the clean-up finds, before the marker comes
  EXPECT_TRUE(Folder()->PutIfAbsent("COMMIT", marker).ok());
  EXPECT_TRUE(IsDamaged());
  StartAnew();
  store_->hook_on = "/COMMIT";
  store_->hook = [this] { EXPECT_TRUE(Series(kSeries, storage_).RemoveUncommitted(kName).ok()); };
  EXPECT_THAT(CommitAs(1), FailsRule(Code::kAlreadyExists, "R-CMT-01"));
  EXPECT_EQ(Attempt(), 0);
}

TEST_F(ObjectsCounterexample, condition_ignored) {
  store_->ignores_condition = true;
  EXPECT_TRUE(PutMarker(1).ok());
  EXPECT_TRUE(PutMarker(2).ok());
  EXPECT_EQ(Attempt(), 2) << "1 was reported committed";
  StartAnew();
  EXPECT_THAT(CommitAs(1), FailsRule(Code::kUnsupported, "R-CMT-04"));
}

}  // namespace
}  // namespace sealpoint::testing
