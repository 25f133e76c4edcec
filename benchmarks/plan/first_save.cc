// SPDX-License-Identifier: Apache-2.0
//
// The cost of planning in the first save of a run, compared with the second, whose plan is cached.
// Run under mpirun; prints one line.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

#include "benchmarks/common/mpi_main.h"
#include "benchmarks/common/paired.h"
#include "sealpoint/mpi_communicator.h"
#include "sealpoint/saver.h"

namespace sealpoint::bench {
namespace {

struct Options {
  std::string directory = ".";
  int tensors = 100000;
  int rounds = 11;
};

constexpr double kTargetSeconds = 0.05;

// Weights that tensor parallelism cuts and data parallelism replicates, and the two moments of
// each, cut flat over all ranks.
Declaration DeclareModel(const Communicator& comm, int tensor_count) {
  const auto size = static_cast<std::uint32_t>(comm.size());
  const std::uint32_t tensor_parallel = size % 2 == 0 ? 2 : 1;
  const Mesh mesh =
      Mesh::Create({{"data", size / tensor_parallel}, {"tensor", tensor_parallel}}).value();
  const Shape shape = {16, 8};
  const Shard rows{.dim = 0, .axis = "tensor"};
  const LocalLayout weight =
      PlaceTensor(mesh, comm.rank(), shape, {rows, Replicate{"data"}}).value();
  const LocalLayout moment =
      PlaceTensor(mesh, comm.rank(), shape, {rows, ShardFlat{.axes = {"data"}}}).value();
  Declaration declaration;
  for (int i = 0; i < tensor_count; ++i) {
    const char* const part = i % 3 == 0 ? "weight" : i % 3 == 1 ? "exp_avg" : "exp_avg_sq";
    const TensorSpec tensor{.name = "model.layers." + std::to_string(i / 3) + ".mlp." + part,
                            .dtype = DType::kF32,
                            .shape = shape};
    declaration.Add(tensor, i % 3 == 0 ? weight : moment).value();
  }
  return declaration;
}

// The planning time of the slowest rank in one save.
double PlanSeconds(Communicator& comm, Saver& saver, const std::string& directory,
                   const Sources& sources) {
  const auto info = saver.Save(SaveTarget::Directory(directory), {.step = 1}, sources).value();
  const auto nanoseconds = static_cast<std::uint64_t>(info.report.seconds(Phase::kPlan) * 1e9);
  const double slowest = static_cast<double>(comm.AllReduceMax({nanoseconds}).value()[0]) / 1e9;
  if (comm.rank() == 0) std::filesystem::remove_all(directory);
  if (!comm.Barrier().ok()) std::abort();
  return slowest;
}

int Run(const Options& options) {
  const auto comm = MpiCommunicator::Create(MPI_COMM_WORLD).value();
  const Declaration declaration = DeclareModel(*comm, options.tensors);
  const std::vector<float> memory(16 * 8);
  Sources sources(declaration);
  for (std::size_t slot = 0; slot < declaration.tensors().size(); ++slot) {
    const Region held = *declaration.tensors()[slot].region;
    const auto elements = std::span(memory).first(held.element_count());
    if (!sources.Bind(slot, MemoryView::Host(elements)).ok()) return 1;
  }
  const auto engine = Engine::Create().value();
  const std::string target = options.directory + "/sealpoint-bench-plan";
  if (comm->rank() == 0) std::filesystem::remove_all(target);
  std::vector<double> first;
  std::vector<double> second;
  std::vector<double> more;
  for (int round = 0; round < options.rounds; ++round) {
    const auto saver = Saver::Create(*engine, *comm).value();
    first.push_back(PlanSeconds(*comm, *saver, target, sources));
    second.push_back(PlanSeconds(*comm, *saver, target, sources));
    more.push_back(first.back() - second.back());
  }
  if (comm->rank() != 0) return 0;
  std::printf(
      "planning of %d tensors on %d ranks: first save %.1f ms, second %.1f ms; the first "
      "costs %.1f ms more (%.1f to %.1f, %d rounds), target < %.0f: %s\n",
      options.tensors, comm->size(), Median(first) * 1e3, Median(second) * 1e3, Median(more) * 1e3,
      *std::min_element(more.begin(), more.end()) * 1e3,
      *std::max_element(more.begin(), more.end()) * 1e3, options.rounds, kTargetSeconds * 1e3,
      Median(more) < kTargetSeconds ? "met" : "missed");
  return 0;
}

}  // namespace
}  // namespace sealpoint::bench

int main(int argc, char** argv) {
  sealpoint::bench::Options options;
  return sealpoint::bench::MpiMain(
      argc, argv, "Planning in the first save against the second, paired.",
      [&](sealpoint::bench::Arguments& arguments) {
        arguments.Add("--directory", options.directory, "where to save");
        arguments.Add("--tensors", options.tensors, "tensors of the model");
        arguments.Add("--rounds", options.rounds, "rounds of two saves");
      },
      [&] { return sealpoint::bench::Run(options); });
}
