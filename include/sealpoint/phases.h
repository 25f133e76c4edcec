// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PHASES_H_
#define SEALPOINT_PHASES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/export.h"
#include "sealpoint/id.h"

namespace sealpoint {

// Steps of a save and of a load, in the order in which they run (in the background: plan and
// snapshot first); the names are those of spec/commit.md. Always measured: two clock reads per
// phase.
enum class Phase : std::uint8_t {
  // A save.
  kPreflight,   // directory, capabilities, same file system
  kPlan,        // declarations compared, tiling proven, replicas divided
  kSnapshot,    // of a save in the background: payload to memory of the engine
  kWriteBlobs,  // payload to storage
  kSyncBlobs,   // trailers written; blobs and the directory synced and closed
  kAgree,       // every rank's outcome known to all; what blobs hold merged, and at rank 0
  kCheckBlobs,  // rank 0: every blob is there with its length
  kBuildIndex,  // rank 0: the index made of what was merged
  kCheckIndex,  // rank 0: the reader's whole pass over the index bytes
  kWriteIndex,  // rank 0: index and unpublished marker written, synced; directory synced
  kPublish,     // rank 0: published as COMMIT; directory synced
  kVerdict,     // the outcome is known to all ranks
  // A load.
  kOpen,  // marker and index verified, blobs stat'ed
  kPlanRead,
  kRead,  // fetched, verified, copied
};

// "write blobs", …
SEALPOINT_EXPORT std::string_view PhaseName(Phase phase);

// Sent at the begin and end of every phase and, in phases that move payload, now and then between.
struct PhaseEvent {
  Phase phase = Phase::kPreflight;
  enum class Kind : std::uint8_t { kBegin, kProgress, kEnd } kind = Kind::kBegin;
  std::uint64_t bytes_done = 0;   // of this process, in this phase
  std::uint64_t bytes_total = 0;  // 0 if it is not known or nothing is moved
  // The step of the save, which tells apart saves that run at the same time. kNoStep in a load.
  std::uint64_t step = kNoStep;
};

// Called on the thread that runs the phase (kProgress: on any thread, one at a time). Returns soon,
// calls nothing of the object that sends it. One that throws cancels what runs (Code::kCancelled).
using PhaseCallback = std::function<void(const PhaseEvent&)>;

struct PhaseTime {
  Phase phase = Phase::kPreflight;
  double seconds = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const PhaseTime&, const PhaseTime&) = default;
};

// Where the time of one save or load went on this process.
struct SEALPOINT_EXPORT PhaseReport {
  std::vector<PhaseTime> phases{};

  double total_seconds() const;
  // 0 if the phase did not run.
  double seconds(Phase phase) const;
  // One line per phase: name, seconds, bytes, rate.
  std::string ToString() const;
};

}  // namespace sealpoint

#endif  // SEALPOINT_PHASES_H_
