// SPDX-License-Identifier: Apache-2.0
// A small training on MPI ranks that saves its state at the end, and that goes on from there when
// it is run again, on the same or on another number of ranks, with mpirun or without:
//   mpirun -n 4 save_load checkpoints
//   mpirun -n 3 save_load checkpoints
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "or_abort.h"
#include "sealpoint/collective_reader.h"
#include "sealpoint/mpi_communicator.h"
#include "sealpoint/saver.h"

namespace sp = sealpoint;

namespace {

const sp::Shape kShape = {1000, 64};  // of the whole tensor; its rows are divided among the ranks

// All ranks call this. A rank that left early would make the others wait in the next collective
// call (OpenNewest, Load, Save). Those return the same error on all ranks; OrAbort handles the
// rest.
sp::Status Train(sp::Communicator& comm, const std::string& series) {
  // What this rank has of the tensor: no communication, every rank computes it for itself.
  const sp::Mesh mesh = OrAbort(sp::Mesh::Create({{"rank", comm.size()}}));
  const sp::Placement by_rows = {sp::Shard{.dim = 0, .axis = "rank"}};
  const sp::LocalLayout layout = OrAbort(sp::PlaceTensor(mesh, comm.rank(), kShape, by_rows));
  std::vector<float> weights(OrAbort(sp::ElementCount(layout.shape)));  // zeros
  std::uint64_t step = 0;

  // Resume from the newest checkpoint, whatever number of ranks saved it.
  const auto newest = sp::OpenNewest(comm, series);
  if (!newest.ok()) return newest.error();  // something is there and cannot be used
  if (newest->reader != nullptr) {          // else nothing was ever saved: begin anew
    sp::ReadRequest request;
    request.Add("weights", layout, sp::MutableMemoryView::Host(weights));
    const auto loaded = newest->reader->Load(request);
    if (!loaded.ok()) return loaded.error();
    step = newest->reader->checkpoint().step();
  }
  const auto is_step = [&](float weight) { return weight == static_cast<float>(step); };
  const bool is_right = std::ranges::all_of(weights, is_step);
  if (comm.rank() == 0) std::printf("%d ranks start at step %lu\n", comm.size(), step);

  // The training adds 1 to each weight, a hundred times.
  for (const std::uint64_t end = step + 100; step < end; ++step) {
    for (float& weight : weights) weight += 1;
  }

  // Save. Ranks write their parts to files of their own; then one marker commits the checkpoint.
  const auto engine = OrAbort(sp::Engine::Create());  // staging memory and threads; one per process
  const auto saver = OrAbort(sp::Saver::Create(*engine, comm));
  sp::Declaration held;  // what this rank holds; an error of Add or Bind is that of Save
  held.Add({.name = "weights", .dtype = sp::DType::kF32, .shape = kShape}, layout).IgnoreError();
  sp::Sources sources(held);  // where it is in memory
  sources.Bind("weights", layout, sp::MemoryView::Host(weights)).IgnoreError();
  sp::SaveOptions options = {.step = step};
  if (!is_right) options.failure = sp::Status(sp::Code::kInternal, "wrong weights");
  const auto saved = saver->Save(sp::SaveTarget::InSeries(series), options, sources);
  if (!saved.ok()) return saved.error();  // older checkpoints are untouched
  if (comm.rank() == 0) std::printf("step %lu is in %s\n", step, saved->directory.c_str());
  return sp::Status();
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  auto comm = OrAbort(sp::MpiCommunicator::Create(MPI_COMM_WORLD));  // a duplicate of its own
  const sp::Status status = Train(*comm, argc > 1 ? argv[1] : "checkpoints");
  if (!status.ok()) std::fprintf(stderr, "rank %d: %s\n", comm->rank(), status.ToString().c_str());
  comm.reset();  // before MPI ends
  MPI_Finalize();
  return status.ok() ? 0 : 1;
}
