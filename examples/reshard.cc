// SPDX-License-Identifier: Apache-2.0
//
// Saves a matrix cut by columns, and loads it cut by rows, on another number of ranks:
//   mpirun -n 4 reshard save checkpoint
//   mpirun -n 3 reshard load checkpoint
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "sealpoint/collective_reader.h"
#include "sealpoint/mpi_communicator.h"
#include "sealpoint/saver.h"

using namespace sealpoint;

namespace {

const TensorSpec kMatrix = {.name = "m", .dtype = DType::kF64, .shape = {1200, 700}};

// What this rank has if dimension `dim` is cut into as many parts as there are ranks.
LocalLayout CutAlong(int dim, const Communicator& comm) {
  const Mesh mesh = Mesh::Create({{"rank", comm.size()}}).value();
  const Placement cut = {Shard{.dim = dim, .axis = "rank"}};
  return PlaceTensor(mesh, comm.rank(), kMatrix.shape, cut).value();
}

// The local matrix; each element is its own number in the whole matrix.
std::vector<double> NumbersIn(const LocalLayout& layout) {
  std::vector<double> numbers;
  for (const LocalPart& part : layout.parts) {  // one; none if there are more ranks than columns
    const auto& [offset, extent] = part.region.box;
    for (std::uint64_t i = 0; i < extent[0] * extent[1]; ++i) {
      const auto row = offset[0] + i / extent[1], column = offset[1] + i % extent[1];
      numbers.push_back(static_cast<double>(row * kMatrix.shape[1] + column));
    }
  }
  return numbers;
}

Status Save(Communicator& comm, const std::string& path) {
  const LocalLayout columns = CutAlong(1, comm);
  const std::vector<double> matrix = NumbersIn(columns);
  const auto engine = Engine::Create().value();
  const auto saver = Saver::Create(*engine, comm).value();
  Declaration held;
  const auto slots = held.Add(kMatrix, columns).value();
  Sources sources(held);
  if (const Status s = sources.Bind(slots, columns, MemoryView::Host(matrix)); !s.ok()) return s;
  return saver->Save(SaveTarget::Directory(path), {}, sources).status();
}

Status Load(Communicator& comm, const std::string& path) {
  const LocalLayout rows = CutAlong(0, comm);
  std::vector<double> matrix(ElementCount(rows.shape).value());
  const auto reader = CollectiveReader::Open(comm, path);
  if (!reader.ok()) return reader.error();
  ReadRequest request;
  request.Add(kMatrix.name, rows, MutableMemoryView::Host(matrix));
  const auto plan = (*reader)->Plan(request);  // what Load will cost; may be left out
  if (plan.ok() && comm.rank() == 0) std::printf("%s\n", plan->ToString().c_str());
  // Each chunk is read by one rank, which sends the others what they need of it.
  if (const auto loaded = (*reader)->Load(request); !loaded.ok()) return loaded.error();
  return matrix == NumbersIn(rows) ? Status() : Status(Code::kInternal, "wrong elements");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  auto comm = MpiCommunicator::Create(MPI_COMM_WORLD).value();
  const std::string command = argc > 1 ? argv[1] : "", path = argc > 2 ? argv[2] : "checkpoint";
  const Status status = command == "load" ? Load(*comm, path) : Save(*comm, path);
  if (!status.ok() && comm->rank() == 0) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  comm.reset();
  MPI_Finalize();
  return status.ok() ? 0 : 1;
}
