// SPDX-License-Identifier: Apache-2.0
//
// One process reads column slices of a matrix that was saved as one shard, or cut into column
// boxes. Prints how many bytes are read per requested byte.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "benchmarks/common/arguments.h"
#include "benchmarks/common/paired.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/commit.h"
#include "sealpoint/engine.h"

namespace sealpoint::bench {
namespace {

struct Options {
  std::string directory = ".";
  std::uint64_t extent = 8192;
  int rounds = 11;
};

// A matrix of f32 in `box_count` boxes of whole columns.
bool Save(const std::string& target, const Options& options, std::uint64_t box_count) {
  const auto engine = Engine::Create().value();
  const std::uint64_t width = options.extent / box_count;
  const std::vector<float> box(options.extent * width);
  const TensorSpec tensor{
      .name = "w", .dtype = DType::kF32, .shape = {options.extent, options.extent}};
  std::filesystem::create_directories(target);
  const auto writer = BlobWriter::Create(*engine, target).value();
  for (std::uint64_t i = 0; i < box_count; ++i) {
    const Box columns{.offset = {0, i * width}, .extent = {options.extent, width}};
    if (!writer->Add(tensor, Region::Of(columns), MemoryView::Host(box)).ok()) return false;
  }
  const auto summaries = writer->Finish().value();
  return Commit(engine->storage(), target, {.step = 1}, summaries).ok();
}

// Reads columns [0, width) and prints a row.
void Measure(const std::string& target, const Options& options, std::uint64_t box_count,
             std::uint64_t width) {
  const auto checkpoint = Checkpoint::Open(target, {.direct_io = true}).value();
  std::vector<float> destination(options.extent * width);
  ReadRequest request;
  request.Add("w", Box{.offset = {0, 0}, .extent = {options.extent, width}},
              MutableMemoryView::Host(destination));
  std::vector<double> seconds;
  PlanSummary plan;
  for (int round = 0; round <= options.rounds; ++round) {
    const Stopwatch watch;
    plan = checkpoint->Load(request, LoadContract::Partial()).value().plan;
    if (round > 0) seconds.push_back(watch.seconds());
  }
  std::printf(
      "saved in %3llu boxes, %5llu of %llu columns: read / wanted %7.3f, %4llu ranges, "
      "%.1f ms\n",
      static_cast<unsigned long long>(box_count), static_cast<unsigned long long>(width),
      static_cast<unsigned long long>(options.extent), plan.amplification,
      static_cast<unsigned long long>(plan.requests), Median(seconds) * 1e3);
}

int Run(const Options& options) {
  for (const std::uint64_t box_count : {1u, 8u, 64u}) {
    const std::string target = options.directory + "/sealpoint-bench-slices";
    std::filesystem::remove_all(target);
    if (!Save(target, options, box_count)) return 1;
    for (const std::uint64_t part : {2u, 8u, 64u}) {
      Measure(target, options, box_count, options.extent / part);
    }
    std::filesystem::remove_all(target);
  }
  return 0;
}

}  // namespace
}  // namespace sealpoint::bench

int main(int argc, char** argv) {
  sealpoint::bench::Options options;
  sealpoint::bench::Arguments arguments(
      "Column slices of a matrix, by how it was cut when it was saved.");
  arguments.Add("--directory", options.directory, "on the file system to measure");
  arguments.Add("--extent", options.extent, "rows and columns, a multiple of 64");
  arguments.Add("--rounds", options.rounds, "counted rounds");
  if (const auto status = arguments.Parse(argc, argv)) return *status;
  return sealpoint::bench::Run(options);
}
