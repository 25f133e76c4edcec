// SPDX-License-Identifier: Apache-2.0
//
// What the block of docs/async.md leaves out.
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/saver.h"
#include "sealpoint/series.h"

using namespace sealpoint;

namespace {

std::vector<std::uint64_t> weights(64 * 1024);
int failures = 0;

void TrainOneStep() {
  for (std::uint64_t& weight : weights) ++weight;
}

void Report(const Result<CommitInfo>& saved) {
  if (saved.ok()) return;
  ++failures;
  std::puts(saved.error().ToString().c_str());
}

#include "readme_train.inc"

// Every weight is the number of the step.
bool HoldsItsStep(const SeriesEntry& entry) {
  const auto checkpoint = Checkpoint::Open(entry.path).value();
  std::vector<std::uint64_t> stored(weights.size());
  ReadRequest want;
  want.Add("w", MutableMemoryView::Host(stored));
  if (!checkpoint->Load(want, {}).ok()) return false;
  return stored == std::vector<std::uint64_t>(weights.size(), entry.step);
}

}  // namespace

int main() {
  const auto comm = SelfCommunicator();
  const auto engine = Engine::Create().value();
  const auto saver = Saver::Create(*engine, *comm).value();
  Declaration mine;
  mine.Add({.tensor = {.name = "w", .dtype = DType::kUInt64, .shape = {weights.size()}}}).value();
  Sources state(mine);
  if (!state.Bind("w", MemoryView::Host(weights)).ok()) return 1;
  Train(*saver, state);
  for (const SeriesEntry& entry : Series("checkpoints").List().value().entries) {
    failures += HoldsItsStep(entry) ? 0 : 1;
  }
  return failures;
}
