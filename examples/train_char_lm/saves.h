// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "checkpointing.h"
#include "sealpoint/saver.h"
#include "trainer.h"

namespace char_lm {

// A number that tells parameters and moments from others, of whatever mesh. On rank 0; 0 elsewhere.
// Collective. It gathers everything on every rank: for a demonstration, not for a real training.
std::uint64_t FingerprintState(const Trainer& trainer, bool speaks);

void PrintState(std::uint64_t step, std::uint64_t state, const std::string& what);
// The name of a checkpoint in the series.
std::string NameOf(const std::string& directory);

// The saves of one run: begins them, tells how they ended, and counts for how long the training
// stood still. A save that failed does not end the training.
class Saves {
 public:
  // Borrows all of it. Only one rank speaks.
  Saves(const CheckpointOptions& options, bool speaks, const Trainer& trainer,
        Checkpointing& checkpoints)
      : options_(options), speaks_(speaks), trainer_(trainer), checkpoints_(checkpoints) {}

  // After each step: lets saves in the background go on, and saves where it is time. Collective.
  void AfterStep();
  // Collective: until every save has its outcome.
  void WaitForAll();
  // The time that all this took, of that since the Saves were made; apart from it, what the last
  // saves took when there was nothing left to train.
  void PrintStandstill() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Begun {
    std::uint64_t step;
    std::uint64_t state;
    std::unique_ptr<sealpoint::PendingSave> pending;
  };

  void Save();
  void Poll();
  void Report(std::uint64_t step, std::uint64_t state,
              const sealpoint::Result<sealpoint::CommitInfo>& saved);

  const CheckpointOptions& options_;
  const bool speaks_;
  const Trainer& trainer_;
  Checkpointing& checkpoints_;
  std::deque<Begun> begun_;  // in the background, and not over when last looked at
  std::uint64_t count_ = 0;
  const Clock::time_point begin_ = Clock::now();
  Clock::duration standstill_{0};
  Clock::duration last_wait_{0};
  Clock::duration fingerprints_{0};  // no part of a training
};

}  // namespace char_lm
