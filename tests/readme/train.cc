// SPDX-License-Identifier: Apache-2.0
//
// What the block of docs/guides/async.md leaves out.
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/saver.h"
#include "sealpoint/series.h"

namespace sp = sealpoint;

namespace {

std::vector<std::uint64_t> weights(64 * 1024);
int failures = 0;

void TrainOneStep() {
  for (std::uint64_t& weight : weights) ++weight;
}

void Report(const sp::Result<sp::CommitInfo>& saved) {
  if (saved.ok()) return;
  ++failures;
  std::puts(saved.error().ToString().c_str());
}

#include "readme_train.inc"

// Every weight is the number of the step.
bool HoldsItsStep(const sp::SeriesEntry& entry) {
  const auto checkpoint = sp::Checkpoint::Open(entry.path).value();
  std::vector<std::uint64_t> stored(weights.size());
  sp::ReadRequest want;
  want.Add("w", sp::MutableMemoryView::Host(stored));
  if (!checkpoint->Load(want, {}).ok()) return false;
  return stored == std::vector<std::uint64_t>(weights.size(), entry.step);
}

}  // namespace

int main() {
  const auto comm = sp::SelfCommunicator();
  const auto engine = sp::Engine::Create().value();
  const auto saver = sp::Saver::Create(*engine, *comm).value();
  sp::Declaration mine;
  mine.Add({.tensor = {.name = "w", .dtype = sp::DType::kUInt64, .shape = {weights.size()}}})
      .value();
  sp::Sources state(mine);
  state.Bind("w", sp::MemoryView::Host(weights)).IgnoreError();
  Train(*saver, state);
  for (const sp::SeriesEntry& entry : sp::Series("checkpoints").List().value().entries) {
    failures += HoldsItsStep(entry) ? 0 : 1;
  }
  return failures;
}
