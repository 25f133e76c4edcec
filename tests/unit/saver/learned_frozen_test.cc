// SPDX-License-Identifier: Apache-2.0
//
// Tensors that the saver finds not to change: what is linked from when on, what leaves a group.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sealpoint/saver.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/unit/saver/frozen_fixture.h"

namespace sealpoint::testing {
namespace {

class LearnedFrozenTest : public FrozenTest {
 protected:
  static SaverOptions Learning() { return {.learn_frozen = true}; }
  std::unique_ptr<Engine> LargeEngine() const {
    return SmallEngine(storage_, BufferCountForSaves(8) > 8 ? 512 : 8);
  }
  // A large tensor and two small ones per rank, of which "adapter" is trained.
  static LoraState StateOf(int size) {
    LoraState state;
    for (auto& [name, tensor] : state.tensors) tensor.group.clear();
    state.Add("base.large", kLearnedGroupSizeMinBytes * static_cast<std::uint64_t>(size), "");
    return state;
  }
  // What each rank has of it.
  static void Train(LoraState& state) {
    for (std::byte& content : state.contents["adapter"])
      content = std::byte{static_cast<std::uint8_t>(std::to_integer<int>(content) + 1)};
  }
};

// What changes at save `changed_at` is what was saved, whichever save that is; and from the third
// on, what stays is linked, but for the save in which something leaves its group.
TEST_F(LearnedFrozenTest, AChangeAtAnySaveIsSaved) {
  for (const int size : {1, 3}) {
    for (int changed_at = 1; changed_at <= 7; ++changed_at) {
      SCOPED_TRACE(::testing::Message() << size << " ranks, changed at " << changed_at);
      const SaveTarget target =
          SaveTarget::InSeries("run-" + std::to_string(size * 10 + changed_at));
      WithRanks(size, [&](Communicator& comm) {
        const auto engine = LargeEngine();
        const auto saver = Saver::Create(*engine, comm, Learning()).value();
        LoraState state = StateOf(size);
        for (int save = 1; save <= 6; ++save) {
          Train(state);
          if (save == changed_at) state.contents["base.b"].back() ^= std::byte{1};
          const auto info = SaveOn(comm, *saver, state, target);
          ASSERT_TRUE(info.ok()) << info.error().ToString();
          if (comm.rank() == 0) ExpectHolds(*info, state);
          // The last rank holds what changes; at a change in the second save it learns the rest.
          const bool has_left = save == changed_at && save > 2;
          const auto linked = static_cast<std::uint64_t>(save < 3 ? 0 : size - (has_left ? 1 : 0));
          EXPECT_EQ(info->reused_blob_count, linked) << "save " << save;
        }
      });
    }
  }
}

// Another saver, as of a process that resumes, begins anew; another declaration, too.
TEST_F(LearnedFrozenTest, NothingIsKeptForANewSaverOrAnotherDeclaration) {
  const auto comm = SelfCommunicator();
  LoraState state = StateOf(1);
  std::vector<std::uint64_t> reused;
  const auto save = [&](Saver& saver) {
    Train(state);
    const CommitInfo info = SaveOn(*comm, saver, state, SaveTarget::InSeries("run")).value();
    ExpectHolds(info, state);
    reused.push_back(info.reused_blob_count);
  };
  for (const bool declares_more : {false, true}) {
    const auto engine = LargeEngine();
    const auto saver = Saver::Create(*engine, *comm, Learning()).value();
    if (declares_more) state.Add("new", 10, "");
    for (int i = 0; i < 4; ++i) save(*saver);
    state.Add("newer", declares_more ? 20 : 10, "");
    for (int i = 0; i < 3; ++i) save(*saver);
  }
  EXPECT_THAT(reused,
              ::testing::ElementsAre(0u, 0u, 1u, 1u, 0u, 0u, 1u, 0u, 0u, 1u, 1u, 0u, 0u, 1u));
}

// What is frozen later is found by the looks at the saves 4, 8, 16 ..., into a group of its own.
TEST_F(LearnedFrozenTest, WhatIsFrozenLaterIsFoundLater) {
  const auto comm = SelfCommunicator();
  const auto engine = LargeEngine();
  const auto saver = Saver::Create(*engine, *comm, Learning()).value();
  LoraState state = StateOf(1);
  state.Add("late", kLearnedGroupSizeMinBytes, "");
  std::vector<std::uint64_t> reused;
  for (int save = 1; save <= 10; ++save) {
    Train(state);
    if (save < 4) state.contents["late"][0] ^= std::byte{1};
    const CommitInfo info = SaveOn(*comm, *saver, state, SaveTarget::InSeries("run")).value();
    ExpectHolds(info, state);
    reused.push_back(info.reused_blob_count);
  }
  EXPECT_THAT(reused, ::testing::ElementsAre(0u, 0u, 1u, 1u, 1u, 1u, 1u, 1u, 2u, 2u));
}

// Beside groups that the caller calls frozen; of little, nothing is learned.
TEST_F(LearnedFrozenTest, WhatTheCallerKnowsIsNotLearned) {
  const auto comm = SelfCommunicator();
  const auto engine = LargeEngine();
  SaverOptions options = Options();
  options.learn_frozen = true;
  const auto saver = Saver::Create(*engine, *comm, options).value();
  LoraState state;
  state.Add("more", kLearnedGroupSizeMinBytes - 1, "");
  for (int save = 1; save <= 4; ++save) {
    Train(state);
    const CommitInfo info = SaveOn(*comm, *saver, state, SaveTarget::InSeries("run")).value();
    EXPECT_EQ(info.reused_blob_count, save == 1 ? 0u : 1u);
    ExpectHolds(info, state);
  }
}

TEST_F(LearnedFrozenTest, ItsGroupsAreNotThoseOfACaller) {
  LoraState state;
  state.Add("taken", 10, "sealpoint.learned.1");
  EXPECT_TRUE(Save(state, {}).ok());
  const auto refused = Save(state, Learning());
  EXPECT_THAT(refused.status(), HasCode(Code::kInvalidArgument));
  EXPECT_NE(refused.error().message().find("sealpoint.learned.1"), std::string::npos);
}

TEST_F(LearnedFrozenTest, AllRanksLearnOrNone) {
  WithRanks(2, [&](Communicator& comm) {
    const auto engine = LargeEngine();
    const SaverOptions options{.learn_frozen = comm.rank() == 1};
    const auto saver = Saver::Create(*engine, comm, options).value();
    const auto refused = SaveOn(comm, *saver, LoraState(), SaveTarget::InSeries("run"));
    EXPECT_THAT(refused.status(), FailsRule(Code::kInvalidArgument, "R-CMT-17"));
  });
}

}  // namespace
}  // namespace sealpoint::testing
