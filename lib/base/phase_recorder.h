// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_PHASE_RECORDER_H_
#define SEALPOINT_LIB_BASE_PHASE_RECORDER_H_

#include <chrono>
#include <cstdint>

#include "sealpoint/phases.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// Measures the phases of one save or load and tells the callback. One phase at a time.
class PhaseRecorder {
 public:
  explicit PhaseRecorder(PhaseCallback callback) : callback_(std::move(callback)) {}
  // Whoever returns early leaves no phase without its end.
  ~PhaseRecorder() { End(); }
  PhaseRecorder(const PhaseRecorder&) = delete;
  PhaseRecorder& operator=(const PhaseRecorder&) = delete;

  // Ends the phase under way, if any, and begins the next.
  void Begin(Phase phase, std::uint64_t bytes_total = 0);
  // Bytes moved so far in this phase; tells the callback.
  void Progress(std::uint64_t bytes_done);
  void End();

  // Cancelled once the callback has thrown: whoever runs the phases gives up at the next place
  // where that leaves nothing half done. The callback is not called again.
  const Status& failure() const { return failure_; }

  // The phases that have ended.
  const PhaseReport& report() const { return report_; }

 private:
  void Tell(PhaseEvent::Kind kind);

  PhaseCallback callback_;
  Status failure_;
  PhaseReport report_;
  PhaseEvent current_;
  bool is_running_ = false;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_PHASE_RECORDER_H_
