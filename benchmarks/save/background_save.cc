// SPDX-License-Identifier: Apache-2.0
//
// The cost of a save in the background for the training: how long training is blocked, compared
// with a plain copy of the same bytes; how much longer its steps take meanwhile; how much memory is
// used. Run under mpirun.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/common/mpi_main.h"
#include "benchmarks/common/paired.h"
#include "benchmarks/common/raw_file.h"
#include "benchmarks/common/together.h"
#include "sealpoint/mpi_communicator.h"
#include "sealpoint/saver.h"

namespace sealpoint::bench {
namespace {

struct Options {
  std::string directory = ".";
  std::uint64_t mib_per_rank = 256;
  std::uint64_t budget_mib = 320;
  int tensors = 16;
  int threads = 2;
  int rounds = 11;
};

// A stand-in for a training step: products of matrices that stay in the cache, for some
// milliseconds.
class Step {
 public:
  void Run() {
    for (int repeat = 0; repeat < 12; ++repeat) Multiply();
  }
  float result() const { return c_[0]; }

 private:
  static constexpr std::size_t kSize = 96;
  void Multiply() {
    for (std::size_t i = 0; i < kSize; ++i) {
      for (std::size_t k = 0; k < kSize; ++k) {
        const float a = a_[i * kSize + k];
        for (std::size_t j = 0; j < kSize; ++j) c_[i * kSize + j] += a * b_[k * kSize + j];
      }
    }
  }
  std::vector<float> a_ = std::vector<float>(kSize * kSize, 0.5F);
  std::vector<float> b_ = std::vector<float>(kSize * kSize, 0.25F);
  std::vector<float> c_ = std::vector<float>(kSize * kSize);
};

// The greatest resident size of this process so far.
double PeakMib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

struct Figures {
  PairedSeries stall{.name = "stall against a plain copy"};
  PairedSeries step{.name = "step beside a save"};
  std::vector<double> total_seconds{};
};

class Trainer {
 public:
  Trainer(Communicator& comm, const Options& options) : comm_(comm), options_(options) {
    const std::uint64_t size = options.mib_per_rank * kMiB;
    state_ = AllocateAligned(size, Pages::kHuge);
    copy_ = AllocateAligned(size, Pages::kHuge);
    for (std::uint64_t i = 0; i < size; ++i)
      state_[i] = static_cast<std::byte>(i * 2654435761U >> 13);
    memory_before_ = PeakMib();
    engine_ = Engine::Create({.memory_budget_bytes = options.budget_mib * kMiB,
                              .snapshot_thread_count = options.threads})
                  .value();
    saver_ = Saver::Create(*engine_, comm).value();
    const auto ranks = static_cast<std::uint64_t>(comm.size());
    const auto rank = static_cast<std::uint64_t>(comm.rank());
    const std::uint64_t each = size / static_cast<std::uint64_t>(options.tensors);
    for (int i = 0; i < options.tensors; ++i) {
      const TensorSpec tensor{
          .name = "layer." + std::to_string(i), .dtype = DType::kUInt8, .shape = {ranks, each}};
      declaration_
          .Add({.tensor = tensor, .region = Region::Of({.offset = {rank, 0}, .extent = {1, each}})})
          .value();
    }
  }

  void Round(Figures& figures, bool is_counted) {
    const std::uint64_t size = options_.mib_per_rank * kMiB;
    const double copy_seconds = TimeTogether(comm_, [&] { CopyPlainly(size); });
    std::vector<double> alone;
    for (int i = 0; i < 60; ++i) alone.push_back(TimeStep(nullptr));

    const std::string target = options_.directory + "/sealpoint-bench-background";
    if (comm_.rank() == 0) std::filesystem::remove_all(target);
    const Stopwatch whole;
    std::unique_ptr<PendingSave> pending;
    const double stall_seconds = TimeTogether(comm_, [&] { pending = Begin(target); });
    std::vector<double> beside;
    while (pending->Poll() == SaveState::kRunning) beside.push_back(TimeStep(pending.get()));
    const auto info = pending->Wait().value();
    const double total = whole.seconds();
    if (!comm_.Barrier().ok()) std::abort();
    if (!is_counted || beside.empty()) return;
    figures.stall.baseline_seconds.push_back(copy_seconds);
    figures.stall.candidate_seconds.push_back(stall_seconds);
    figures.step.baseline_seconds.push_back(Median(alone));
    figures.step.candidate_seconds.push_back(Median(beside));
    figures.total_seconds.push_back(total);
    last_report_ = info.report.ToString();
  }

  double memory_mib() const { return PeakMib() - memory_before_; }
  const std::string& last_report() const { return last_report_; }
  float result() const { return step_.result(); }

 private:
  // On as many threads as the snapshot.
  void CopyPlainly(std::uint64_t size) {
    const auto count = static_cast<std::uint64_t>(options_.threads);
    const auto copy = [&](std::uint64_t i) {
      const std::uint64_t begin = size / count * i;
      const std::uint64_t end = i + 1 == count ? size : size / count * (i + 1);
      std::memcpy(copy_.get() + begin, state_.get() + begin, end - begin);
    };
    std::vector<std::thread> others;
    for (std::uint64_t i = 1; i < count; ++i) others.emplace_back(copy, i);
    copy(0);
    for (std::thread& other : others) other.join();
  }
  std::unique_ptr<PendingSave> Begin(const std::string& target) {
    Sources sources(declaration_);
    const std::uint64_t each =
        options_.mib_per_rank * kMiB / static_cast<std::uint64_t>(options_.tensors);
    for (std::size_t i = 0; i < declaration_.tensors().size(); ++i) {
      if (!sources.Bind(i, MemoryView::Host(state_.get() + i * each, each)).ok()) std::abort();
    }
    return saver_->SaveAsync(SaveTarget::Directory(target), {.step = 1}, sources).value();
  }

  double TimeStep(PendingSave* pending) {
    const Stopwatch watch;
    step_.Run();
    if (pending != nullptr) static_cast<void>(pending->Poll());
    return watch.seconds();
  }

  Communicator& comm_;
  const Options options_;
  AlignedMemory state_;
  AlignedMemory copy_;
  double memory_before_ = 0;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Saver> saver_;
  Declaration declaration_;
  Step step_;
  std::string last_report_;
};

int Run(const Options& options) {
  const auto comm = MpiCommunicator::Create(MPI_COMM_WORLD).value();
  Trainer trainer(*comm, options);
  Figures figures;
  for (int round = 0; round <= options.rounds; ++round) trainer.Round(figures, round > 0);
  if (comm->rank() != 0) return 0;
  const double bytes = static_cast<double>(options.mib_per_rank) * 1e6 * 1.048576;
  std::printf("%d ranks, %llu MiB each, memory budget %llu MiB\n", comm->size(),
              static_cast<unsigned long long>(options.mib_per_rank),
              static_cast<unsigned long long>(options.budget_mib));
  // Ratios of rates: 0.95 is a stall of 1.05 copies, 0.91 a step that is a tenth longer.
  PrintSeries(figures.stall, bytes, 1 / 1.05);
  PrintSeries(figures.step, 1e6, 1 / 1.10);
  std::printf("stall %.1f ms, step %.2f ms, from the call to the verdict %.0f ms (medians)\n",
              Median(figures.stall.candidate_seconds) * 1e3,
              Median(figures.step.baseline_seconds) * 1e3, Median(figures.total_seconds) * 1e3);
  std::printf("memory: %.0f MiB more at most than before the first save (%g)\n%s",
              trainer.memory_mib(), static_cast<double>(trainer.result() > 0),
              trainer.last_report().c_str());
  return 0;
}

}  // namespace
}  // namespace sealpoint::bench

int main(int argc, char** argv) {
  sealpoint::bench::Options options;
  return sealpoint::bench::MpiMain(
      argc, argv, "What a save in the background costs the training.",
      [&](sealpoint::bench::Arguments& arguments) {
        arguments.Add("--directory", options.directory, "where to save");
        arguments.Add("--mib-per-rank", options.mib_per_rank, "size of the state");
        arguments.Add("--budget-mib", options.budget_mib, "memory budget of the engine");
        arguments.Add("--tensors", options.tensors, "tensors that it is made of");
        arguments.Add("--threads", options.threads, "of the snapshot, and of the plain copy");
        arguments.Add("--rounds", options.rounds, "rounds after the first");
      },
      [&] { return sealpoint::bench::Run(options); });
}
