// SPDX-License-Identifier: Apache-2.0
//
// Ranks that stay away, on threads.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "sealpoint/verify.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/save_job.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(SaveDeadlineTest, WaitsNoLongerForARankThatNeverComes) {
  static constexpr auto kDeadline = std::chrono::milliseconds(300);
  const auto storage = MemoryStorage();
  auto communicators = ThreadCommunicators(3);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&storage, &comm = *communicators[static_cast<std::size_t>(rank)]] {
      const auto engine = SmallEngine(storage);
      const auto saver = Saver::Create(*engine, comm, {.deadline = kDeadline}).value();
      const Declaration nothing;
      const Sources sources(nothing);
      const auto save = [&] {
        return saver->Save(SaveTarget::Directory("ckpt"), {.step = 7}, sources).status();
      };
      const Status late = save();
      EXPECT_THAT(late, HasCode(Code::kTimeout));
      EXPECT_THAT(late.message(), StartsWith("save of step 7 to ckpt, phase preflight: "));
      EXPECT_EQ(late.place().rank, comm.rank());
      EXPECT_FALSE(OutcomeIsUnknown(late));
      const Status further = save();
      EXPECT_THAT(further, HasCode(Code::kTimeout));
      EXPECT_THAT(further.message(), HasSubstr("the saver cannot be used"));
      const auto another = Saver::Create(*engine, comm, {.deadline = kDeadline}).value();
      const Status in_background =
          another->SaveAsync(SaveTarget::Directory("ckpt"), {.step = 7}, sources).status();
      EXPECT_THAT(in_background.message(), StartsWith("save of step 7 to ckpt, phase plan: "));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

// The state is larger than the budget, so that the thread in the background asks for it, once the
// preflight is over, which takes longer than the save may. Nobody gives it any more.
TEST(SaveDeadlineTest, ASaverEndsThoughItsSaveNeverTookTheState) {
  const auto storage = std::make_shared<FailingStorage>(MemoryStorage());
  std::promise<void> answer;
  const std::shared_future<void> answered = answer.get_future().share();
  storage->SetHook([&](StorageOp op, std::string_view) {
    if (op == StorageOp::kProbe) answered.wait();
  });
  const auto engine =
      Engine::Create(
          {.memory_budget_bytes = kMiB, .staging_buffer_size_bytes = 16 * kKiB, .storage = storage})
          .value();
  const auto comm = SelfCommunicator();
  auto saver =
      Saver::Create(*engine, *comm, {.background_deadline = std::chrono::milliseconds(200)})
          .value();
  Declaration declaration;
  declaration.Add({.tensor = ByteTensor("w", 4 * kMiB)}).value();
  Sources sources(declaration);
  const Bytes content(4 * kMiB);
  ASSERT_TRUE(sources.Bind("w", MemoryView::Host(content)).ok());
  const auto pending = saver->SaveAsync(SaveTarget::Directory("ckpt"), {}, sources).value();
  EXPECT_THAT(pending->Wait().status(), HasCode(Code::kTimeout));
  answer.set_value();
  saver.reset();
}

// Number of gathers of a save. The last one is of the summaries. A foreground save gathers the
// wanted bytes first; a background save knows them in the preflight.
int GatherCount() { return SavesInBackground() ? 1 : 2; }

// The last rank's summaries arrive, but it does not learn so: rank 0 commits, and the last rank
// must leave its blob alone.
TEST(SaveDeadlineTest, SummariesThatLeftMayBeCommitted) {
  const auto begin = std::chrono::steady_clock::now();
  WithRanks(3, [](Communicator& comm) {
    SaveJob job(comm);
    if (job.is_last()) job.comm.BreakAfterGather(GatherCount());
    const auto info = job.Save(UsualDeclaration(job.comm));
    if (job.is_last()) {
      EXPECT_THAT(info.status(), FailsRule(Code::kTimeout, "R-CMT-07"));
      EXPECT_THAT(info.error().message(), HasSubstr(", phase agree: "));
      EXPECT_TRUE(OutcomeIsUnknown(info.status()));
      return;  // leaves the job, so that the others do not wait
    }
    if (job.rank() == 0) {
      EXPECT_TRUE(info.ok()) << info.error().ToString();
      EXPECT_EQ(FindDamage(job.posix, job.path("ckpt")), "");
    } else if (!info.ok()) {
      EXPECT_TRUE(OutcomeIsUnknown(info.error())) << info.error().ToString();
    }
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20))
      << "the others hear that the last rank left";
}

// Rank 0 itself has no summaries, so nothing can be published.
TEST(SaveDeadlineTest, WithoutSummariesRankZeroFails) {
  WithRanks(1, [](Communicator& comm) {
    SaveJob job(comm);
    job.comm.BreakAfterGather(GatherCount());
    const Status status = job.Save(UsualDeclaration(job.comm)).status();
    EXPECT_THAT(status, HasCode(Code::kTimeout));
    EXPECT_FALSE(OutcomeIsUnknown(status));
    EXPECT_THAT(FileNames(*job.posix, job.path("")), IsEmpty());
  });
}

}  // namespace
}  // namespace sealpoint::testing
