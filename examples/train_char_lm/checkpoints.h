// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "sealpoint/communicator.h"
#include "sealpoint/declaration.h"
#include "sealpoint/engine.h"
#include "sealpoint/phases.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"
#include "training.h"

namespace char_lm {

struct CheckpointOptions {
  std::string series;            // directory, or URL
  std::uint64_t save_every = 0;  // steps; 0: never
  std::uint32_t keep = 0;        // newest ones that stay; 0: all
  bool async = false;
  sealpoint::PhaseCallback on_progress;
};

// Saves and restores a training. All ranks call all of it, and rank 0 prints.
class Checkpoints {
 public:
  // Borrows all three.
  Checkpoints(const CheckpointOptions& options, sealpoint::Communicator& comm, Training& training);

  // Goes on from the newest checkpoint of the series, if there is one, saved on whatever mesh.
  // After an error the training is not to be used.
  sealpoint::Status Resume();
  // Lets saves in the background go on, and saves if it is time. A save that failed does not end
  // the training.
  void AfterStep();
  void Finish();  // until every save has its outcome
  // "step   20  state 6078c229b7e66197  done"
  void PrintState(const std::string& what) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Save {
    std::uint64_t step;
    std::string state;
    std::unique_ptr<sealpoint::PendingSave> pending;
  };
  void Report(const Save& save, const sealpoint::Result<sealpoint::CommitInfo>& saved) const;

  const CheckpointOptions& options_;
  sealpoint::Communicator& comm_;
  Training& training_;
  const std::string arguments_;
  sealpoint::Declaration declaration_;
  std::unique_ptr<sealpoint::Sources> sources_;
  std::unique_ptr<sealpoint::Engine> engine_;
  std::unique_ptr<sealpoint::Saver> saver_;
  std::deque<Save> pending_;    // in the background, in the order of their calls
  Clock::duration blocked_{0};  // for which saves kept the training waiting
};

}  // namespace char_lm
