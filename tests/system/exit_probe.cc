// SPDX-License-Identifier: Apache-2.0
//
// Ends, or forks, while a save goes on in the background, on one rank of a job or alone:
//
//   exit_probe SERIES STEP HOW PHASE…
//
// HOW is done once the thread in the background is in PHASE, or once the save has ended without
// reaching it:
//   fork       a child destroys everything and ends; the save is committed. For each PHASE, with
//              the next step each
//   finalize   MPI is finalized, then the save is asked for its outcome, and all is destroyed
//   exit       exit(0), nothing is destroyed
//   exit-all   exit(0), which destroys everything
//   SIGTERM, SIGABRT
//
// Prints one line of JSON per rank and PHASE that it survives. Exit status: 0, or 1 if something
// was not as it must be.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "sealpoint/saver.h"
#include "tests/system/probe_ranks.h"
#include "tests/system/probe_state.h"

namespace sealpoint::testing {
namespace {

// A process that is killed dies before the thread in the background goes on; all others are at work
// then.
constexpr std::chrono::milliseconds kStay(5);
constexpr std::chrono::milliseconds kStayOfKilled(2000);
constexpr std::uint64_t kRowCount = 24;

// All library objects of a training program. Destroyed in the order of a careless program: the
// pending save last.
class Job {
 public:
  Job(int argc, char** argv)
      : comm_(BeginRank(argc, argv)),
        series_(argv[1]),
        stay_(std::string_view(argv[3]).starts_with("SIG") ? kStayOfKilled : kStay) {
    engine_ = Engine::Create({.memory_budget_bytes = kMiB, .staging_buffer_size_bytes = 16 * kKiB})
                  .value();
    saver_ = Saver::Create(*engine_, *comm_,
                           {.deadline = std::chrono::seconds(20),
                            .on_progress = [this](const PhaseEvent& event) { OnPhase(event); }})
                 .value();
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() {
    saver_.reset();
    engine_.reset();
    comm_.reset();
    pending_.reset();
  }

  int rank() const { return comm_->rank(); }
  PendingSave& pending() { return *pending_; }

  // Begins a save and returns when the background is in the phase.
  void SaveUntil(std::uint64_t step, std::string_view phase) {
    phase_ = phase;
    is_there_ = false;
    const ProbeState state(comm_->rank(), comm_->size(), kRowCount, step);
    pending_ =
        saver_->SaveAsync(SaveTarget::InSeries(series_), {.step = step}, state.sources()).value();
    while (!is_there_ && pending_->Poll() == SaveState::kRunning) std::this_thread::yield();
  }

 private:
  void OnPhase(const PhaseEvent& event) {
    if (event.kind != PhaseEvent::Kind::kBegin || PhaseName(event.phase) != phase_) return;
    is_there_ = true;
    std::this_thread::sleep_for(stay_);
  }

  std::unique_ptr<Communicator> comm_;
  const std::string series_;
  const std::chrono::milliseconds stay_;
  std::string phase_;  // changes only between two saves
  std::atomic<bool> is_there_ = false;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<PendingSave> pending_;
};

std::unique_ptr<Job> job;  // exit destroys it

void PrintOutcome(std::uint64_t step, std::string_view phase, const Status& outcome) {
  const std::string line =
      "{\"rank\": " + std::to_string(job->rank()) + ", \"step\": " + std::to_string(step) +
      ", \"phase\": \"" + std::string(phase) + "\", \"code\": \"" +
      std::string(CodeName(outcome.code())) +
      "\", \"unknown\": " + (OutcomeIsUnknown(outcome) ? "true" : "false") + "}\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

// True if the child ended well.
bool Fork() {
  const pid_t child = fork();
  if (child == 0) {
    const bool is_refused = job->pending().Poll() == SaveState::kFailed &&
                            job->pending().Wait().error().code() == Code::kInvalidArgument;
    job.reset();
    _exit(is_refused ? 0 : 1);
  }
  int status = -1;
  for (int ms = 0; ms < 20000; ++ms) {
    if (waitpid(child, &status, WNOHANG) == child) return status == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(child, SIGKILL);
  return false;
}

bool RunOne(std::uint64_t step, std::string_view how, std::string_view phase) {
  job->SaveUntil(step, phase);
  bool is_right = true;
  if (how == "fork") is_right = Fork();
  if (how == "finalize") EndRanks();
  if (how == "exit") static_cast<void>(job.release());
  if (how.starts_with("exit")) std::exit(0);
  if (how == "SIGTERM") std::raise(SIGTERM);
  if (how == "SIGABRT") std::abort();
  while (how == "finalize" && job->pending().Poll() == SaveState::kRunning) {
    std::this_thread::yield();
  }
  PrintOutcome(step, phase, job->pending().Wait().status());
  return is_right;
}

}  // namespace
}  // namespace sealpoint::testing

int main(int argc, char** argv) {
  using namespace sealpoint::testing;
  if (argc < 5) return 64;
  job = std::make_unique<Job>(argc, argv);
  const std::string_view how = argv[3];
  bool is_right = true;
  std::uint64_t step = std::stoull(argv[2]);
  for (int i = 4; i < argc; ++i) is_right = RunOne(step++, how, argv[i]) && is_right;
  job.reset();
  if (how == "fork") EndRanks();
  return is_right ? 0 : 1;
}
