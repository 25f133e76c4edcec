// SPDX-License-Identifier: Apache-2.0
//
// A whole collective save (digests on, fsync included, committed) against plain O_DIRECT writes of
// the same buffers to one file per rank. Run under mpirun; prints one line.
#include <mpi.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include "benchmarks/common/mpi_main.h"
#include "benchmarks/common/paired.h"
#include "benchmarks/common/raw_file.h"
#include "benchmarks/common/together.h"
#include "sealpoint/mpi_communicator.h"
#include "sealpoint/saver.h"

namespace sealpoint::bench {
namespace {

struct Options {
  std::string directory = ".";
  std::uint64_t mib_per_rank = 256;
  int rounds = 11;
  bool huge_pages = false;
  bool phases = false;
  bool first = false;
  bool fingerprints = false;
  std::uint64_t budget_mib = 64;
};

// One tensor of all ranks' rows, f32; each rank holds its own.
Declaration DeclareRows(const Communicator& comm, std::uint64_t floats_per_rank) {
  Declaration declaration;
  const auto rank = static_cast<std::uint64_t>(comm.rank());
  const Shape shape = {static_cast<std::uint64_t>(comm.size()), floats_per_rank};
  declaration
      .Add({.tensor = {.name = "w", .dtype = DType::kF32, .shape = shape},
            .region = Region::Of({.offset = {rank, 0}, .extent = {1, floats_per_rank}})})
      .value();
  return declaration;
}

double TimeRaw(Communicator& comm, const std::string& directory, std::span<const std::byte> bytes) {
  const std::string path = JoinPath(directory, "raw-" + std::to_string(comm.rank()));
  const double seconds = TimeTogether(comm, [&] { WriteRaw(path, bytes); });
  std::filesystem::remove(path);
  return seconds;
}

double TimeSave(Communicator& comm, Saver& saver, const std::string& directory,
                const Sources& sources, PhaseReport& report) {
  const double seconds = TimeTogether(comm, [&] {
    report = saver.Save(SaveTarget::Directory(directory), {.step = 1}, sources).value().report;
  });
  if (comm.rank() == 0) std::filesystem::remove_all(directory);
  if (!comm.Barrier().ok()) std::abort();
  return seconds;
}

// What the first save of an engine costs, which maps staging memory, against the second.
void RunFirst(const Options& options, Communicator& comm, const std::string& target,
              const Sources& sources, std::uint64_t size) {
  PairedSeries series{.name = "first save / second, " + std::to_string(comm.size()) + " ranks"};
  PhaseReport report;
  for (int round = 0; round < options.rounds; ++round) {
    const auto engine = Engine::Create({.memory_budget_bytes = options.budget_mib << 20}).value();
    const auto saver = Saver::Create(*engine, comm).value();
    series.candidate_seconds.push_back(TimeSave(comm, *saver, target, sources, report));
    series.baseline_seconds.push_back(TimeSave(comm, *saver, target, sources, report));
  }
  if (comm.rank() == 0) PrintSeries(series, static_cast<double>(size) * comm.size(), 1 / 1.1);
}

int Run(const Options& options) {
  const auto comm = MpiCommunicator::Create(MPI_COMM_WORLD).value();
  const std::size_t size = options.mib_per_rank << 20;
  const AlignedMemory memory =
      AllocateAligned(size, options.huge_pages ? Pages::kHuge : Pages::kOrdinary);
  const std::span<const std::byte> bytes(memory.get(), size);
  const auto engine = Engine::Create().value();
  const auto saver = Saver::Create(*engine, *comm, {.fingerprints = options.fingerprints}).value();
  const auto plain = Saver::Create(*engine, *comm).value();
  const Declaration declaration = DeclareRows(*comm, size / sizeof(float));
  Sources sources(declaration);
  if (!sources.Bind(std::size_t{0}, MemoryView::Host(bytes)).ok()) return 1;

  const std::string ranks = std::to_string(comm->size());
  const std::string against =
      options.fingerprints ? "save with fingerprints / without, " : "save / raw writes, ";
  PairedSeries series{.name =
                          against + ranks + " ranks" + (options.huge_pages ? ", huge pages" : "")};
  const std::string target = JoinPath(options.directory, "sealpoint-bench-save");
  if (comm->rank() == 0) std::filesystem::remove_all(target);
  if (options.first) {
    RunFirst(options, *comm, target, sources, size);
    return 0;
  }
  PhaseReport report;
  for (int round = 0; round <= options.rounds; ++round) {
    const double raw = options.fingerprints ? TimeSave(*comm, *plain, target, sources, report)
                                            : TimeRaw(*comm, options.directory, bytes);
    const double save = TimeSave(*comm, *saver, target, sources, report);
    if (round == 0) continue;  // warms up files, staging and plan
    series.baseline_seconds.push_back(raw);
    series.candidate_seconds.push_back(save);
  }
  if (comm->rank() != 0) return 0;
  const bool fits_cores = comm->size() <= static_cast<int>(std::thread::hardware_concurrency());
  PrintSeries(series, static_cast<double>(size) * comm->size(), fits_cores ? 0.95 : 0.92);
  if (options.phases) std::printf("%s", report.ToString().c_str());
  return 0;
}

}  // namespace
}  // namespace sealpoint::bench

int main(int argc, char** argv) {
  sealpoint::bench::Options options;
  return sealpoint::bench::MpiMain(
      argc, argv, "A collective save against plain O_DIRECT writes, paired.",
      [&](sealpoint::bench::Arguments& arguments) {
        arguments.Add("--directory", options.directory, "on the file system to measure");
        arguments.Add("--mib-per-rank", options.mib_per_rank, "payload of each rank in MiB");
        arguments.Add("--rounds", options.rounds, "counted rounds");
        arguments.AddFlag("--huge-pages", options.huge_pages, "keep the payload on huge pages");
        arguments.AddFlag("--first", options.first,
                          "compare the first save of an engine with the second");
        arguments.Add("--budget-mib", options.budget_mib, "memory budget of an engine of --first");
        arguments.AddFlag("--fingerprints", options.fingerprints,
                          "compare saves that store fingerprints with saves that do not");
        arguments.AddFlag("--phases", options.phases,
                          "print where the last save's time went on rank 0");
      },
      [&] { return sealpoint::bench::Run(options); });
}
