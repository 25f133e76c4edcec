// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_OBSERVE_PHASE_RECORDER_H_
#define SEALPOINT_LIB_OBSERVE_PHASE_RECORDER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

#include "sealpoint/id.h"
#include "sealpoint/phases.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::observe {

// Calls the caller's function, which may throw anything. Errors: Cancelled (it threw).
Status Tell(const PhaseCallback& callback, const PhaseEvent& event);

// Measures the phases of one save or load and reports them to the callback. One phase at a time.
class PhaseRecorder {
 public:
  // `is_cancelled`, if not null, outlives the recorder and may be set by any thread.
  explicit PhaseRecorder(PhaseCallback callback, std::uint64_t step = kNoStep,
                         const std::atomic<bool>* is_cancelled = nullptr)
      : callback_(std::move(callback)), step_(step), is_cancelled_(is_cancelled) {}
  // Ends the phase under way, so that an early return leaves no phase open.
  ~PhaseRecorder() { End(); }
  PhaseRecorder(const PhaseRecorder&) = delete;
  PhaseRecorder& operator=(const PhaseRecorder&) = delete;

  // Ends the phase under way, if any, and begins the next.
  void Begin(Phase phase, std::uint64_t bytes_total = 0);
  // Records the bytes moved so far in this phase and reports them to the callback.
  void Progress(std::uint64_t bytes_done);
  void End();

  // Cancelled once cancellation was requested or the callback has thrown. The code that runs the
  // phases checks this only at points where it can stop cleanly; the recorder itself never
  // interrupts a phase. A callback that threw is not called again.
  Status failure() const;

  // The current phase, or else the last one. Thread-safe.
  Phase current_phase() const { return current_phase_.load(); }

  // The phases that have ended.
  const PhaseReport& report() const { return report_; }

 private:
  void Notify(PhaseEvent::Kind kind);

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

}  // namespace sealpoint::internal::observe

#endif  // SEALPOINT_LIB_OBSERVE_PHASE_RECORDER_H_
