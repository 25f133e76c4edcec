// SPDX-License-Identifier: Apache-2.0
//
// Loads in the layout that was saved, from the page cache: each rank alone against plain reads of
// the same files into the same memory, and all ranks together against each alone; with several
// threads, each rank alone against one thread, too. Run under mpirun.
#include <mpi.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "benchmarks/common/mpi_main.h"
#include "benchmarks/common/paired.h"
#include "benchmarks/common/raw_file.h"
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
  int threads = 1;
};

constexpr double kAloneTarget = 0.8;
constexpr double kTogetherTarget = 0.95;

// The file that has as much as one rank's parts: each rank wrote one.
std::string BlobOf(int rank, const std::string& target) {
  std::vector<std::string> blobs;
  for (const auto& entry : std::filesystem::directory_iterator(target)) {
    if (entry.path().extension() == ".blob") blobs.push_back(entry.path().string());
  }
  std::sort(blobs.begin(), blobs.end());
  return blobs.at(static_cast<std::size_t>(rank));
}

int Run(const Options& options) {
  const auto comm = MpiCommunicator::Create(MPI_COMM_WORLD).value();
  const Shape shape = MatrixShape(options.mib);
  const std::string target = options.directory + "/sealpoint-bench-load";
  if (comm->rank() == 0) std::filesystem::remove_all(target);
  if (!comm->Barrier().ok()) return 1;
  MatrixParts parts = MakeParts(*comm, shape, 0);
  SaveMatrices(*comm, target, shape, parts);
  const ReadRequest request = RequestFor(parts);
  const CachedReader blob(BlobOf(comm->rank(), target));
  const auto reader = CollectiveReader::Open(*comm, target, {.direct_io = false}).value();
  const double wanted = static_cast<double>(reader->checkpoint().raw_bytes());
  const std::string ranks = std::to_string(comm->size()) + " ranks";
  PairedSeries from_reads{.name = "each rank alone / plain reads, " + ranks};
  PairedSeries from_alone{.name = "together / each rank alone, " + ranks};
  PairedSeries from_one{.name = std::to_string(options.threads) + " threads / 1 thread, " + ranks};
  for (int round = 0; round <= options.rounds; ++round) {
    const double reads = TimeTogether(*comm, [&] {
      for (std::size_t i = 0; i < kMatrixCount; ++i) blob.Read(i * parts.part_bytes, parts.part(i));
    });
    const auto load_alone = [&](int threads) {
      return TimeTogether(*comm, [&] {
        const ReadOptions of_load{.threads = threads};
        static_cast<void>(reader->checkpoint().Load(request, {}, of_load).value());
      });
    };
    const double alone = load_alone(1);
    const double several = options.threads == 1 ? alone : load_alone(options.threads);
    const double together = TimeTogether(
        *comm, [&] { static_cast<void>(reader->Load(request, {}, {.threads = 1}).value()); });
    if (round == 0) continue;
    from_one.baseline_seconds.push_back(alone);
    from_one.candidate_seconds.push_back(several);
    from_reads.baseline_seconds.push_back(reads);
    from_reads.candidate_seconds.push_back(alone);
    from_alone.baseline_seconds.push_back(alone);
    from_alone.candidate_seconds.push_back(together);
  }
  if (comm->rank() == 0) {
    std::filesystem::remove_all(target);
    PrintSeries(from_reads, wanted, kAloneTarget);
    PrintSeries(from_alone, wanted, kTogetherTarget);
    if (options.threads > 1) PrintSeries(from_one, wanted, 1);
  }
  return 0;
}

}  // namespace
}  // namespace sealpoint::bench

int main(int argc, char** argv) {
  sealpoint::bench::Options options;
  return sealpoint::bench::MpiMain(
      argc, argv, "Loads in the saved layout, from the page cache, against plain reads, paired.",
      [&](sealpoint::bench::Arguments& arguments) {
        arguments.Add("--directory", options.directory, "on the file system to measure");
        arguments.Add("--mib", options.mib, "at most so many MiB of payload in all");
        arguments.Add("--rounds", options.rounds, "counted rounds");
        arguments.Add("--threads", options.threads, "of each rank alone, compared with one");
      },
      [&] { return sealpoint::bench::Run(options); });
}
