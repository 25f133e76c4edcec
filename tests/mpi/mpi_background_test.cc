// SPDX-License-Identifier: Apache-2.0
//
// Background saves over MPI, with MPI_THREAD_MULTIPLE and without. By the profiling interface of
// MPI, the calls of the saver's thread are counted.
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sealpoint/mpi_communicator.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/save_job.h"

namespace {

using namespace std::chrono_literals;

std::thread::id main_thread;
std::atomic<int> calls_elsewhere{0};
std::atomic<bool> is_finalizing{false};
std::atomic<int> calls_after_finalize{0};

}  // namespace

extern "C" {

int MPI_Init_thread(int* argc, char*** argv, int /*required*/, int* provided) {
  main_thread = std::this_thread::get_id();
  return PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, provided);
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (std::this_thread::get_id() != main_thread) ++calls_elsewhere;
  if (is_finalizing) ++calls_after_finalize;
  return PMPI_Test(request, flag, status);
}

// The attribute is older than those of the library, so it is deleted after them.
static int OnFinalize(MPI_Comm, int, void*, void*) {
  is_finalizing = true;
  std::this_thread::sleep_for(50ms);
  return MPI_SUCCESS;
}

// A background thread waits for a rank that never comes when the program ends.
int MPI_Finalize() {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &OnFinalize, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  sealpoint::Status status;
  const auto comm = sealpoint::MpiCommunicator::Create(MPI_COMM_WORLD).value();
  const auto background = comm->DuplicateForBackground().value();
  const bool is_missing = comm->rank() == comm->size() - 1;
  std::thread thread([&] {
    if (!is_missing) status = background->communicator().Barrier();
  });
  std::this_thread::sleep_for(20ms);
  const int code = PMPI_Finalize();
  thread.join();
  const bool is_told = is_missing || status.message() == "MPI was finalized";
  if (is_told && calls_after_finalize == 0) return code;
  std::fprintf(stderr, "MPI_Finalize: %d calls after it, %s\n", calls_after_finalize.load(),
               status.ToString().c_str());
  std::_Exit(1);
}

}  // extern "C"

namespace sealpoint::testing {
namespace {

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A state of which each rank holds a slice.
class Trainer {
 public:
  explicit Trainer(SaveJob& job) : job_(job) {
    const auto rank = static_cast<std::uint64_t>(job.rank());
    const auto size = static_cast<std::uint64_t>(job.size());
    declaration_
        .Add({.tensor = ByteTensor("s", size * bytes_.size()),
              .region = Slice(rank * bytes_.size(), (rank + 1) * bytes_.size())})
        .value();
  }
  std::unique_ptr<PendingSave> Begin(const std::string& name) {
    Sources sources(declaration_);
    EXPECT_TRUE(sources.Bind("s", MemoryView::Host(bytes_)).ok());
    return job_.saver->SaveAsync(SaveTarget::Directory(job_.path(name)), {}, sources).value();
  }

 private:
  SaveJob& job_;
  const Bytes bytes_ = Bytes(1000);
  Declaration declaration_;
};

// The saves of a job whose library threads may not call MPI.
void WithPolls(const std::function<void(SaveJob&)>& body) {
  const auto comm =
      MpiCommunicator::Create(MPI_COMM_WORLD, {.background_thread_calls_mpi = false}).value();
  SaveJob job(*comm);
  body(job);
}

// In each step the ranks poll one after the other, so that no exchange finds all of them at once.
int CountPolls(SaveJob& job, PendingSave& pending, bool in_descending_order) {
  int polls = 0;
  for (std::uint64_t is_running = 1; is_running != 0; ++polls) {
    EXPECT_LT(polls, 60);
    if (polls >= 60) break;
    bool is_mine_running = false;
    for (int turn = 0; turn < job.size(); ++turn) {
      const int rank = in_descending_order ? job.size() - 1 - turn : turn;
      if (rank == job.rank()) is_mine_running = pending.Poll() == SaveState::kRunning;
      job.Barrier();
    }
    std::this_thread::sleep_for(200ms);  // the step; files are written meanwhile
    is_running = job.job.AllReduceMax({is_mine_running ? 1U : 0U}).value().front();
  }
  return polls;
}

TEST(MpiBackground, WithoutThreadsASaveNeedsFewPolls) {
  WithPolls([](SaveJob& job) {
    constexpr int kPollsMax = 11;  // 6 to 9 where the machine is idle
    Trainer trainer(job);
    for (const bool in_descending_order : {false, true}) {
      int fewest = 60;  // on a busy machine, writing a file can take longer than a step
      for (int attempt = 0; attempt < 4 && fewest > kPollsMax; ++attempt) {
        const auto pending = trainer.Begin((in_descending_order ? "descending" : "ascending") +
                                           std::to_string(attempt));
        EXPECT_FALSE(pending->ends_by_itself());
        calls_elsewhere = 0;
        const int polls = CountPolls(job, *pending, in_descending_order);
        fewest = std::min(fewest, polls);
        EXPECT_EQ(calls_elsewhere, 0);
        EXPECT_TRUE(pending->Wait().ok());
        if (job.rank() == 0) std::printf("%d ranks: %d polls\n", job.size(), polls);
      }
      EXPECT_LE(fewest, kPollsMax);
    }
  });
}

TEST(MpiBackground, TheOptionOfOneRankTurnsThreadsOff) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto comm =
      MpiCommunicator::Create(MPI_COMM_WORLD, {.background_thread_calls_mpi = rank != 0}).value();
  EXPECT_TRUE(comm->DuplicateForBackground().value()->needs_progress());
}

TEST(MpiBackground, WithThreadsASaveNeedsNoPoll) {
  OnJobs([](SaveJob& job) {
    calls_elsewhere = 0;
    Trainer trainer(job);
    const auto pending = trainer.Begin("ckpt");
    EXPECT_TRUE(pending->ends_by_itself());
    EXPECT_TRUE(pending->WaitFor(1min));
    EXPECT_EQ(pending->Poll(), SaveState::kCommitted);
    EXPECT_GT(calls_elsewhere, 0);
    job.Barrier();
  });
}

TEST(MpiBackground, AWaitingThreadIsQuiet) {
  OnJobs([](SaveJob& job) {
    std::atomic<bool> is_open = false;
    job.storage->SetHook([&](StorageOp, std::string_view) {
      while (!is_open) std::this_thread::sleep_for(10ms);
    });
    Trainer trainer(job);
    const auto pending = trainer.Begin("ckpt");
    job.Barrier();
    const double before = CpuSeconds();
    std::this_thread::sleep_for(1s);
    const double used = CpuSeconds() - before;
    if (job.is_last()) std::printf("%.1f ms of CPU in 1 s of waiting\n", used * 1e3);
    EXPECT_LT(used, 0.05);
    is_open = true;
    EXPECT_TRUE(pending->WaitFor(1min));
    job.Barrier();
    job.storage->Heal();
  });
}

// The last rank comes when the others have given up: one by its deadline, the others by
// interruption.
TEST(MpiBackground, ARankThatDoesNotComeEndsTheWait) {
  const auto comm = MpiCommunicator::Create(MPI_COMM_WORLD).value();
  if (comm->size() == 1) GTEST_SKIP() << "needs somebody to wait for";
  comm->set_deadline(300ms);
  const auto background = comm->DuplicateForBackground().value();
  comm->set_deadline(1min);
  if (comm->rank() < comm->size() - 1) {
    const bool is_interrupted = comm->rank() > 0;
    const auto begin = std::chrono::steady_clock::now();
    std::thread thread([&] {
      const Status status = background->communicator().Barrier();
      EXPECT_EQ(status.code(), is_interrupted ? Code::kComm : Code::kTimeout) << status.ToString();
      EXPECT_EQ(background->communicator().Barrier(), status) << "stays broken";
    });
    if (is_interrupted) background->Interrupt(Status(Code::kComm, "a rank left"));
    thread.join();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
  }
  EXPECT_TRUE(comm->Barrier().ok());
  if (comm->rank() == comm->size() - 1) background->Interrupt(Status(Code::kComm, "not used"));
}

}  // namespace
}  // namespace sealpoint::testing
