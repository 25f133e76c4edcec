// SPDX-License-Identifier: Apache-2.0
//
// Versions of weights: a save with a base, and its application in place, beside the common pipeline
// of exclusive or, zstd at level 1 and Adler-32 over whole tensors. One process; rates are raw
// bytes per second of processor time, so that threads do not count twice.
#include <zlib.h>
#include <zstd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/common/arguments.h"
#include "benchmarks/common/paired.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/communicator.h"
#include "sealpoint/saver.h"

namespace sealpoint::bench {
namespace {

double ProcessorSeconds() {
  std::timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

template <typename T>
T Require(Result<T> result, const char* what) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "%s: %s\n", what, result.error().ToString().c_str());
  std::exit(1);
}

using Weights = std::vector<std::uint16_t>;

// bf16 weights of a normal distribution.
Weights NormalWeights(std::size_t count) {
  std::mt19937_64 engine(1);
  std::normal_distribution<float> normal(0, 0.02F);
  Weights weights(count);
  for (std::uint16_t& weight : weights) {
    weight = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(engine)) >> 16);
  }
  return weights;
}

// Changes elements by one or two units in the last place, as an optimizer step with a small rate.
Weights Stepped(Weights weights, double share, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::geometric_distribution<std::size_t> gap(share);
  for (std::size_t at = gap(engine); at < weights.size(); at += 1 + gap(engine)) {
    const auto change = static_cast<std::uint16_t>(1 + engine() % 2);
    weights[at] =
        static_cast<std::uint16_t>(engine() % 2 == 0 ? weights[at] + change : weights[at] - change);
  }
  return weights;
}

struct Cost {
  double publish_seconds = 0;
  double apply_seconds = 0;
  double bytes = 0;
  double seconds() const { return publish_seconds + apply_seconds; }
};

// Saves `now` against `base`, then changes `memory`, which holds the base.
class Versions {
 public:
  explicit Versions(std::size_t count) {
    declaration_
        .Add({.tensor = {.name = "w", .dtype = DType::kBf16, .shape = {count / 4096, 4096}}})
        .value();
    engine_ = Require(Engine::Create({.storage = storage_}), "engine");
    saver_ = Require(Saver::Create(*engine_, *self_), "saver");
  }

  CommitInfo SaveFull(const Weights& weights) {
    const Sources sources = Bound(weights);
    return Require(saver_->Save(SaveTarget::InSeries("series"), {.step = step_++}, sources),
                   "save");
  }
  Cost PublishAndApply(const CommitInfo& full, const Weights& base, const Weights& now,
                       Weights& memory) {
    Cost cost;
    const Sources sources = Bound(now);
    const Sources base_sources = Bound(base);
    double begin = ProcessorSeconds();
    const CommitInfo delta = Require(
        saver_->Save(SaveTarget::InSeries("series"),
                     {.step = step_++, .base = SaveBase{full.directory, &base_sources}}, sources),
        "save with a base");
    cost.publish_seconds = ProcessorSeconds() - begin;
    cost.bytes = static_cast<double>(delta.total_bytes);
    begin = ProcessorSeconds();
    const auto checkpoint =
        Require(Checkpoint::Open(delta.directory, {.storage = storage_}), "open");
    ReadRequest request;
    request.Add("w", MutableMemoryView::Host(static_cast<void*>(memory.data()), memory.size() * 2));
    Require(checkpoint->Load(request, {}, {.threads = 1, .holds_base = true}), "apply");
    cost.apply_seconds = ProcessorSeconds() - begin;
    return cost;
  }

 private:
  Sources Bound(const Weights& weights) const {
    Sources sources(declaration_);
    const Status bound = sources.Bind(
        "w", MemoryView::Host(static_cast<const void*>(weights.data()), weights.size() * 2));
    if (!bound.ok()) std::fprintf(stderr, "%s\n", bound.ToString().c_str());
    return sources;
  }

  const std::shared_ptr<Storage> storage_ = MemoryStorage();
  const std::unique_ptr<Communicator> self_ = SelfCommunicator();
  Declaration declaration_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Saver> saver_;
  std::uint64_t step_ = 1;
};

// The common pipeline, in C++ and in memory: what it costs in Python at least.
Cost Pipeline(const Weights& base, const Weights& now, Weights& memory) {
  Cost cost;
  const std::size_t size = now.size() * sizeof(now[0]);
  double begin = ProcessorSeconds();
  Weights changes(now.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    changes[i] = static_cast<std::uint16_t>(now[i] ^ base[i]);
  }
  std::vector<char> frame(ZSTD_compressBound(size));
  frame.resize(ZSTD_compress(frame.data(), frame.size(), changes.data(), size, 1));
  const auto* bytes = reinterpret_cast<const Bytef*>(now.data());
  const uLong sum = adler32_z(adler32_z(0, nullptr, 0), bytes, size);
  cost.publish_seconds = ProcessorSeconds() - begin;
  cost.bytes = static_cast<double>(frame.size());
  begin = ProcessorSeconds();
  ZSTD_decompress(changes.data(), size, frame.data(), frame.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    memory[i] = static_cast<std::uint16_t>(memory[i] ^ changes[i]);
  }
  const auto* found = reinterpret_cast<const Bytef*>(memory.data());
  if (adler32_z(adler32_z(0, nullptr, 0), found, size) != sum) std::fprintf(stderr, "wrong sum\n");
  cost.apply_seconds = ProcessorSeconds() - begin;
  return cost;
}

void Measure(double share, std::size_t mib, int rounds) {
  const std::size_t count = mib * 1024 * 1024 / sizeof(std::uint16_t);
  const double raw = static_cast<double>(count) * sizeof(std::uint16_t);
  const Weights base = NormalWeights(count);
  const Weights now = Stepped(base, share, 2);
  Versions versions(count);
  const CommitInfo full = versions.SaveFull(base);
  PairedSeries series{.name = "publish and apply"};
  std::vector<double> publish;
  std::vector<double> apply;
  Cost ours;
  Cost pipeline;
  for (int i = 0; i <= rounds; ++i) {  // the first one maps memory
    Weights memory = base;
    pipeline = Pipeline(base, now, memory);
    memory = base;
    ours = versions.PublishAndApply(full, base, now, memory);
    if (memory != now) std::fprintf(stderr, "wrong weights\n");
    if (i == 0) continue;
    series.baseline_seconds.push_back(pipeline.seconds());
    series.candidate_seconds.push_back(ours.seconds());
    publish.push_back(raw / ours.publish_seconds / 1e9);
    apply.push_back(raw / ours.apply_seconds / 1e9);
  }
  const double entropy = -(share * std::log2(share) + (1 - share) * std::log2(1 - share)) / 16;
  std::printf(
      "%.1f %% of bf16 elements changed, %zu MiB: %.3f %% of the bytes (pipeline %.3f %%, entropy "
      "of the positions %.3f %%); publish %.2f, apply %.2f GB/s of processor time\n",
      100 * share, mib, 100 * ours.bytes / raw, 100 * pipeline.bytes / raw, 100 * entropy,
      Median(publish), Median(apply));
  PrintSeries(series, raw, 5);
}

}  // namespace
}  // namespace sealpoint::bench

int main(int argc, char** argv) {
  int rounds = 11;
  int mib = 256;
  sealpoint::bench::Arguments arguments("Deltas beside exclusive or, zstd 1 and Adler-32.");
  arguments.Add("--rounds", rounds, "of which the median counts");
  arguments.Add("--mib", mib, "size of the weights");
  if (const auto status = arguments.Parse(argc, argv)) return *status;
  for (const double share : {0.01, 0.03, 0.1}) {
    sealpoint::bench::Measure(share, static_cast<std::size_t>(mib), rounds);
  }
  return 0;
}
