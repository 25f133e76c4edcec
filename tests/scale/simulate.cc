// SPDX-License-Identifier: Apache-2.0
//
// Prints what a save and a resharded load of a large training cost (docs/evidence/scale.md); run by
// scripts/scale.sh.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "tests/scale/simulation.h"

namespace sealpoint::testing {
namespace {

struct Job {
  Scenario saved{};
  Scenario resharded{};
  Scenario alone{};  // one process
};

// The same trainings of ten times as many parameters.
Scenario LargeMegatron(MegatronSizes sizes) {
  sizes.layers = 256;
  sizes.hidden = 57344;
  return MegatronScenario(sizes);
}

Scenario LargeHsdp(HsdpSizes sizes) {
  sizes.layers = 260;
  sizes.hidden = 61440;
  sizes.inner = 163840;
  return HsdpScenario(sizes);
}

Scenario LargeExperts(ExpertSizes sizes) {
  sizes.layers = 80;
  sizes.experts = 512;
  sizes.hidden = 12288;
  sizes.inner = 6656;
  return ExpertScenario(sizes);
}

// `scale` divides the number of ranks that data is split or replicated over.
std::optional<Job> JobNamed(std::string_view name, std::uint32_t scale) {
  if (name == "megatron") {
    return Job{
        .saved = MegatronScenario({.data_ranks = 128 / scale}),
        .resharded =
            MegatronScenario({.tensor_ranks = 4, .pipeline_ranks = 8, .data_ranks = 64 / scale}),
        .alone = MegatronScenario({.tensor_ranks = 1, .pipeline_ranks = 1, .data_ranks = 1})};
  }
  if (name == "hsdp") {
    return Job{.saved = HsdpScenario({.replica_ranks = 32 / scale}),
               .resharded = HsdpScenario({.shard_ranks = 384, .replica_ranks = 8}),
               .alone = HsdpScenario({.shard_ranks = 1, .replica_ranks = 1})};
  }
  if (name == "experts") {
    return Job{
        .saved = ExpertScenario({.data_ranks = 16 / scale}),
        .resharded = ExpertScenario({.data_ranks = 8, .expert_ranks = 64, .tensor_ranks = 4}),
        .alone = ExpertScenario({.data_ranks = 1, .expert_ranks = 1, .tensor_ranks = 1})};
  }
  // 131,072 ranks, 10^13 parameters.
  if (name == "megatron-10t") {
    return Job{.saved = LargeMegatron({.pipeline_ranks = 32, .data_ranks = 512 / scale}),
               .resharded = LargeMegatron(
                   {.tensor_ranks = 4, .pipeline_ranks = 16, .data_ranks = 256 / scale}),
               .alone = LargeMegatron({.tensor_ranks = 1, .pipeline_ranks = 1, .data_ranks = 1})};
  }
  if (name == "hsdp-10t") {
    return Job{.saved = LargeHsdp({.shard_ranks = 1024, .replica_ranks = 128 / scale}),
               .resharded = LargeHsdp({.shard_ranks = 768, .replica_ranks = 32}),
               .alone = LargeHsdp({.shard_ranks = 1, .replica_ranks = 1})};
  }
  if (name == "experts-10t") {
    return Job{
        .saved = LargeExperts({.data_ranks = 32 / scale, .expert_ranks = 512}),
        .resharded = LargeExperts({.data_ranks = 16, .expert_ranks = 256, .tensor_ranks = 4}),
        .alone = LargeExperts({.data_ranks = 1, .expert_ranks = 1, .tensor_ranks = 1})};
  }
  return std::nullopt;
}

void Line(const char* what, double value, const char* unit) {
  std::printf("  %-58s %14.3f %s\n", what, value, unit);
  std::fflush(stdout);
}

void PrintSave(const ScaleFigures& f) {
  Line("ranks", static_cast<double>(f.ranks), "");
  Line("regions that a rank holds, at most", static_cast<double>(f.slots_max), "");
  Line("declare, per rank, mean", f.declare_seconds.mean() * 1e3, "ms");
  Line("declare, per rank, max", f.declare_seconds.max * 1e3, "ms");
  Line("plan the first save, per rank, mean", f.first_plan_seconds.mean() * 1e3, "ms");
  Line("plan the first save, per rank, max", f.first_plan_seconds.max * 1e3, "ms");
  Line("plan the first save, all ranks", f.first_plan_seconds.sum, "s");
  Line("plan a later save, per rank, mean", f.later_plan_seconds.mean() * 1e3, "ms");
  Line("plan a later save, per rank, max", f.later_plan_seconds.max * 1e3, "ms");
  Line("declared to owners, per rank, max", f.declared_bytes.max / 1e6, "MB");
  Line("declared to one owner, max", f.owned_bytes.max / 1e6, "MB");
  Line("owner of the most names", f.owner_seconds * 1e3, "ms");
  if (f.adds_up) std::printf("  declarations add up\n");
  Line("payload", static_cast<double>(f.raw_bytes) / 1e12, "TB");
  Line("blobs", static_cast<double>(f.blobs), "");
  Line("shards", static_cast<double>(f.shards) / 1e6, "million");
  Line("chunk records", static_cast<double>(f.records) / 1e6, "million");
  Line("summaries of all ranks", static_cast<double>(f.summary_bytes) / 1e6, "MB");
}

void PrintCommit(const ScaleFigures& f) {
  Line("entries to owners, per rank, max", f.entry_bytes.max / 1e3, "kB");
  Line("entries at one owner, max", f.merged_bytes.max / 1e6, "MB");
  Line("merge at a owner, max", f.merge_seconds.max * 1e3, "ms");
  Line("merge at all owners", f.merge_seconds.sum, "s");
  Line("gathered to rank 0", static_cast<double>(f.gathered_bytes) / 1e6, "MB");
  Line("rank 0: index made", f.join_seconds, "s");
  Line("rank 0: index checked", f.check_seconds, "s");
  Line("rank 0: memory of the commit", static_cast<double>(f.commit_memory_bytes) / 1e6, "MB");
  Line("index", static_cast<double>(f.index_bytes) / 1e6, "MB");
  Line("index per shard", f.bytes_per_shard, "bytes");
}

void PrintLoad(const char* what, const LoadFigures& load) {
  std::printf("  %s\n", what);
  Line("  planned in", load.seconds * 1e3, "ms");
  Line("  memory", static_cast<double>(load.memory_bytes) / 1e6, "MB");
  Line("  wanted", static_cast<double>(load.plan.bytes_requested) / 1e9, "GB");
  Line("  read of chunk tables", static_cast<double>(load.plan.table_bytes_read) / 1e6, "MB");
  Line("  to read / wanted", load.plan.amplification, "");
  Line("  chunks", static_cast<double>(load.plan.chunks), "");
  Line("  files", static_cast<double>(load.plan.files), "");
}

int Run(std::string_view name, std::uint32_t scale, std::size_t stride) {
  const std::optional<Job> job = JobNamed(name, scale);
  if (!job) return EXIT_FAILURE;
  std::printf("%s: %s, %.4g parameters, %llu tensors\n", job->saved.name.c_str(),
              job->saved.title.c_str(), static_cast<double>(ParameterCount(job->saved)),
              static_cast<unsigned long long>(TensorCount(job->saved)));
  Simulation simulation(job->saved, {.threads = 2, .stride = stride});
  simulation.PlanAndWrite();
  PrintSave(simulation.figures());
  if (stride > 1) return EXIT_SUCCESS;
  simulation.MergeAndCommit();
  PrintCommit(simulation.figures());
  simulation.Open();
  Line("open", simulation.figures().open_seconds, "s");
  Line("open: memory", static_cast<double>(simulation.figures().open_memory_bytes) / 1e6, "MB");
  PrintLoad(("one rank of " + job->resharded.title).c_str(),
            simulation.PlanLoad(job->resharded, job->resharded.mesh.size() / 2, ""));
  PrintLoad("one process, the model", simulation.PlanLoad(job->alone, 0, "model"));
  if (scale == 1) return EXIT_SUCCESS;
  const Bytes index = simulation.IndexOfSummaries();
  const ByteSpan stored = simulation.checkpoint().index_bytes();
  const bool is_same = std::equal(index.begin(), index.end(),
                                  stored.end() - static_cast<std::ptrdiff_t>(index.size()));
  std::printf("  the index of all summaries is %s\n", is_same ? "the same" : "another");
  return is_same ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace sealpoint::testing

int main(int argc, char** argv) {
  const auto number = [&](int i) -> unsigned long {
    return argc > i ? std::strtoul(argv[i], nullptr, 10) : 1;
  };
  if (argc < 2 || number(2) == 0 || number(3) == 0) {
    std::fprintf(
        stderr,
        "usage: %s megatron|hsdp|experts[-10t] [divisor of the data ranks [stride of ranks]]\n",
        argv[0]);
    return EXIT_FAILURE;
  }
  return sealpoint::testing::Run(argv[1], static_cast<std::uint32_t>(number(2)), number(3));
}
