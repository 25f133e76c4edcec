// SPDX-License-Identifier: Apache-2.0
//
// A collective load into another layout than the saved one, against each rank loading its own part
// alone. Run under mpirun; prints what was read and the paired times.
#include <mpi.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/common/mpi_main.h"
#include "benchmarks/common/paired.h"
#include "benchmarks/common/together.h"
#include "sealpoint/collective_reader.h"
#include "sealpoint/mpi_communicator.h"
#include "sealpoint/saver.h"

namespace sealpoint::bench {
namespace {

struct Options {
  std::string directory = ".";
  std::uint64_t mib = 512;
  int rounds = 11;
  bool warm = false;
};

constexpr double kRatioTarget = 1.02;
constexpr double kSpeedTarget = 1.0;
// A page cache gives every rank the same bytes as fast as memory does: nothing is to be gained.
constexpr double kWarmSpeedTarget = 0.8;
constexpr int kMatrixCount = 8;

// Matrices of this many rows and columns, f32.
std::uint64_t ExtentOf(const Options& options) {
  std::uint64_t extent = 64;
  while ((extent * 2) * (extent * 2) * sizeof(float) * kMatrixCount <= options.mib * kMiB) {
    extent *= 2;
  }
  return extent;
}

// All matrices of one layout on this rank, each in separate memory.
struct Part {
  LocalLayout layout{};
  std::vector<std::vector<float>> matrices{};
};

Part MakePart(const Communicator& comm, const Shape& shape, const Placement& placement) {
  const Mesh mesh = Mesh::Create({{"rank", static_cast<std::uint32_t>(comm.size())}}).value();
  Part part{.layout = PlaceTensor(mesh, comm.rank(), shape, placement).value()};
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : part.layout.shape) elements *= extent;
  part.matrices.assign(kMatrixCount, std::vector<float>(elements));
  return part;
}

std::string NameOf(int matrix) { return "layers." + std::to_string(matrix) + ".weight"; }

bool Save(Communicator& comm, const std::string& target, const Shape& shape, const Part& part) {
  const auto engine = Engine::Create().value();
  const auto saver = Saver::Create(*engine, comm).value();
  Declaration declaration;
  std::vector<std::vector<std::size_t>> slots;
  for (int i = 0; i < kMatrixCount; ++i) {
    slots.push_back(
        declaration.Add({.name = NameOf(i), .dtype = DType::kF32, .shape = shape}, part.layout)
            .value());
  }
  Sources sources(declaration);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!sources.Bind(slots[i], part.layout, MemoryView::Host(part.matrices[i])).ok()) return false;
  }
  return saver->Save(SaveTarget::Directory(target), {.step = 1}, sources).ok();
}

ReadRequest RequestFor(Part& part) {
  ReadRequest request;
  for (int i = 0; i < kMatrixCount; ++i) {
    request.Add(NameOf(i), part.layout,
                MutableMemoryView::Host(part.matrices[static_cast<std::size_t>(i)]));
  }
  return request;
}

int Run(const Options& options) {
  const auto comm = MpiCommunicator::Create(MPI_COMM_WORLD).value();
  const std::uint64_t extent = ExtentOf(options);
  const Shape shape = {extent, extent};
  const std::string target = options.directory + "/sealpoint-bench-load";
  if (comm->rank() == 0) std::filesystem::remove_all(target);
  if (!comm->Barrier().ok()) return 1;
  if (!Save(*comm, target, shape, MakePart(*comm, shape, {Shard{.dim = 0, .axis = "rank"}}))) {
    return 1;
  }
  Part columns = MakePart(*comm, shape, {Shard{.dim = 1, .axis = "rank"}});
  const ReadRequest request = RequestFor(columns);
  const auto reader = CollectiveReader::Open(*comm, target, {.direct_io = !options.warm}).value();
  const double wanted = static_cast<double>(reader->checkpoint().raw_bytes());
  PairedSeries series{.name = "rows to columns, together / alone, " + std::to_string(comm->size()) +
                              " ranks" + (options.warm ? ", warm" : "")};
  double together_ratio = 0;
  double alone_ratio = 0;
  for (int round = 0; round <= options.rounds; ++round) {
    const double alone = TimeTogether(*comm, [&] {
      alone_ratio = reader->checkpoint().Load(request).value().plan.amplification;
    });
    const double together = TimeTogether(*comm, [&] {
      const auto report = reader->Load(request).value();
      together_ratio = static_cast<double>(report.all_bytes_read) / wanted;
    });
    if (round == 0) continue;
    series.baseline_seconds.push_back(alone);
    series.candidate_seconds.push_back(together);
  }
  if (comm->rank() == 0) {
    std::filesystem::remove_all(target);
    std::printf(
        "payload read / union of what is wanted, %d ranks, %d matrices of %llu x %llu: "
        "%.4f, target <= %.2f: %s (each rank alone: %.2f of its part)\n",
        comm->size(), kMatrixCount, static_cast<unsigned long long>(extent),
        static_cast<unsigned long long>(extent), together_ratio, kRatioTarget,
        together_ratio <= kRatioTarget ? "met" : "missed", alone_ratio);
    PrintSeries(series, wanted, options.warm ? kWarmSpeedTarget : kSpeedTarget);
  }
  return 0;
}

}  // namespace
}  // namespace sealpoint::bench

int main(int argc, char** argv) {
  sealpoint::bench::Options options;
  return sealpoint::bench::MpiMain(
      argc, argv, "A collective load into another layout, against each rank alone, paired.",
      [&](sealpoint::bench::Arguments& arguments) {
        arguments.Add("--directory", options.directory, "on the file system to measure");
        arguments.Add("--mib", options.mib, "at most so many MiB of payload in all");
        arguments.Add("--rounds", options.rounds, "counted rounds");
        arguments.AddFlag("--warm", options.warm, "from the page cache");
      },
      [&] { return sealpoint::bench::Run(options); });
}
