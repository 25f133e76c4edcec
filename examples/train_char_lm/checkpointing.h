// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/communicator.h"
#include "sealpoint/declaration.h"
#include "sealpoint/engine.h"
#include "sealpoint/phases.h"
#include "sealpoint/progress.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"
#include "sealpoint/trace.h"
#include "trainer.h"

namespace char_lm {

// The phase of a save of this name, written with '-' for ' ': "write-blobs".
std::optional<sealpoint::Phase> FindSavePhase(std::string_view name);
std::string SavePhaseNames();  // "preflight, plan, …"

// When a rank kills itself, to show what a crash leaves behind.
struct DieAt {
  std::uint64_t step = 0;
  sealpoint::Phase phase = sealpoint::Phase::kPreflight;
  std::optional<std::size_t> rank;  // absent: the last one; 0 in a phase that only rank 0 has
};

struct CheckpointOptions {
  std::string series_directory;
  std::uint64_t save_every = 0;  // 0: never
  bool resume = false;
  bool async = false;
  bool quiet = false;           // no progress on the terminal
  std::string trace_directory;  // empty: no trace
  std::optional<DieAt> die_at;
};

// Saves and restores a Trainer. Everything here is collective: all ranks call it at the same step.
class Checkpointing {
 public:
  // Borrows all three. `communicator` may be of any kind; its ranks are those of the trainer's
  // mesh.
  static sealpoint::Result<std::unique_ptr<Checkpointing>> Create(
      const CheckpointOptions& options, sealpoint::Communicator& communicator, Trainer& trainer);

  // Continues from the newest committed checkpoint of the series and returns its directory; changes
  // nothing and returns an empty string where there is none. It may have been saved on any mesh.
  // After an error the trainer is not to be used.
  sealpoint::Result<std::string> Resume();

  [[nodiscard]] bool IsSaveDue() const;
  // After an error the training can go on; the next save is a new attempt.
  sealpoint::Result<sealpoint::CommitInfo> Save();
  // The same in the background: the training may go on, and change its state, when this returns.
  sealpoint::Result<std::unique_ptr<sealpoint::PendingSave>> SaveAsync();

  // The line that shows saves and loads on a terminal; only rank 0 draws.
  sealpoint::ProgressLine& progress() { return progress_; }

 private:
  Checkpointing(const CheckpointOptions& options, sealpoint::Communicator& communicator,
                Trainer& trainer);
  sealpoint::Status Declare();
  sealpoint::Result<std::string> FindNewest();
  sealpoint::Status Restore(const std::string& path);
  sealpoint::Status OpenTrace();
  sealpoint::Status MakeSaver();
  [[nodiscard]] sealpoint::SaveTarget Target() const;
  [[nodiscard]] sealpoint::SaveOptions SaveOptionsNow() const;
  [[nodiscard]] sealpoint::Sources BindSources(const std::vector<StateObject>& objects) const;
  // On any thread.
  void OnPhase(const sealpoint::PhaseEvent& event);
  void DieIfDue(const sealpoint::PhaseEvent& event) const;

  const CheckpointOptions& options_;
  sealpoint::Communicator& communicator_;
  Trainer& trainer_;
  std::vector<LocalTensor> tensors_;
  sealpoint::Declaration declaration_;
  std::vector<std::vector<std::size_t>> slots_;  // in the declaration, of each of the tensors
  sealpoint::ProgressLine progress_;
  std::unique_ptr<sealpoint::Trace> trace_;
  std::unique_ptr<sealpoint::Engine> engine_;
  std::unique_ptr<sealpoint::Saver> saver_;
};

}  // namespace char_lm
