// SPDX-License-Identifier: Apache-2.0
//
// The work of ckpt verify at full level (O_DIRECT, every digest compared) against an unverified
// O_DIRECT read of the same files by the same number of threads. One process; prints one line per
// thread count.
#include <atomic>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/common/arguments.h"
#include "benchmarks/common/paired.h"
#include "benchmarks/common/raw_file.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/commit.h"
#include "sealpoint/verify.h"

namespace sealpoint::bench {
namespace {

struct Options {
  std::string directory = ".";
  std::uint64_t mib = 1024;
  int blobs = 4;
  int rounds = 11;
  // The number of buffers that each thread of the baseline reads into in turn. Verification needs
  // several, to read ahead. A single one that is reused would stay in the cache, which is not
  // possible for a reader that keeps the bytes.
  int raw_buffers = 4;
  std::vector<int> threads = {1, 2};
};

void MakeCheckpoint(const Options& options, const std::string& directory) {
  std::filesystem::remove_all(directory);
  const auto engine = Engine::Create().value();
  Status made = engine->storage().CreateDirectories(directory);
  const auto blob_count = static_cast<std::uint64_t>(options.blobs);
  const std::uint64_t floats = (options.mib << 20) / sizeof(float) / blob_count;
  const AlignedMemory memory = AllocateAligned(floats * sizeof(float), Pages::kHuge);
  std::vector<BlobSummary> summaries;
  for (int i = 0; i < options.blobs && made.ok(); ++i) {
    const auto writer = BlobWriter::Create(*engine, directory).value();
    // Not "w" + …: g++ 12 falsely warns of it at -O3 (-Wrestrict).
    const TensorSpec tensor{.name = std::string("w").append(std::to_string(i)),
                            .dtype = DType::kF32,
                            .shape = {floats}};
    made = writer->Add(tensor, Region::Whole(tensor.shape),
                       MemoryView::Host(memory.get(), floats * sizeof(float)));
    if (made.ok()) summaries.push_back(writer->Finish().value().front());
  }
  if (!made.ok()) {
    std::fprintf(stderr, "%s\n", made.ToString().c_str());
    std::exit(1);
  }
  Commit(engine->storage(), directory, {.step = 1}, summaries).value();
}

// Ranges of 4 MiB of all blobs, handed out in order to the threads.
double TimeRaw(const std::vector<std::pair<std::string, std::uint64_t>>& files, int thread_count,
               int buffer_count) {
  struct Range {
    const RawReader* file;
    std::uint64_t offset;
    std::uint64_t length;
  };
  std::vector<AlignedMemory> buffers;
  const auto ring_size = static_cast<std::size_t>(buffer_count);
  for (int i = 0; i < thread_count; ++i) {
    buffers.push_back(AllocateAligned(kRawPieceSize * ring_size, Pages::kHuge));
  }
  const Stopwatch watch;
  std::deque<RawReader> readers;
  std::vector<Range> ranges;
  for (const auto& [path, size] : files) {
    const RawReader& reader = readers.emplace_back(path);
    for (std::uint64_t at = 0; at < size; at += kRawPieceSize) {
      ranges.push_back({&reader, at, std::min<std::uint64_t>(kRawPieceSize, size - at)});
    }
  }
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (const AlignedMemory& buffer : buffers) {
    threads.emplace_back([&ranges, &next, ring_size, memory = buffer.get()] {
      std::size_t slot = 0;
      for (std::size_t at = next++; at < ranges.size(); at = next++) {
        std::byte* const target = memory + kRawPieceSize * (slot++ % ring_size);
        ranges[at].file->Read(ranges[at].offset, ranges[at].length, {target, kRawPieceSize});
      }
    });
  }
  threads.clear();
  return watch.seconds();
}

double TimeVerify(const std::string& directory, int thread_count) {
  const Stopwatch watch;
  const VerifyReport report = Verify(directory, {.threads = thread_count}).value();
  const double seconds = watch.seconds();
  if (report.verdict == Verdict::kCommitted) return seconds;
  std::fprintf(stderr, "%s\n", report.violations.front().ToString().c_str());
  std::exit(1);
}

void Run(const Options& options) {
  const std::string directory = JoinPath(options.directory, "sealpoint-bench-verify");
  MakeCheckpoint(options, directory);
  std::vector<std::pair<std::string, std::uint64_t>> files;
  double bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".blob") continue;
    files.emplace_back(entry.path().string(), entry.file_size());
    bytes += static_cast<double>(entry.file_size());
  }
  for (const int thread_count : options.threads) {
    PairedSeries series{.name = "verify / raw reads, " + std::to_string(thread_count) + " threads"};
    for (int round = 0; round <= options.rounds; ++round) {
      const double raw = TimeRaw(files, thread_count, options.raw_buffers);
      const double verify = TimeVerify(directory, thread_count);
      if (round == 0) continue;
      series.baseline_seconds.push_back(raw);
      series.candidate_seconds.push_back(verify);
    }
    PrintSeries(series, bytes, 0.95);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace sealpoint::bench

int main(int argc, char** argv) {
  sealpoint::bench::Options options;
  sealpoint::bench::Arguments arguments(
      "Full verification against unverified O_DIRECT reads, paired.");
  arguments.Add("--directory", options.directory, "on the file system to measure");
  arguments.Add("--mib", options.mib, "payload in MiB");
  arguments.Add("--blobs", options.blobs, "files the payload is divided into");
  arguments.Add("--rounds", options.rounds, "counted rounds");
  arguments.Add("--raw-buffers", options.raw_buffers, "buffers per thread of the baseline");
  arguments.Add("--threads", options.threads, "thread counts to measure");
  if (const auto status = arguments.Parse(argc, argv)) return *status;
  sealpoint::bench::Run(options);
  return 0;
}
