// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_PHASE_RECORDER_H_
#define SEALPOINT_LIB_BASE_PHASE_RECORDER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

#include "sealpoint/id.h"
#include "sealpoint/phases.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// Measures the phases of one save or load and tells the callback. One phase at a time.
class PhaseRecorder {
 public:
  // `is_cancelled`, where there is one, outlives the recorder and may be set by any thread.
  explicit PhaseRecorder(PhaseCallback callback, std::uint64_t step = kNoStep,
                         const std::atomic<bool>* is_cancelled = nullptr)
      : callback_(std::move(callback)), step_(step), is_cancelled_(is_cancelled) {}
  // Whoever returns early leaves no phase without its end.
  ~PhaseRecorder() { End(); }
  PhaseRecorder(const PhaseRecorder&) = delete;
  PhaseRecorder& operator=(const PhaseRecorder&) = delete;

  // Ends the phase under way, if any, and begins the next.
  void Begin(Phase phase, std::uint64_t bytes_total = 0);
  // Bytes moved so far in this phase; tells the callback.
  void Progress(std::uint64_t bytes_done);
  void End();

  // Cancelled once somebody asked for it, or the callback has thrown: whoever runs the phases gives
  // up at the next place where that leaves nothing half done. A callback that threw is not called
  // again.
  Status failure() const;

  // The phase under way, or the last one that was. Any thread may ask.
  Phase current_phase() const { return current_phase_.load(); }

  // The phases that have ended.
  const PhaseReport& report() const { return report_; }

 private:
  void Tell(PhaseEvent::Kind kind);

  PhaseCallback callback_;
  const std::uint64_t step_;
  const std::atomic<bool>* is_cancelled_ = nullptr;
  Status failure_;
  PhaseReport report_;
  PhaseEvent current_;
  std::atomic<Phase> current_phase_ = Phase::kPreflight;
  bool is_running_ = false;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_PHASE_RECORDER_H_
