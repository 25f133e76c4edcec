// SPDX-License-Identifier: Apache-2.0
//
// An index of a million shards: built, checked by the reader's whole pass, opened, one tensor
// found; and its size per shard. Everything in memory; prints one line per figure.
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/common/arguments.h"
#include "benchmarks/common/paired.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/commit.h"

namespace sealpoint::bench {
namespace {

struct Options {
  std::uint64_t tensors = 100000;
  int blobs = 16;
  int rounds = 11;
};

constexpr std::uint64_t kShardsPerTensor = 10;

std::string TensorName(std::uint64_t i) {
  return "layers." + std::to_string(i / 16) + ".block." + std::to_string(i % 16) + ".weight";
}

// How the ten shards of each tensor lie: as a 5 x 2 grid, or so that no grid describes them.
std::vector<Region> ShardRegions(bool is_grid) {
  std::vector<Region> regions;
  for (std::uint64_t i = 0; i < kShardsPerTensor / 2; ++i) {
    const std::uint64_t cut = !is_grid && i % 2 != 0 ? 1 : 2;
    regions.push_back(Region::Of({.offset = {i, 0}, .extent = {1, cut}}));
    regions.push_back(Region::Of({.offset = {i, cut}, .extent = {1, 4 - cut}}));
  }
  return regions;
}

std::vector<BlobSummary> WriteBlobs(const Options& options, Engine& engine,
                                    const std::string& directory, bool is_grid) {
  const std::vector<Region> regions = ShardRegions(is_grid);
  const std::vector<std::byte> memory(64);
  std::vector<BlobSummary> summaries;
  for (int blob = 0; blob < options.blobs; ++blob) {
    const auto writer = BlobWriter::Create(engine, directory).value();
    for (std::uint64_t i = 0; i < options.tensors; ++i) {
      const TensorSpec tensor{.name = TensorName(i), .dtype = DType::kUInt8, .shape = {5, 4}};
      for (std::size_t s = 0; s < regions.size(); ++s) {
        if ((i + s) % static_cast<std::uint64_t>(options.blobs) != static_cast<unsigned>(blob)) {
          continue;
        }
        if (!writer
                 ->Add(tensor, regions[s],
                       MemoryView::Host(std::span(memory).first(regions[s].element_count())))
                 .ok())
          std::abort();
      }
    }
    for (BlobSummary& summary : writer->Finish().value()) summaries.push_back(std::move(summary));
  }
  return summaries;
}

void PrintFigure(const std::string& what, double value, const char* unit, double target) {
  std::printf("%-44s %10.3f %-10s target < %g: %s\n", what.c_str(), value, unit, target,
              value < target ? "met" : "missed");
  std::fflush(stdout);
}

void Measure(const Options& options, bool is_grid) {
  const std::shared_ptr<Storage> storage = MemoryStorage();
  const auto engine = Engine::Create({.storage = storage}).value();
  const std::string source = "blobs";
  if (!storage->CreateDirectories(source).ok()) std::abort();
  const std::vector<BlobSummary> summaries = WriteBlobs(options, *engine, source, is_grid);
  std::vector<double> build;
  std::vector<double> check;
  std::vector<double> open;
  std::vector<double> find;
  double index_bytes = 0;
  for (int round = 0; round <= options.rounds; ++round) {
    const CommitInfo info = Commit(*storage, source, {.step = 1}, summaries).value();
    const Stopwatch open_watch;
    const auto checkpoint = Checkpoint::Open(source, {.storage = storage}).value();
    const double open_seconds = open_watch.seconds();
    const Stopwatch find_watch;
    constexpr std::uint64_t kLookups = 1000;
    for (std::uint64_t i = 0; i < kLookups; ++i) {
      if (!checkpoint->FindTensor(TensorName(i * 7919 % options.tensors))) std::abort();
    }
    const double find_seconds = find_watch.seconds() / kLookups;
    const auto directory = storage->OpenDirectory(source).value();
    if (!directory->Remove("COMMIT").ok()) std::abort();
    if (!directory->Remove(info.attempt.ToHex() + ".index").ok()) std::abort();
    index_bytes = static_cast<double>(info.index_bytes);
    if (round == 0) continue;
    build.push_back(info.report.seconds(Phase::kBuildIndex) * 1e3);
    check.push_back(info.report.seconds(Phase::kCheckIndex) * 1e3);
    open.push_back(open_seconds * 1e3);
    find.push_back(find_seconds * 1e6);
  }
  const double shards = static_cast<double>(options.tensors * kShardsPerTensor);
  const std::string kind = is_grid ? "grid" : "2-D box list";
  std::printf("%s: %.0f shards in %.0f tensors, %d blobs\n", kind.c_str(), shards,
              static_cast<double>(options.tensors), options.blobs);
  PrintFigure("  index built (median)", Median(build), "ms", 200);
  PrintFigure("  semantically verified (median)", Median(check), "ms", 50);
  PrintFigure("  opened (median)", Median(open), "ms", 60);
  PrintFigure("  one tensor found (median)", Median(find), "us", 2);
  PrintFigure("  index size per shard", index_bytes / shards, "bytes", is_grid ? 16 : 64);
}

}  // namespace
}  // namespace sealpoint::bench

int main(int argc, char** argv) {
  sealpoint::bench::Options options;
  sealpoint::bench::Arguments arguments("Figures of a large index.");
  arguments.Add("--tensors", options.tensors, "tensors of ten shards each");
  arguments.Add("--blobs", options.blobs, "blobs that the shards lie in");
  arguments.Add("--rounds", options.rounds, "counted rounds");
  if (const auto status = arguments.Parse(argc, argv)) return *status;
  sealpoint::bench::Measure(options, true);
  sealpoint::bench::Measure(options, false);
  return 0;
}
