// SPDX-License-Identifier: Apache-2.0
//
// What only saves in the background do; the tests of saves run over them as well (save_in_mode.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sealpoint/series.h"
#include "tests/support/ranks/forged_communicator.h"
#include "tests/support/ranks/watched_communicator.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/save_job.h"

namespace sealpoint::testing {
namespace {

using ::testing::AnyOf;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::uint64_t kSliceSize = 100000;

// A state of one tensor, of which each rank holds a slice, and how it is saved.
class Trainer {
 public:
  explicit Trainer(SaveJob& job, int buffer_count, SaverOptions options = {})
      : job_(job), engine_(SmallEngine(job.storage, buffer_count, 16 * kKiB)) {
    if (options.deadline == kDefaultDeadline) options.deadline = std::chrono::minutes(1);
    if (options.background_deadline == kDefaultBackgroundDeadline) {
      options.background_deadline = std::chrono::minutes(1);
    }
    saver_ = Saver::Create(*engine_, job.comm, std::move(options)).value();
    const auto rank = static_cast<std::uint64_t>(job.rank());
    const auto size = static_cast<std::uint64_t>(job.size());
    declaration_
        .Add({.tensor = ByteTensor("w", size * kSliceSize),
              .region = Slice(rank * kSliceSize, (rank + 1) * kSliceSize)})
        .value();
  }

  // Fills the state with bytes of `step`, begins to save it, and overwrites it.
  Result<std::unique_ptr<PendingSave>> Begin(std::uint64_t step) {
    std::fill(state_.begin(), state_.end(), static_cast<std::byte>(step));
    Sources sources(declaration_);
    EXPECT_TRUE(sources.Bind("w", MemoryView::Host(state_)).ok());
    auto pending =
        saver_->SaveAsync(SaveTarget::InSeries(job_.path("run")), {.step = step}, sources);
    std::fill(state_.begin(), state_.end(), std::byte{0xee});
    return pending;
  }

  std::string FindDifference(const CommitInfo& info) const {
    const std::string damage = FindDamage(job_.posix, info.directory);
    if (!damage.empty()) return damage;
    const Bytes wanted(kSliceSize * static_cast<std::uint64_t>(job_.size()),
                       static_cast<std::byte>(info.step));
    const auto checkpoint = OpenFrom(job_.posix, info.directory);
    return LoadWhole(*checkpoint, "w") == wanted ? "" : "other bytes than at the snapshot";
  }

  EngineStats stats() const { return engine_->stats(); }
  Saver& saver() { return *saver_; }
  void DestroySaver() { saver_.reset(); }

 private:
  SaveJob& job_;
  const std::unique_ptr<Engine> engine_;
  Declaration declaration_;
  Bytes state_ = Bytes(kSliceSize);
  std::unique_ptr<Saver> saver_;
};

constexpr int kEnough = 32;  // buffers, for several states
constexpr int kTooFew = 3;   // for one

TEST(SaveAsyncTest, StoresWhatTheSourcesHeldWhenItReturned) {
  OnJobs([](SaveJob& job) {
    for (const int buffers : {kEnough, kTooFew}) {
      Trainer trainer(job, buffers);
      auto pending = trainer.Begin(7);
      ASSERT_TRUE(pending.ok()) << pending.error().ToString();
      const auto info = (*pending)->Wait();
      ASSERT_TRUE(info.ok()) << info.error().ToString();
      EXPECT_EQ(trainer.FindDifference(*info), "");
      EXPECT_EQ((*pending)->Poll(), SaveState::kCommitted);
      EXPECT_EQ((*pending)->Wait()->attempt, info->attempt) << "may be asked again";
      job.Barrier();
    }
  });
}

// What is held is written, and told of, in the phase that is named so.
TEST(SaveAsyncTest, TellsHowMuchIsWritten) {
  OnJobs([](SaveJob& job) {
    std::atomic<bool> is_written_of = false;
    std::atomic<std::uint64_t> told = 0;
    std::atomic<std::uint64_t> last = 0;
    // The last write waits until it was told that there were others.
    std::atomic<int> writes = 0;
    job.storage->SetHook([&](StorageOp op, std::string_view name) {
      if (op != StorageOp::kWrite || name.find(".blob") == name.npos || ++writes < 3) return;
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!is_written_of && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    Trainer trainer(job, kEnough, {.on_progress = [&](const PhaseEvent& event) {
                      if (event.phase != Phase::kWriteBlobs) return;
                      last = event.bytes_done;
                      if (event.bytes_done == 0 || event.bytes_done >= kSliceSize) return;
                      told = event.bytes_done;
                      is_written_of = true;
                    }});
    EXPECT_TRUE(trainer.Begin(1).value()->Wait().ok());
    EXPECT_GT(told, 0u);
    EXPECT_LT(told, kSliceSize);
    EXPECT_EQ(last, kSliceSize);
    job.storage->Heal();
    job.Barrier();
  });
}

// With memory for the state nothing of the disk is waited for: the first operation on it blocks.
TEST(SaveAsyncTest, ReturnsWhileTheDiskStandsStill) {
  OnJobs([](SaveJob& job) {
    std::atomic<bool> is_open = false;
    job.storage->SetHook([&](StorageOp, std::string_view) {
      while (!is_open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    Trainer trainer(job, kEnough);
    auto first = trainer.Begin(1);
    auto second = trainer.Begin(2);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ((*first)->Poll(), SaveState::kRunning);
    is_open = true;
    EXPECT_TRUE((*second)->Wait().ok());
    EXPECT_EQ((*first)->Poll(), SaveState::kCommitted);
    job.storage->Heal();
  });
}

TEST(SaveAsyncTest, SavesAreCommittedInTheirOrder) {
  OnJobs([](SaveJob& job) {
    Trainer trainer(job, kEnough);
    std::vector<std::unique_ptr<PendingSave>> pending;
    for (std::uint64_t step = 1; step <= 4; ++step) {
      pending.push_back(trainer.Begin(step).value());
    }
    AttemptId parent{};
    for (std::uint64_t step = 1; step <= 4; ++step) {
      const auto info = pending[step - 1]->Wait();
      ASSERT_TRUE(info.ok()) << info.error().ToString();
      EXPECT_EQ(info->sequence, step);
      EXPECT_EQ(info->parent, parent);
      EXPECT_EQ(trainer.FindDifference(*info), "");
      parent = info->attempt;
    }
  });
}

// It needs no other rank's presence, and goes on by itself once all poll.
TEST(SaveAsyncTest, PollIsLocal) {
  OnJobs([](SaveJob& job) {
    Trainer trainer(job, kEnough);
    const auto pending = trainer.Begin(3).value();
    if (job.rank() == 0) {
      for (int i = 0; i < 100; ++i) static_cast<void>(pending->Poll());
    }
    job.Barrier();
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (pending->Poll() == SaveState::kRunning && std::chrono::steady_clock::now() < until) {
      std::this_thread::yield();
    }
    EXPECT_EQ(pending->Poll(), SaveState::kCommitted);
    job.Barrier();
  });
}

// Plan and snapshot are what training stands still for, and are measured as such, whatever the save
// waits for afterwards.
TEST(SaveAsyncTest, TellsEachPhaseOnTheThreadThatRunsIt) {
  OnJobs([](SaveJob& job) {
    for (const int buffers : {kEnough, kTooFew}) {
      const auto here = std::this_thread::get_id();
      std::mutex mutex;
      std::vector<Phase> seen;
      const auto look = [&](const PhaseEvent& event) {
        if (event.kind == PhaseEvent::Kind::kProgress) return;
        const std::lock_guard lock(mutex);
        if (event.phase == Phase::kWriteBlobs || event.phase == Phase::kSnapshot) {
          const bool is_end = event.kind == PhaseEvent::Kind::kEnd;
          EXPECT_EQ(event.bytes_done, is_end ? kSliceSize : 0u) << PhaseName(event.phase);
          EXPECT_EQ(event.bytes_total, kSliceSize);
        }
        seen.push_back(event.phase);
        const bool is_training = event.phase == Phase::kPlan || event.phase == Phase::kSnapshot;
        EXPECT_EQ(std::this_thread::get_id() == here, is_training) << PhaseName(event.phase);
        EXPECT_EQ(event.step, 7u);
      };
      Trainer trainer(job, buffers, {.on_progress = look});
      ASSERT_TRUE(trainer.Begin(7).value()->Wait().ok());
      EXPECT_EQ(seen.front(), Phase::kPlan);
      EXPECT_EQ(seen.back(), Phase::kVerdict);
      job.Barrier();
    }
  });
}

TEST(SaveAsyncTest, StaysWithinTheMemoryBudget) {
  OnJobs([](SaveJob& job) {
    for (const int buffers : {kEnough, kTooFew}) {
      Trainer trainer(job, buffers);
      std::vector<std::unique_ptr<PendingSave>> pending;
      for (std::uint64_t step = 1; step <= 6; ++step) {
        pending.push_back(trainer.Begin(step).value());
      }
      for (const auto& one : pending) EXPECT_TRUE(one->Wait().ok());
      EXPECT_LE(trainer.stats().mapped_bytes, static_cast<std::uint64_t>(buffers) * 16 * kKiB);
      job.Barrier();
    }
  });
}

TEST(SaveAsyncTest, FailsOnAllRanksAndTrainingGoesOn) {
  OnJobs([](SaveJob& job) {
    Trainer trainer(job, kEnough);
    if (job.is_last()) {
      job.storage->Fail(
          {.op = StorageOp::kSyncFile, .name = ".blob", .error = Status(Code::kIo, "disk")});
    }
    const auto failing = trainer.Begin(1).value();
    const auto next = trainer.Begin(2).value();
    const Status status = failing->Wait().status();
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_EQ(status.place().rank, job.size() - 1);
    job.ExpectSameOnAllRanks(status);
    EXPECT_EQ(failing->Poll(), SaveState::kFailed);
    // Nothing of the failed one is left, and the fault was for once.
    const auto info = next->Wait();
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    EXPECT_EQ(info->sequence, 1u);
    EXPECT_EQ(trainer.FindDifference(*info), "");
    EXPECT_EQ(FileNames(*job.posix, job.path("run")).size(), 1u);
    job.Barrier();
  });
}

// The slice of one rank is enough. The disk stands still, so that it does not come too late.
TEST(SaveAsyncTest, IsCancelledOnAllRanks) {
  OnJobs([](SaveJob& job) {
    std::atomic<bool> is_open = false;
    job.storage->SetHook([&](StorageOp, std::string_view) {
      while (!is_open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    Trainer trainer(job, kEnough);
    const auto pending = trainer.Begin(1).value();
    if (job.is_last()) pending->Cancel();
    job.Barrier();
    is_open = true;
    const Status status = pending->Wait().status();
    EXPECT_THAT(status, FailsRule(Code::kCancelled, "R-CMT-30"));
    job.ExpectSameOnAllRanks(status);
    job.Barrier();
    EXPECT_THAT(FileNames(*job.posix, job.path("run")), IsEmpty());
    job.storage->Heal();
    EXPECT_TRUE(trainer.Begin(2).value()->Wait().ok());
    job.Barrier();
  });
}

// What it held is free again: the disk stands still whenever one of them begins.
TEST(SaveAsyncTest, DestroyingItAbandonsIt) {
  OnJobs([](SaveJob& job) {
    std::atomic<bool> is_open = false;
    job.storage->SetHook([&](StorageOp, std::string_view) {
      while (!is_open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    Trainer trainer(job, kEnough);
    for (std::uint64_t round = 1; round <= 6; ++round) {
      is_open = false;
      trainer.Begin(2 * round).value().reset();
      job.Barrier();
      is_open = true;
      const auto info = trainer.Begin(2 * round + 1).value()->Wait();
      ASSERT_TRUE(info.ok()) << info.error().ToString();
      EXPECT_EQ(info->sequence, round) << "nobody asked for the others any more";
      job.Barrier();
    }
    job.storage->Heal();
    job.Barrier();
  });
}

// The saver goes while saves are under way: their outcomes are errors, and nothing hangs.
TEST(SaveAsyncTest, ADestroyedSaverGivesUp) {
  OnJobs([](SaveJob& job) {
    for (const int buffers : {kEnough, kTooFew}) {
      Trainer trainer(job, buffers);
      auto first = trainer.Begin(1).value();
      auto second = trainer.Begin(2).value();
      trainer.DestroySaver();
      for (const auto* const pending : {&first, &second}) {
        const auto outcome = (*pending)->Wait();
        if (outcome.ok()) {
          EXPECT_EQ(trainer.FindDifference(*outcome), "");
        } else {
          EXPECT_THAT(outcome.status(), AnyOf(HasCode(Code::kComm), HasCode(Code::kCancelled)));
        }
      }
      job.Barrier();
    }
  });
}

// Without other ranks nothing interrupts it but the slice itself.
TEST(SaveAsyncTest, ADestroyedSaverCancelsWhatIsUnderWay) {
  const auto storage = std::make_shared<FailingStorage>(MemoryStorage());
  std::atomic<bool> has_begun = false;
  std::atomic<bool> is_open = false;
  storage->SetHook([&](StorageOp, std::string_view) {
    has_begun = true;
    while (!is_open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  const auto engine = SmallEngine(storage, kEnough);
  const auto self = SelfCommunicator();
  WatchedCommunicator comm(*self);
  auto saver = Saver::Create(*engine, comm).value();
  const Declaration nothing;
  const Sources sources(nothing);
  const auto pending =
      saver->SaveAsync(SaveTarget::Directory("ckpt"), {.allow_empty = true}, sources).value();
  while (!has_begun) std::this_thread::yield();
  std::thread destroyer([&] { saver.reset(); });
  while (!comm.was_interrupted()) std::this_thread::yield();  // the last that is done to the save
  is_open = true;
  destroyer.join();
  EXPECT_THAT(pending->Wait().status(), HasCode(Code::kCancelled));
}

TEST(SaveAsyncTest, AForegroundSaveWaitsForThePendingOnes) {
  OnJobs([](SaveJob& job) {
    Trainer trainer(job, kEnough);
    const auto pending = trainer.Begin(1).value();
    Declaration nothing;
    const Sources sources(nothing);
    const auto info = trainer.saver().Save(SaveTarget::InSeries(job.path("run")),
                                           {.step = 2, .allow_empty = true}, sources);
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    EXPECT_EQ(pending->Poll(), SaveState::kCommitted);
    EXPECT_EQ(info->parent, pending->Wait()->attempt);
    job.Barrier();
  });
}

// Likewise, and nobody waits for that save: the next one does not wait for ever either.
TEST(SaveAsyncTest, TheNextSaveWaitsNoLongerThanTheDeadlineOfTheOneBefore) {
  OnJobs([](SaveJob& job) {
    std::atomic<bool> is_open = false;
    const auto longest = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    job.storage->SetHook([&](StorageOp op, std::string_view) {
      while (op == StorageOp::kSyncFile && !is_open && std::chrono::steady_clock::now() < longest) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    Trainer trainer(job, kEnough, {.background_deadline = std::chrono::milliseconds(300)});
    const auto pending = trainer.Begin(1).value();
    const Declaration nothing;
    const Sources sources(nothing);
    const Status next =
        trainer.saver()
            .Save(SaveTarget::Directory(job.path("next")), {.allow_empty = true}, sources)
            .status();
    // Comm on a rank whose deadline had not passed when another one left.
    EXPECT_TRUE(next.code() == Code::kTimeout || next.code() == Code::kComm) << next.ToString();
    EXPECT_FALSE(OutcomeIsUnknown(next)) << "it did not begin";
    EXPECT_NE(pending->Poll(), SaveState::kRunning);
    is_open = true;
  });
}

// A file operation hangs on the last rank. Nobody waits for it longer than was said.
TEST(SaveAsyncTest, ADeadlineEndsTheWaitForADiskThatHangs) {
  OnJobs([](SaveJob& job) {
    std::atomic<bool> is_open = !job.is_last();
    const auto longest = std::chrono::steady_clock::now() + std::chrono::seconds(4);
    job.storage->SetHook([&](StorageOp op, std::string_view) {
      while (op == StorageOp::kSyncFile && !is_open && std::chrono::steady_clock::now() < longest) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    Trainer trainer(job, kEnough,
                    {.deadline = std::chrono::milliseconds(400),
                     .background_deadline = std::chrono::milliseconds(800)});
    const auto pending = trainer.Begin(1).value();
    const auto queued = trainer.Begin(2).value();
    const auto begin = std::chrono::steady_clock::now();
    const Status status = pending->Wait().status();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    EXPECT_EQ(status.code(), Code::kTimeout) << status.ToString();
    EXPECT_THAT(status.message(), StartsWith("save of step 1 to "));
    const Status not_begun = queued->Wait().status();
    EXPECT_EQ(not_begun.code(), Code::kTimeout) << not_begun.ToString();
    EXPECT_FALSE(OutcomeIsUnknown(not_begun)) << not_begun.ToString();
    const Status later = trainer.Begin(3).status();
    EXPECT_EQ(later.code(), Code::kTimeout) << "the ranks may be anywhere";
    EXPECT_FALSE(OutcomeIsUnknown(later)) << later.ToString();
    is_open = true;
    if (!job.is_last()) return;
    // The thread in the background learns something else when the disk goes on.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_THAT(trainer.Begin(3).status().message(), StartsWith("the saver cannot be used after "));
  });
}

TEST(SaveAsyncTest, NeedsACommunicatorWithDuplicates) {
  const auto engine = SmallEngine(MemoryStorage());
  ForgedCommunicator plain{std::vector<Bytes>()};
  const auto saver = Saver::Create(*engine, plain).value();
  const Declaration nothing;
  const Sources sources(nothing);
  const Status status = saver->SaveAsync(SaveTarget::Directory("x"), {}, sources).status();
  EXPECT_THAT(status, HasCode(Code::kUnsupported));
}

}  // namespace
}  // namespace sealpoint::testing
