// SPDX-License-Identifier: Apache-2.0
//
// Makes a series as a training does, in the directory that the first argument names: as many saves
// as the second says, 10 steps apart. Values change from step to step, but those of "base", which
// are frozen; layer 1 has NaN and infinity at step 50 alone. Names and provenance hold HTML.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/communicator.h"
#include "sealpoint/engine.h"
#include "sealpoint/saver.h"
#include "tests/cli/take.h"

namespace {

using namespace sealpoint;  // a program of one file

struct Held {
  std::string name;
  std::string group;
  std::vector<float> values;
};

constexpr std::uint64_t kStepOfNan = 50;

void Train(std::uint64_t step, std::vector<Held>& tensors) {
  for (Held& tensor : tensors) {
    if (!tensor.group.empty()) continue;
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      tensor.values[i] = std::sin(static_cast<float>(i + step)) + static_cast<float>(step) / 100;
    }
    if (step != kStepOfNan || tensor.name != "model.layer.1.weight") continue;
    tensor.values[3] = std::numeric_limits<float>::quiet_NaN();
    tensor.values[7] = -std::numeric_limits<float>::infinity();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  std::vector<Held> tensors = {{"base.table", "base", std::vector<float>(4096, 0.5F)}};
  for (const char* name : {"model.layer.0.weight", "model.layer.1.weight", "<img src=x>.\"w'&"}) {
    tensors.push_back({name, "", std::vector<float>(256)});
  }
  const auto comm = SelfCommunicator();
  const auto engine = Take(Engine::Create());
  const auto saver =
      Take(Saver::Create(*engine, *comm, {.frozen_groups = {"base"}, .frozen_full_every = 1000}));
  Declaration held;
  for (const Held& tensor : tensors) {
    Take(held.Add({.tensor = {.name = tensor.name,
                              .dtype = DType::kF32,
                              .shape = {tensor.values.size()},
                              .group = tensor.group}}));
  }
  for (std::uint64_t step = 10; step <= 10 * std::strtoull(argv[2], nullptr, 10); step += 10) {
    Train(step, tensors);
    Sources sources(held);
    for (const Held& tensor : tensors) {
      if (!sources.Bind(tensor.name, MemoryView::Host(tensor.values)).ok()) return 1;
    }
    const std::string loss = std::to_string(1.0 / static_cast<double>(step));
    Take(saver->Save(
        SaveTarget::InSeries(argv[1]),
        {.step = step,
         .provenance = {{"metric.loss", loss},
                        // one value, but for rounding
                        {"metric.lr", step % 20 == 0 ? "0.001" : "0.0010000000000000002"},
                        {"metric.\" onload=\"x", loss},
                        {"tag.<b>", "</td><script>alert(1)</script>\"'&\x1b[31m"}}},
        sources));
  }
  return 0;
}
