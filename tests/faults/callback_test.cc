// SPDX-License-Identifier: Apache-2.0
//
// A callback of the caller throws, at each of its calls: the operation that it observes is
// cancelled with one error, on all ranks, or was done already. Nothing is half done.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/faults/tiny_state.h"
#include "tests/support/ranks/with_ranks.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kDir = "run/ckpt";

// A callback that throws at its n-th call.
PhaseCallback ThrowAt(int nth, int& calls) {
  return [nth, &calls](const PhaseEvent&) {
    if (++calls == nth) throw std::runtime_error("thrown by a test");
  };
}

void ExpectCancelledOrWhole(const std::shared_ptr<Storage>& memory, const TinyState& state,
                            const Status& status) {
  if (status.ok()) {
    EXPECT_EQ(FindDifference(memory, kDir, state), "");
    return;
  }
  EXPECT_THAT(status, HasCode(Code::kCancelled));
  EXPECT_THAT(status.message(), HasSubstr("thrown by a test"));
  EXPECT_THAT(FileNames(*memory, kDir), IsEmpty());
}

TEST(CallbackTest, ACommitIsCancelledOrDone) {
  const TinyState state;
  int calls = 0;
  int cancelled = 0;
  for (int nth = 1; calls >= nth - 1; ++nth) {
    const auto memory = MemoryStorage();
    calls = 0;
    const Status status =
        SaveByHand(*SmallEngine(memory), kDir, state, {.on_progress = ThrowAt(nth, calls)})
            .status();
    ExpectCancelledOrWhole(memory, state, status);
    cancelled += status.ok() ? 0 : 1;
  }
  EXPECT_GT(cancelled, 5);
}

// Returns whether the callback threw; counts saves that it cancelled.
bool CheckCollectiveSave(int rank, int nth, int& cancelled) {
  const TinyState state{.rank_count = 3};
  const auto memory = MemoryStorage();
  std::vector<Status> outcomes(3);
  bool has_thrown = false;
  WithRanks(3, [&](Communicator& comm) {
    int calls = 0;
    SaverOptions options{.deadline = std::chrono::minutes(1)};
    if (comm.rank() == rank) options.on_progress = ThrowAt(nth, calls);
    const auto engine = SmallEngine(memory);
    const auto saver = Saver::Create(*engine, comm, options).value();
    outcomes[static_cast<std::size_t>(comm.rank())] =
        SaveState(*saver, SaveTarget::Directory(kDir), state, comm.rank(), 1).status();
    if (comm.rank() == rank) has_thrown = calls >= nth;
    calls = nth;  // it throws no more
    EXPECT_TRUE(SaveState(*saver, SaveTarget::Directory("run/next"), state, comm.rank(), 2).ok());
  });
  for (const Status& other : outcomes) EXPECT_EQ(other, outcomes[0]);
  ExpectCancelledOrWhole(memory, state, outcomes[0]);
  EXPECT_TRUE(outcomes[0].ok() || outcomes[0].place().rank == rank);
  cancelled += outcomes[0].ok() ? 0 : 1;
  return has_thrown;
}

TEST(CallbackTest, ACollectiveSaveIsCancelledOnAllRanksOrDone) {
  for (const int rank : {0, 2}) {
    int cancelled = 0;
    for (int nth = 1; !HasFailure(); ++nth) {
      SCOPED_TRACE("rank " + std::to_string(rank) + ", call " + std::to_string(nth));
      if (!CheckCollectiveSave(rank, nth, cancelled)) break;
    }
    EXPECT_GT(cancelled, 8) << "up to the agreement";
  }
}

TEST(CallbackTest, ALoadIsCancelled) {
  const auto memory = MemoryStorage();
  ASSERT_TRUE(SaveByHand(*SmallEngine(memory), kDir, TinyState()).ok());
  const auto checkpoint = OpenFrom(memory, kDir);
  Bytes bytes(checkpoint->FindTensor("w")->raw_bytes);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Host(bytes));
  int calls = 0;
  for (int nth = 1; calls >= nth - 1; ++nth) {
    calls = 0;
    const Status status = checkpoint
                              ->Load(request, LoadContract::Partial(),
                                     {.threads = 2, .on_progress = ThrowAt(nth, calls)})
                              .status();
    // The callback of an end that was reached all the same may be the last.
    EXPECT_TRUE(calls < nth || status.code() == Code::kCancelled) << status.ToString();
  }
  EXPECT_EQ(bytes, TinyState().Content("w"));
}

}  // namespace
}  // namespace sealpoint::testing
