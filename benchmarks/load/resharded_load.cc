// SPDX-License-Identifier: Apache-2.0
//
// A collective load into another layout than the saved one, against each rank loading its own part
// alone. Run under mpirun; prints what was read and the paired times.
#include <mpi.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "benchmarks/common/mpi_main.h"
#include "benchmarks/common/paired.h"
#include "benchmarks/common/together.h"
#include "benchmarks/load/matrices.h"
#include "sealpoint/collective_reader.h"
#include "sealpoint/mpi_communicator.h"

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

int Run(const Options& options) {
  const auto comm = MpiCommunicator::Create(MPI_COMM_WORLD).value();
  const Shape shape = MatrixShape(options.mib);
  const std::string target = options.directory + "/sealpoint-bench-load";
  if (comm->rank() == 0) std::filesystem::remove_all(target);
  if (!comm->Barrier().ok()) return 1;
  SaveMatrices(*comm, target, shape, MakeParts(*comm, shape, 0));
  MatrixParts columns = MakeParts(*comm, shape, 1);
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
        "payload read / union of what is wanted, %d ranks, %zu matrices of %llu x %llu: "
        "%.4f, target <= %.2f: %s (each rank alone: %.2f of its part)\n",
        comm->size(), kMatrixCount, static_cast<unsigned long long>(shape[0]),
        static_cast<unsigned long long>(shape[1]), together_ratio, kRatioTarget,
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
