// SPDX-License-Identifier: Apache-2.0
//
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

#include "sealpoint/mpi_communicator.h"
#include "sealpoint/open_newest.h"
#include "sealpoint/saver.h"

using namespace sealpoint;

namespace {

const Shape kShape = {1000, 64};  // of the whole tensor; its rows are divided among the ranks

// All ranks call this. An error of one of them is the same error on all. value() is for calls that
// fail only if the program is wrong: it prints the error and aborts.
Status Train(Communicator& comm, const std::string& series) {
  // What this rank has of the tensor: no communication, every rank computes it for itself.
  const Mesh mesh = Mesh::Create({{"rank", comm.size()}}).value();
  const Placement by_rows = {Shard{.dim = 0, .axis = "rank"}};
  const LocalLayout layout = PlaceTensor(mesh, comm.rank(), kShape, by_rows).value();
  std::vector<float> weights(ElementCount(layout.shape).value());  // zeros
  std::uint64_t step = 0;

  // Resume from the newest checkpoint, whatever number of ranks saved it.
  const auto newest = OpenNewest(comm, series);
  if (!newest.ok()) return newest.error();  // something is there and cannot be used
  if (newest->reader != nullptr) {          // else nothing was ever saved: begin anew
    ReadRequest request;
    request.Add("weights", layout, MutableMemoryView::Host(weights));
    const auto loaded = newest->reader->Load(request);
    if (!loaded.ok()) return loaded.error();
    step = newest->reader->checkpoint().step();
  }
  const auto is_step = [&](float weight) { return weight == static_cast<float>(step); };
  if (!std::ranges::all_of(weights, is_step)) return Status(Code::kInternal, "wrong weights");
  if (comm.rank() == 0) std::printf("%d ranks start at step %lu\n", comm.size(), step);

  // The training adds 1 to each weight, a hundred times.
  for (const std::uint64_t end = step + 100; step < end; ++step) {
    for (float& weight : weights) weight += 1;
  }

  // Save. Ranks write their parts to files of their own; then one marker commits the checkpoint.
  const auto engine = Engine::Create().value();  // staging memory and threads; one per process
  const auto saver = Saver::Create(*engine, comm).value();
  Declaration held;  // what this rank holds of which tensor
  const auto slots =
      held.Add({.name = "weights", .dtype = DType::kF32, .shape = kShape}, layout).value();
  Sources sources(held);  // where it is in memory
  const Status bound = sources.Bind(slots, layout, MemoryView::Host(weights));
  if (!bound.ok()) return bound;
  const auto saved = saver->Save(SaveTarget::InSeries(series), {.step = step}, sources);
  if (!saved.ok()) return saved.error();  // older checkpoints are untouched
  if (comm.rank() == 0) std::printf("step %lu is in %s\n", step, saved->directory.c_str());
  return Status();
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  auto comm = MpiCommunicator::Create(MPI_COMM_WORLD).value();  // a duplicate of its own
  const Status status = Train(*comm, argc > 1 ? argv[1] : "checkpoints");
  if (!status.ok() && comm->rank() == 0) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  comm.reset();  // before MPI ends
  MPI_Finalize();
  return status.ok() ? 0 : 1;
}
