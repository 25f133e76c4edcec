// SPDX-License-Identifier: Apache-2.0
//
// Rates of fingerprints beside XXH3-128 of the same bytes in the cache: one process, one thread.
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "benchmarks/common/arguments.h"
#include "benchmarks/common/paired.h"
#include "sealpoint/digest.h"
#include "sealpoint/fingerprint.h"

namespace sealpoint::bench {
namespace {

struct Kind {
  const char* name;
  std::uint32_t element_size;
  Shape shape;
};

void Measure(const Kind& kind, int rounds) {
  const std::uint64_t size = ElementCount(kind.shape).value() * kind.element_size;
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(i * 0x9e3779b97f4a7c15 >> 56);
  }
  const MemoryView memory = MemoryView::Host(static_cast<const void*>(bytes.data()), size);
  constexpr int kRepeats = 64;
  const auto rate = [&](const auto& compute) {
    const Stopwatch watch;
    for (int i = 0; i < kRepeats; ++i) compute();
    return static_cast<double>(size) * kRepeats / watch.seconds() / 1e9;
  };
  std::vector<double> digests;
  std::vector<double> fingerprints;
  std::uint64_t used = 0;
  for (int i = 0; i < rounds; ++i) {
    digests.push_back(rate([&] {
      used += static_cast<std::uint64_t>(ComputeDigest(std::as_bytes(std::span(bytes))).bytes[0]);
    }));
    fingerprints.push_back(rate([&] {
      const Region whole = Region::Whole(kind.shape);
      used += ComputeFingerprint(kind.shape, kind.element_size, whole, memory).value().values()[0];
    }));
  }
  std::printf("%-24s fingerprint %6.2f GB/s, XXH3-128 %6.2f GB/s (medians, %d rounds)%s\n",
              kind.name, Median(fingerprints), Median(digests), rounds, used == 0 ? " " : "");
}

}  // namespace
}  // namespace sealpoint::bench

int main(int argc, char** argv) {
  int rounds = 11;
  sealpoint::bench::Arguments arguments("Fingerprints: rates beside XXH3-128.");
  arguments.Add("--rounds", rounds, "of which the median counts");
  if (const auto status = arguments.Parse(argc, argv)) return *status;
  // About 512 KiB each.
  const sealpoint::bench::Kind kinds[] = {
      {"bf16 [64, 4096]", 2, {64, 4096}},  {"f32 [64, 2048]", 4, {64, 2048}},
      {"f32 [131072]", 4, {131072}},       {"f8 [64, 8192]", 1, {64, 8192}},
      {"i64 [64, 1024]", 8, {64, 1024}},   {"bf16 [1024, 256]", 2, {1024, 256}},
      {"bf16 [4096, 64]", 2, {4096, 64}},  {"f32 [128, 114, 3, 3]", 4, {128, 114, 3, 3}},
      {"f32 [131072, 1]", 4, {131072, 1}},
  };
  for (const sealpoint::bench::Kind& kind : kinds) sealpoint::bench::Measure(kind, rounds);
  return 0;
}
