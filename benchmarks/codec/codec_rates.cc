// SPDX-License-Identifier: Apache-2.0
//
// What the codecs cost and save on states of training: a blob is written to memory with each. One
// process, one thread; prints for each kind of tensor and each codec the stored size and the rate,
// both also as ratios to no codec. Weights are normal, and so are first moments; second moments
// are squares of such.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/common/arguments.h"
#include "benchmarks/common/paired.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/engine.h"
#include "sealpoint/storage.h"

namespace sealpoint::bench {
namespace {

constexpr std::size_t kElements = 16u << 20;

struct State {
  std::string name;
  DType dtype;
  Bytes bytes;
};

State MakeState(const std::string& name, DType dtype, const std::function<float(float)>& of) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  State state{.name = name, .dtype = dtype, .bytes = {}};
  const std::size_t size = DTypeSizeBytes(dtype);
  state.bytes.resize(kElements * size);
  for (std::size_t i = 0; i < kElements; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(of(normal(random)));
    // The upper half of binary32, rounded.
    const std::uint32_t stored = dtype == DType::kBf16 ? (bits + 0x8000u) >> 16 : bits;
    std::memcpy(state.bytes.data() + i * size, &stored, size);
  }
  return state;
}

struct Choice {
  const char* name;
  Codec codec;
  int level;
};

// Seconds, and the bytes of the blob.
std::pair<double, std::uint64_t> Write(Engine& engine, const State& state, const Choice& choice) {
  static int count = 0;
  // Not "/" + …: g++ 12 falsely warns of it at -O3 (-Wrestrict).
  const std::string directory = std::string("/").append(std::to_string(count++));
  Status status = engine.storage().CreateDirectories(directory);
  const TensorSpec tensor{.name = "t",
                          .dtype = state.dtype,
                          .shape = {kElements},
                          .codec = choice.codec,
                          .codec_level = choice.level};
  const Stopwatch watch;
  const auto writer = BlobWriter::Create(engine, directory).value();
  if (status.ok()) {
    status = writer->Add(tensor, Region::Whole(tensor.shape), MemoryView::Host(state.bytes));
  }
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::exit(1);
  }
  const std::vector<BlobSummary> summaries = writer->Finish().value();
  const double seconds = watch.seconds();
  const auto opened = engine.storage().OpenDirectory(directory).value();
  const std::string name = summaries.front().blob().ToHex() + ".blob";
  const std::uint64_t size = opened->Stat(name).value().size_bytes;
  static_cast<void>(opened->Remove(name));
  return {seconds, size};
}

void Compare(Engine& engine, const State& state, int rounds) {
  constexpr Choice kChoices[] = {{"none", Codec::kNone, 1},
                                 {"zstd, level 1", Codec::kZstd, 1},
                                 {"byte split, level 1", Codec::kByteSplitZstd, 1},
                                 {"byte split, level 2", Codec::kByteSplitZstd, 2}};
  std::vector<std::vector<double>> seconds(std::size(kChoices));
  std::vector<std::uint64_t> sizes(std::size(kChoices));
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < std::size(kChoices); ++i) {
      const auto [time, size] = Write(engine, state, kChoices[i]);
      seconds[i].push_back(time);
      sizes[i] = size;
    }
  }
  for (std::size_t i = 0; i < std::size(kChoices); ++i) {
    const double median = Median(seconds[i]);
    std::printf("%-12s %-20s %6.2f %% of the bytes, %5.2f GB/s, time x %.2f\n", state.name.c_str(),
                kChoices[i].name,
                100.0 * static_cast<double>(sizes[i]) / static_cast<double>(state.bytes.size()),
                static_cast<double>(state.bytes.size()) / median / 1e9,
                median / Median(seconds[0]));
  }
}

void CompareAll(int rounds) {
  const auto engine = Engine::Create({.storage = MemoryStorage()}).value();
  const auto compare = [&](const char* name, DType dtype, const std::function<float(float)>& of) {
    Compare(*engine, MakeState(name, dtype, of), rounds);
  };
  compare("bf16 weights", DType::kBf16, [](float x) { return 0.02F * x; });
  compare("f32 weights", DType::kF32, [](float x) { return 0.02F * x; });
  compare("f32 moments", DType::kF32, [](float x) { return 1e-8F * x * x; });
}

}  // namespace
}  // namespace sealpoint::bench

int main(int argc, char** argv) {
  int rounds = 5;
  sealpoint::bench::Arguments arguments("Codecs: sizes and rates on states of training.");
  arguments.Add("--rounds", rounds, "of which the median counts");
  if (const auto status = arguments.Parse(argc, argv)) return *status;
  sealpoint::bench::CompareAll(rounds);
  return 0;
}
