// SPDX-License-Identifier: Apache-2.0
//
// What looks at contents, from the page cache: statistics of each kind of float beside a verified
// load of the same tensors, and the comparison of two checkpoints that differ in one tensor. One
// process; prints one line per figure.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/common/arguments.h"
#include "benchmarks/common/paired.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/commit.h"
#include "sealpoint/content.h"

namespace sealpoint::bench {
namespace {

constexpr std::uint64_t kTensorBytes = 64 * kMiB;

struct Options {
  std::string directory = ".";
  std::uint64_t mib = 1024;
  std::uint64_t diff_mib = 1024;
  int threads = 1;
  int rounds = 5;
  bool keep = false;
};

void Check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
Bytes AsBytesOf(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Weights as a training has them: normal, of deviation 0.02.
Bytes Weights(DType dtype) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.02F);
  std::vector<float> values(kTensorBytes / DTypeSizeBytes(dtype));
  for (float& value : values) value = normal(random);
  if (dtype == DType::kF32) return AsBytesOf(values);
  if (dtype == DType::kF64) return AsBytesOf(std::vector<double>(values.begin(), values.end()));
  std::vector<std::uint16_t> halves;
  halves.reserve(values.size());
  for (const float value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    // Truncated. As f16 these bits are other numbers, as many different ones.
    halves.push_back(static_cast<std::uint16_t>(bits >> 16u));
  }
  return AsBytesOf(halves);
}

// Tensors of 64 MiB. `changed`: an element of the last one is another.
void Save(const std::string& path, DType dtype, Bytes weights, std::uint64_t mib, bool changed) {
  std::filesystem::remove_all(path);
  const auto engine = Engine::Create().value();
  Check(engine->storage().CreateDirectories(path));
  const auto writer = BlobWriter::Create(*engine, path).value();
  const std::uint64_t count = std::max<std::uint64_t>(1, mib * kMiB / kTensorBytes);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (changed && i + 1 == count) weights[weights.size() / 2] ^= std::byte{1};
    const TensorSpec tensor{.name = std::string("w").append(std::to_string(i)),
                            .dtype = dtype,
                            .shape = {kTensorBytes / DTypeSizeBytes(dtype)}};
    Check(writer->Add(tensor, Region::Whole(tensor.shape), MemoryView::Host(weights)));
  }
  const auto summaries = writer->Finish().value();
  Check(Commit(engine->storage(), path, {.step = 1}, summaries).status());
}

double TimeLoad(const Checkpoint& checkpoint, int threads, Bytes& memory) {
  const Stopwatch watch;
  for (std::size_t i = 0; i < checkpoint.tensor_count(); ++i) {
    ReadRequest request;
    request.Add(checkpoint.tensor_name(i), MutableMemoryView::Host(memory));
    Check(checkpoint.Load(request, LoadContract::Partial(), {.threads = threads}).status());
  }
  return watch.seconds();
}

void RunStatistics(const Options& options, DType dtype) {
  const std::string path =
      JoinPath(options.directory, std::string("sealpoint-bench-").append(DTypeName(dtype)));
  Save(path, dtype, Weights(dtype), options.mib, false);
  const auto checkpoint = Checkpoint::Open(path).value();
  Bytes memory(kTensorBytes);
  PairedSeries series{.name = std::string("statistics / verified load, ").append(DTypeName(dtype))};
  for (int round = 0; round <= options.rounds; ++round) {
    const double load = TimeLoad(*checkpoint, options.threads, memory);
    const Stopwatch watch;
    Check(ComputeStatistics(*checkpoint, {.threads = options.threads}).status());
    if (round == 0) continue;  // fills the page cache
    series.baseline_seconds.push_back(load);
    series.candidate_seconds.push_back(watch.seconds());
  }
  PrintSeries(series, static_cast<double>(options.mib * kMiB), 0);
  if (!options.keep) std::filesystem::remove_all(path);
}

void RunCompare(const Options& options) {
  const std::string paths[] = {JoinPath(options.directory, "sealpoint-bench-diff-a"),
                               JoinPath(options.directory, "sealpoint-bench-diff-b")};
  const Bytes weights = Weights(DType::kBf16);
  for (const int i : {0, 1}) Save(paths[i], DType::kBf16, weights, options.diff_mib, i == 1);
  const auto both = static_cast<double>(2 * options.diff_mib * kMiB);
  for (const bool numeric : {false, true}) {
    std::vector<double> seconds;
    CompareReport report;
    for (int round = 0; round <= options.rounds; ++round) {
      // Opened each time: an open checkpoint keeps what it has read of its tables.
      const Stopwatch watch;
      const auto first = Checkpoint::Open(paths[0]).value();
      const auto second = Checkpoint::Open(paths[1]).value();
      report = Compare(*first, *second, {.numeric = numeric, .threads = options.threads}).value();
      seconds.push_back(watch.seconds());
    }
    const auto read = static_cast<double>(report.table_bytes_read + report.payload_bytes_read);
    std::printf("diff%s of 2 x %llu MiB: %.4f s, %llu + %llu bytes read, %.4f %%\n",
                numeric ? " --numeric" : "", static_cast<unsigned long long>(options.diff_mib),
                Median(seconds), static_cast<unsigned long long>(report.table_bytes_read),
                static_cast<unsigned long long>(report.payload_bytes_read), 100 * read / both);
  }
  for (const std::string& path : paths) {
    if (!options.keep) std::filesystem::remove_all(path);
  }
}

}  // namespace
}  // namespace sealpoint::bench

int main(int argc, char** argv) {
  using namespace sealpoint::bench;  // a program of one file
  Options options;
  Arguments arguments("Rates of what looks at contents");
  arguments.Add("--directory", options.directory, "on the file system that is measured");
  arguments.Add("--mib", options.mib, "of each checkpoint of the statistics; 0: leave them out");
  arguments.Add("--diff-mib", options.diff_mib, "of each of two that are compared; 0: likewise");
  arguments.Add("--threads", options.threads, "of one call");
  arguments.Add("--rounds", options.rounds, "besides one that warms up");
  arguments.AddFlag("--keep", options.keep, "leave the checkpoints behind");
  if (const auto status = arguments.Parse(argc, argv)) return *status;
  if (options.mib > 0) {
    for (const auto dtype : {sealpoint::DType::kBf16, sealpoint::DType::kF16,
                             sealpoint::DType::kF32, sealpoint::DType::kF64}) {
      RunStatistics(options, dtype);
    }
  }
  if (options.diff_mib > 0) RunCompare(options);
  return 0;
}
