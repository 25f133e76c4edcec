// SPDX-License-Identifier: Apache-2.0
// A training that saves every 100 steps in the background and keeps the newest two checkpoints:
//   mpirun -n 4 save_async checkpoints
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "or_abort.h"
#include "sealpoint/mpi_communicator.h"
#include "sealpoint/saver.h"
#include "sealpoint/series.h"

namespace sp = sealpoint;

namespace {

const sp::Shape kShape = {1000, 64};  // of the whole tensor; its rows are divided among the ranks

// One rank says what became of a save, and deletes what is older than the newest two checkpoints.
// A failure is no reason to stop: the next save may succeed.
void Report(sp::Communicator& comm, const sp::Result<sp::CommitInfo>& saved,
            const std::string& series) {
  if (comm.rank() != 0) return;
  if (saved.ok()) std::printf("step %lu is in %s\n", saved->step, saved->directory.c_str());
  const sp::Status status = saved.ok() ? sp::Series(series).Prune({}).status : saved.error();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
}

// All ranks call this.
sp::Status Train(sp::Communicator& comm, const std::string& series) {
  const sp::Mesh mesh = OrAbort(sp::Mesh::Create({{"rank", comm.size()}}));
  const sp::Placement by_rows = {sp::Shard{.dim = 0, .axis = "rank"}};
  const sp::LocalLayout layout = OrAbort(sp::PlaceTensor(mesh, comm.rank(), kShape, by_rows));
  std::vector<float> weights(OrAbort(sp::ElementCount(layout.shape)));

  // The memory budget should hold what this rank writes; with less, SaveAsync takes longer.
  const auto engine = OrAbort(sp::Engine::Create({.memory_budget_bytes = 64 * sp::kMiB}));
  const auto saver = OrAbort(sp::Saver::Create(*engine, comm));
  // An error of Add or Bind is that of SaveAsync, where all ranks hear of it.
  sp::Declaration held;
  held.Add({.name = "weights", .dtype = sp::DType::kF32, .shape = kShape}, layout).IgnoreError();
  sp::Sources sources(held);  // the memory stays where it is, so this serves all saves
  sources.Bind("weights", layout, sp::MemoryView::Host(weights)).IgnoreError();

  std::deque<std::unique_ptr<sp::PendingSave>> pending;  // saves end in the order of their calls
  for (std::uint64_t step = 1; step <= 500; ++step) {
    for (float& weight : weights) weight += 1;
    if (step % 100 == 0) {  // copies the weights, so that the next step may change them
      auto begun = saver->SaveAsync(sp::SaveTarget::InSeries(series), {.step = step}, sources);
      if (!begun.ok()) return begun.error();
      pending.push_back(*std::move(begun));
    }
    // Waits for nobody, but carries the save on: call it once per step.
    while (!pending.empty() && pending.front()->Poll() != sp::SaveState::kRunning) {
      Report(comm, pending.front()->Wait(), series);  // it is over: Wait returns at once
      pending.pop_front();
    }
  }
  for (const auto& save : pending) Report(comm, save->Wait(), series);  // on all ranks
  return sp::Status();
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 0;  // one thread of the program calls MPI; the library's threads never do
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
  auto comm = OrAbort(sp::MpiCommunicator::Create(MPI_COMM_WORLD));
  const sp::Status status = Train(*comm, argc > 1 ? argv[1] : "checkpoints");
  if (!status.ok()) std::fprintf(stderr, "rank %d: %s\n", comm->rank(), status.ToString().c_str());
  comm.reset();
  MPI_Finalize();
  return status.ok() ? 0 : 1;
}
