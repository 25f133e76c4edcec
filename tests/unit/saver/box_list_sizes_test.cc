// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/box_list_sizes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "lib/saver/check_declarations.h"
#include "tests/support/ranks/forged_communicator.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

using internal::saver::AllFitBoxLists;
using internal::saver::FastCheckDeclarations;
using internal::saver::MakeSavePlan;
using internal::saver::SavePlan;

// Two ranks with three shards each: of one tensor, or of two.
bool AddsUp(bool is_one_tensor, std::uint64_t shard_count_max) {
  std::atomic<int> count{0};
  WithRanks(2, [&](Communicator& comm) {
    const auto rank = static_cast<std::uint64_t>(comm.rank());
    const std::uint64_t begin = is_one_tensor ? 3 * rank : 0;
    const std::string name = is_one_tensor || rank == 0 ? "a" : "b";
    Declaration declaration;
    for (std::uint64_t i = begin; i < begin + 3; ++i) {
      declaration
          .Add({.tensor = ByteTensor(name, is_one_tensor ? 6 : 3), .region = Slice(i, i + 1)})
          .value();
    }
    const SavePlan plan = MakeSavePlan(declaration, comm.rank(), comm.size(), {}).value();
    const Limits limits{.box_list_shard_count_max = shard_count_max};
    if (FastCheckDeclarations(comm, declaration, plan, {}, limits).value()) ++count;
  });
  EXPECT_NE(count, 1) << "the ranks differ";
  return count == 2;
}

TEST(BoxListSizes, AreCountedForEachTensor) {
  EXPECT_TRUE(AddsUp(true, 6));
  EXPECT_FALSE(AddsUp(true, 5));
  EXPECT_TRUE(AddsUp(false, 5)) << "six shards, three of each tensor";
  EXPECT_TRUE(AddsUp(false, 3));
  EXPECT_FALSE(AddsUp(false, 2));
}

TEST(BoxListSizes, OfAMalformedMessageFitNothing) {
  ForgedCommunicator comm(std::vector<Bytes>{Bytes(3, std::byte{0xff})});
  EXPECT_FALSE(AllFitBoxLists(comm, Declaration(), SavePlan(), Limits()).value());
}

TEST(BoxListSizes, FailWhereTheExchangeFails) {
  ForgedCommunicator comm(Status(Code::kTimeout, "late"));
  EXPECT_THAT(AllFitBoxLists(comm, Declaration(), SavePlan(), Limits()).status(),
              HasCode(Code::kTimeout));
}

}  // namespace
}  // namespace sealpoint::testing
