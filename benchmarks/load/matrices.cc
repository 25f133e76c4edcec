// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/load/matrices.h"

#include <cstdio>
#include <cstdlib>

#include "sealpoint/saver.h"

namespace sealpoint::bench {
namespace {

std::string NameOf(std::size_t matrix) { return "layers." + std::to_string(matrix) + ".weight"; }

}  // namespace

Shape MatrixShape(std::uint64_t mib) {
  std::uint64_t extent = 64;
  while ((extent * 2) * (extent * 2) * sizeof(float) * kMatrixCount <= mib * kMiB) extent *= 2;
  return {extent, extent};
}

MatrixParts MakeParts(const Communicator& comm, const Shape& shape, int dim) {
  const Mesh mesh = Mesh::Create({{"rank", static_cast<std::uint32_t>(comm.size())}}).value();
  const Placement placement = {Shard{.dim = dim, .axis = "rank"}};
  MatrixParts parts{.layout = PlaceTensor(mesh, comm.rank(), shape, placement).value()};
  parts.part_bytes = sizeof(float);
  for (const std::uint64_t extent : parts.layout.shape) parts.part_bytes *= extent;
  for (std::size_t i = 0; i < kMatrixCount; ++i) {
    parts.memory.push_back(AllocateAligned(parts.part_bytes, Pages::kOrdinary));
  }
  return parts;
}

void SaveMatrices(Communicator& comm, const std::string& target, const Shape& shape,
                  const MatrixParts& parts) {
  const auto engine = Engine::Create().value();
  const auto saver = Saver::Create(*engine, comm).value();
  Declaration declaration;
  std::vector<std::vector<std::size_t>> slots;
  for (std::size_t i = 0; i < kMatrixCount; ++i) {
    slots.push_back(
        declaration.Add({.name = NameOf(i), .dtype = DType::kF32, .shape = shape}, parts.layout)
            .value());
  }
  Sources sources(declaration);
  Status status;
  for (std::size_t i = 0; i < slots.size() && status.ok(); ++i) {
    status = sources.Bind(slots[i], parts.layout, MemoryView::Host(parts.part(i)));
  }
  if (status.ok()) {
    status = saver->Save(SaveTarget::Directory(target), {.step = 1}, sources).status();
  }
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

ReadRequest RequestFor(MatrixParts& parts) {
  ReadRequest request;
  for (std::size_t i = 0; i < kMatrixCount; ++i) {
    request.Add(NameOf(i), parts.layout, MutableMemoryView::Host(parts.part(i)));
  }
  return request;
}

}  // namespace sealpoint::bench
