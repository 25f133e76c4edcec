// SPDX-License-Identifier: Apache-2.0
//
// For how long a staged save blocks the training, compared with a save to the local disk alone,
// both in the foreground and in the background; how long its promotion takes; and the rate of a
// promotion beside that of a plain copy. Run under mpirun.
#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/common/mpi_main.h"
#include "benchmarks/common/paired.h"
#include "benchmarks/common/raw_file.h"
#include "benchmarks/common/together.h"
#include "sealpoint/communicator.h"
#include "sealpoint/mpi_communicator.h"
#include "sealpoint/promote.h"
#include "sealpoint/saver.h"

namespace sealpoint::bench {
namespace {

struct Options {
  std::string local = "staged-local";
  std::string final = "staged-final";
  std::uint64_t mib_per_rank = 128;
  int rounds = 11;
};

class Trainer {
 public:
  Trainer(Communicator& comm, const Options& options)
      : comm_(comm), options_(options), size_(options.mib_per_rank * kMiB) {
    state_ = AllocateAligned(size_, Pages::kHuge);
    for (std::uint64_t i = 0; i < size_; ++i)
      state_[i] = static_cast<std::byte>(i * 2654435761U >> 13);
    engine_ = Engine::Create({.memory_budget_bytes = size_ + 64 * kMiB}).value();
    saver_ = Saver::Create(*engine_, comm).value();
    const auto rank = static_cast<std::uint64_t>(comm.rank());
    const TensorSpec tensor{.name = "w",
                            .dtype = DType::kUInt8,
                            .shape = {static_cast<std::uint64_t>(comm.size()), size_}};
    declaration_
        .Add({.tensor = tensor, .region = Region::Of({.offset = {rank, 0}, .extent = {1, size_}})})
        .value();
  }

  // Seconds for which the call blocks, and then until all is over and removed.
  double Save(bool is_staged, bool is_async, double* promotion_seconds) {
    Sources sources(declaration_);
    if (!sources.Bind(0, MemoryView::Host(state_.get(), size_)).ok()) std::abort();
    SaveTarget target = SaveTarget::InSeries(is_staged ? options_.final : options_.local);
    if (is_staged) target = SaveTarget::Staged(options_.local, std::move(target));
    std::unique_ptr<PendingSave> pending;
    const double stall = TimeTogether(comm_, [&] {
      if (is_async) {
        pending = saver_->SaveAsync(target, {.step = 1}, sources).value();
      } else if (!saver_->Save(target, {.step = 1}, sources).ok()) {
        std::abort();
      }
    });
    if (pending && !pending->Wait().ok()) std::abort();
    const Stopwatch watch;
    while (!saver_->WaitForPromotions(std::chrono::seconds(1))) {
    }
    for (const Promotion& promotion : saver_->TakePromotions()) {
      if (!promotion.status.ok()) std::abort();
    }
    if (is_staged) *promotion_seconds = watch.seconds();
    if (!comm_.Barrier().ok()) std::abort();
    if (comm_.rank() == 0) {
      std::filesystem::remove_all(options_.local);
      std::filesystem::remove_all(options_.final);
    }
    if (!comm_.Barrier().ok()) std::abort();
    return stall;
  }

 private:
  Communicator& comm_;
  const Options options_;
  const std::uint64_t size_;
  AlignedMemory state_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Saver> saver_;
  Declaration declaration_;
};

// One blob, promoted by one thread, against plain O_DIRECT reads and writes of it, 4 MiB at a time,
// one after the other, with an fsync.
PairedSeries MeasurePromotions(const Options& options) {
  const std::uint64_t size = options.mib_per_rank * kMiB;
  const AlignedMemory state = AllocateAligned(size, Pages::kHuge);
  for (std::uint64_t i = 0; i < size; ++i) state[i] = static_cast<std::byte>(i * 2654435761U >> 13);
  const auto engine = Engine::Create({}).value();
  const auto comm = SelfCommunicator();
  Declaration declaration;
  declaration
      .Add({.tensor = {.name = "w", .dtype = DType::kUInt8, .shape = {size}},
            .region = Region::Whole({size})})
      .value();
  Sources sources(declaration);
  if (!sources.Bind(0, MemoryView::Host(state.get(), size)).ok()) std::abort();
  const std::string local = options.local + "/promoted";
  const auto saver = Saver::Create(*engine, *comm).value();
  if (!saver->Save(SaveTarget::Directory(local), {}, sources).ok()) std::abort();
  std::string blob;
  for (const auto& entry : std::filesystem::directory_iterator(local)) {
    if (entry.path().extension() == ".blob") blob = entry.path();
  }
  PairedSeries series{.name = "promotion beside a plain copy"};
  for (int round = 0; round <= options.rounds; ++round) {
    std::filesystem::create_directories(options.final);
    const Stopwatch plain;
    const AlignedMemory piece = AllocateAligned(kRawPieceSize, Pages::kHuge);
    RawReader(blob).Read(0, size, {piece.get(), kRawPieceSize});
    WriteRaw(options.final + "/plain", {state.get(), size});
    const double plain_seconds = plain.seconds();
    const Stopwatch promotion;
    if (!Promote({.from = local, .to = options.final + "/promoted"}, {.threads = 1}).ok())
      std::abort();
    if (round > 0) {
      series.baseline_seconds.push_back(plain_seconds);
      series.candidate_seconds.push_back(promotion.seconds());
    }
    std::filesystem::remove_all(options.final);
  }
  std::filesystem::remove_all(options.local);
  return series;
}

int Run(const Options& options) {
  const auto comm = MpiCommunicator::Create(MPI_COMM_WORLD).value();
  Trainer trainer(*comm, options);
  bool is_met = true;
  for (const bool is_async : {false, true}) {
    PairedSeries stall{.name =
                           is_async ? "staged, in the background" : "staged, in the foreground"};
    std::vector<double> promotions;
    for (int round = 0; round <= options.rounds; ++round) {
      double promotion = 0;
      // In turns, since the second of two saves meets a warmer disk.
      const bool is_staged_first = round % 2 == 1;
      const double first = trainer.Save(is_staged_first, is_async, &promotion);
      const double second = trainer.Save(!is_staged_first, is_async, &promotion);
      if (round == 0) continue;
      stall.baseline_seconds.push_back(is_staged_first ? second : first);
      stall.candidate_seconds.push_back(is_staged_first ? first : second);
      promotions.push_back(promotion);
    }
    if (comm->rank() != 0) continue;
    const double bytes = static_cast<double>(options.mib_per_rank * kMiB);
    is_met = PrintSeries(stall, bytes, 1 / 1.05) && is_met;
    std::printf("promotion: %.0f ms (median)\n", Median(promotions) * 1e3);
  }
  if (comm->rank() == 0) {
    const double bytes = static_cast<double>(options.mib_per_rank * kMiB);
    is_met = PrintSeries(MeasurePromotions(options), bytes, 0.9) && is_met;
  }
  if (!comm->Barrier().ok()) std::abort();
  return is_met ? 0 : 1;
}

}  // namespace
}  // namespace sealpoint::bench

int main(int argc, char** argv) {
  sealpoint::bench::Options options;
  return sealpoint::bench::MpiMain(
      argc, argv, "For how long a staged save blocks the training.",
      [&](sealpoint::bench::Arguments& arguments) {
        arguments.Add("--local", options.local, "a directory that is made, and removed again");
        arguments.Add("--final", options.final, "another one");
        arguments.Add("--mib-per-rank", options.mib_per_rank, "size of the state");
        arguments.Add("--rounds", options.rounds, "rounds after the first");
      },
      [&] { return sealpoint::bench::Run(options); });
}
