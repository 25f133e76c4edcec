// SPDX-License-Identifier: Apache-2.0
//
// Ids that are not unique, as from a bad source of randomness: a file of the same name exists when
// one is to be made. It belongs to another attempt and is never overwritten or removed (R-CMT-14,
// R-CMT-15).
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/series.h"
#include "tests/faults/tiny_state.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::testing {
namespace {

constexpr TinyState kState{.generation = 5};
constexpr const char* kDir = "run/ckpt";

class IdClashTest : public ::testing::TestWithParam<std::string> {
 protected:
  // A file appears just before the first one whose name ends in `suffix` is made.
  void LetAnotherTakeTheName(const std::string& suffix) {
    storage_->SetHook([this, suffix](StorageOp op, std::string_view name) {
      if (op != StorageOp::kCreate || !name.ends_with(suffix) || !taken_.empty()) return;
      taken_ = name;
      ReplaceFile(*memory_, kDir, taken_, &theirs_);
    });
  }
  // Finished blobs stay while a file is there that may be the index or the marker of their attempt.
  void ExpectUntouched(const Status& status, bool blobs_stay = false) {
    EXPECT_THAT(status, HasCode(Code::kAlreadyExists));
    const std::vector<std::string> names = FileNames(*memory_, kDir);
    if (blobs_stay) {
      EXPECT_THAT(names, ::testing::Contains(taken_));
      EXPECT_GT(names.size(), 1U);
    } else {
      EXPECT_THAT(names, ::testing::ElementsAre(taken_)) << "own ones are gone";
    }
    EXPECT_EQ(ReadWholeFile(*memory_, kDir, taken_), theirs_);
  }

  const Bytes theirs_ = NoiseBytes(1, 700);
  const std::shared_ptr<Storage> memory_ = MemoryStorage();
  const std::shared_ptr<FailingStorage> storage_ = std::make_shared<FailingStorage>(memory_);
  std::string taken_;
};

class HandIdClashTest : public IdClashTest {};

TEST_P(HandIdClashTest, BlobsAndCommit) {
  LetAnotherTakeTheName(GetParam());
  const auto engine = SmallEngine(storage_);
  ExpectUntouched(SaveByHand(*engine, kDir, kState).status(), GetParam() != ".blob");
  EXPECT_TRUE(SaveByHand(*engine, "run/again", kState).ok());
}

TEST_P(IdClashTest, CollectiveSave) {
  LetAnotherTakeTheName(GetParam());
  const auto engine = SmallEngine(storage_);
  const auto comm = SelfCommunicator();
  const auto saver = Saver::Create(*engine, *comm).value();
  ExpectUntouched(SaveState(*saver, SaveTarget::Directory(kDir), kState, 0, 1).status());
  EXPECT_TRUE(SaveState(*saver, SaveTarget::Directory("run/again"), kState, 0, 1).ok());
}

std::string KindOfName(const ::testing::TestParamInfo<std::string>& test) {
  return test.param.substr(1);
}
INSTANTIATE_TEST_SUITE_P(Names, HandIdClashTest, ::testing::Values(".blob", ".index", ".commit"),
                         KindOfName);
// Ranks share a probe, too.
INSTANTIATE_TEST_SUITE_P(Names, IdClashTest,
                         ::testing::Values(".blob", ".index", ".commit", ".shared"), KindOfName);

TEST_F(IdClashTest, VoidMarker) {
  ASSERT_TRUE(memory_->CreateDirectories(kDir).ok());
  LetAnotherTakeTheName(".commit");
  ExpectUntouched(PublishVoidMarker(*storage_, kDir));
}

}  // namespace
}  // namespace sealpoint::testing
