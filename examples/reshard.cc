// SPDX-License-Identifier: Apache-2.0
// Saves a matrix cut by columns, and loads it cut by rows, on another number of ranks:
//   mpirun -n 4 reshard save checkpoint
//   mpirun -n 3 reshard load checkpoint
#include <mpi.h>

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

const sp::TensorSpec kMatrix = {.name = "m", .dtype = sp::DType::kF64, .shape = {1200, 700}};

// What this rank has if dimension `dim` is cut into as many parts as there are ranks.
sp::LocalLayout CutAlong(int dim, const sp::Communicator& comm) {
  const sp::Mesh mesh = OrAbort(sp::Mesh::Create({{"rank", comm.size()}}));
  const sp::Placement cut = {sp::Shard{.dim = dim, .axis = "rank"}};
  return OrAbort(sp::PlaceTensor(mesh, comm.rank(), kMatrix.shape, cut));
}

// The local matrix; each element is its own number in the whole matrix.
std::vector<double> NumbersIn(const sp::LocalLayout& layout) {
  std::vector<double> numbers;
  for (const auto& part : layout.parts) {  // one; none if there are more ranks than columns
    const auto& [offset, extent] = part.region.box;
    for (std::uint64_t i = 0; i < extent[0] * extent[1]; ++i) {
      const auto row = offset[0] + i / extent[1], column = offset[1] + i % extent[1];
      numbers.push_back(static_cast<double>(row * kMatrix.shape[1] + column));
    }
  }
  return numbers;
}

sp::Status Save(sp::Communicator& comm, const std::string& path) {
  const sp::LocalLayout columns = CutAlong(1, comm);
  const std::vector<double> matrix = NumbersIn(columns);
  const auto engine = OrAbort(sp::Engine::Create());
  const auto saver = OrAbort(sp::Saver::Create(*engine, comm));
  sp::Declaration held;  // an error of Add or Bind is that of Save, on all ranks
  held.Add(kMatrix, columns).IgnoreError();
  sp::Sources sources(held);
  sources.Bind(kMatrix.name, columns, sp::MemoryView::Host(matrix)).IgnoreError();
  return saver->Save(sp::SaveTarget::Directory(path), {}, sources).status();
}

sp::Status Load(sp::Communicator& comm, const std::string& path) {
  const sp::LocalLayout rows = CutAlong(0, comm);
  std::vector<double> matrix(OrAbort(sp::ElementCount(rows.shape)));
  const auto reader = sp::CollectiveReader::Open(comm, path);
  if (!reader.ok()) return reader.error();
  sp::ReadRequest request;
  request.Add(kMatrix.name, rows, sp::MutableMemoryView::Host(matrix));
  const auto plan = (*reader)->Plan(request);  // what Load will cost; may be left out
  if (plan.ok() && comm.rank() == 0) std::printf("%s\n", plan->ToString().c_str());
  // Each chunk is read by one rank, which sends the others what they need of it.
  if (const auto loaded = (*reader)->Load(request); !loaded.ok()) return loaded.error();
  return matrix == NumbersIn(rows) ? sp::Status() : sp::Status(sp::Code::kInternal, "wrong");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  auto comm = OrAbort(sp::MpiCommunicator::Create(MPI_COMM_WORLD));
  const std::string command = argc > 1 ? argv[1] : "", path = argc > 2 ? argv[2] : "checkpoint";
  const sp::Status status = command == "load" ? Load(*comm, path) : Save(*comm, path);
  if (!status.ok()) std::fprintf(stderr, "rank %d: %s\n", comm->rank(), status.ToString().c_str());
  comm.reset();
  MPI_Finalize();
  return status.ok() ? 0 : 1;
}
