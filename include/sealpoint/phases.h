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

// Phases of a save and of a load, in execution order (plan and snapshot come first in the
// background). The names are those of spec/commit.md. Always measured, with two clock reads per
// phase.
enum class Phase : std::uint8_t {
  // A save.
  kPreflight,   // directory, capabilities, same file system on all ranks
  kPlan,        // compare declarations, prove the tiling, divide replicas
  kSnapshot,    // background saves: copy payload to engine memory
  kWriteBlobs,  // write payload to storage
  kSyncBlobs,   // write trailers; sync and close blobs; sync the directory
  kAgree,       // exchange outcomes; merge blob contents and collect them on rank 0
  kCheckBlobs,  // rank 0: check existence and length of every blob
  kBuildIndex,  // rank 0: build the index from the merged contents
  kCheckIndex,  // rank 0: run the reader's full check of the index
  kWriteIndex,  // rank 0: write and sync index and unpublished marker; sync the directory
  kPublish,     // rank 0: publish as COMMIT; sync the directory
  kVerdict,     // send the outcome to all ranks
  // A load.
  kOpen,  // verify marker and index; stat blobs
  kPlanRead,
  kRead,  // read, verify, copy
  // Operations of one phase, which send only kProgress.
  kVerify,
  kCompare,  // comparison, content digest, statistics
  kCopy,     // copy, merge, thin, repair, promotion
};

// "write blobs", …
SEALPOINT_EXPORT std::string_view PhaseName(Phase phase);

// Sent at the beginning and end of every phase, and periodically in phases that move payload.
struct PhaseEvent {
  Phase phase = Phase::kPreflight;
  enum class Kind : std::uint8_t { kBegin, kProgress, kEnd } kind = Kind::kBegin;
  std::uint64_t bytes_done = 0;   // of this process, in this phase
  std::uint64_t bytes_total = 0;  // 0 if unknown or if no payload is moved
  // Step of the save; distinguishes concurrent saves. kNoStep in a load.
  std::uint64_t step = kNoStep;
};

// Type of all options `on_progress`. Called on the thread that runs the phase (kProgress: on any
// thread, one call at a time). Must return soon and must not call the object that sends the event.
// Throwing cancels the operation (Code::kCancelled).
using PhaseCallback = std::function<void(const PhaseEvent&)>;

struct PhaseTime {
  Phase phase = Phase::kPreflight;
  double seconds = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const PhaseTime&, const PhaseTime&) = default;
};

// Duration of each phase of one save or load in this process.
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
