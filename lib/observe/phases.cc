// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/phases.h"

#include <cstdio>
#include <exception>

#include "lib/base/errors.h"
#include "lib/observe/phase_recorder.h"

namespace sealpoint {

std::string_view PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kPreflight:
      return "preflight";
    case Phase::kPlan:
      return "plan";
    case Phase::kSnapshot:
      return "snapshot";
    case Phase::kWriteBlobs:
      return "write blobs";
    case Phase::kSyncBlobs:
      return "sync blobs";
    case Phase::kAgree:
      return "agree";
    case Phase::kCheckBlobs:
      return "check blobs";
    case Phase::kBuildIndex:
      return "build index";
    case Phase::kCheckIndex:
      return "check index";
    case Phase::kWriteIndex:
      return "write index";
    case Phase::kPublish:
      return "publish";
    case Phase::kVerdict:
      return "verdict";
    case Phase::kOpen:
      return "open";
    case Phase::kPlanRead:
      return "plan read";
    case Phase::kRead:
      return "read";
    case Phase::kVerify:
      return "verify";
    case Phase::kCompare:
      return "compare";
    case Phase::kCopy:
      return "copy";
  }
  return "unknown";
}

double PhaseReport::total_seconds() const {
  double total = 0;
  for (const PhaseTime& time : phases) total += time.seconds;
  return total;
}

double PhaseReport::seconds(Phase phase) const {
  double total = 0;
  for (const PhaseTime& time : phases) {
    if (time.phase == phase) total += time.seconds;
  }
  return total;
}

std::string PhaseReport::ToString() const {
  std::string out;
  for (const PhaseTime& time : phases) {
    char line[128];
    const std::string_view name = PhaseName(time.phase);
    const double megabytes = static_cast<double>(time.bytes) / 1e6;
    std::snprintf(line, sizeof(line), "%-12.*s %10.3f ms", static_cast<int>(name.size()),
                  name.data(), time.seconds * 1e3);
    out.append(line);
    if (time.bytes > 0 && time.seconds > 0) {
      std::snprintf(line, sizeof(line), " %12.1f MB %9.1f MB/s", megabytes,
                    megabytes / time.seconds);
      out.append(line);
    }
    out.push_back('\n');
  }
  return out;
}

namespace internal::observe {

void PhaseRecorder::Begin(Phase phase, std::uint64_t bytes_total) {
  End();
  current_ = {.phase = phase, .bytes_total = bytes_total, .step = step_};
  current_phase_ = phase;
  is_running_ = true;
  begin_ = std::chrono::steady_clock::now();
  Notify(PhaseEvent::Kind::kBegin);
}

void PhaseRecorder::Progress(std::uint64_t bytes_done) {
  current_.bytes_done = bytes_done;
  Notify(PhaseEvent::Kind::kProgress);
}

void PhaseRecorder::End() {
  if (!is_running_) return;
  is_running_ = false;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
  report_.phases.push_back({current_.phase, elapsed.count(), current_.bytes_done});
  Notify(PhaseEvent::Kind::kEnd);
}

Status PhaseRecorder::failure() const {
  const bool is_cancelled = is_cancelled_ != nullptr && is_cancelled_->load();
  if (!failure_.ok() || !is_cancelled) return failure_;
  return RuleError(Code::kCancelled, "R-CMT-30", "the save was cancelled");
}

// The library is written without exceptions, and one that unwound a rank out of a collective would
// leave the other ranks waiting: so it ends here and becomes a status that the ranks agree on.
Status Tell(const PhaseCallback& callback, const PhaseEvent& event) {
  try {
    callback(event);
    return {};
  } catch (const std::exception& thrown) {
    return MakeError(Code::kCancelled, "ended by the progress callback: ", thrown.what());
  } catch (...) {
    return MakeError(Code::kCancelled, "ended by the progress callback, which threw");
  }
}

void PhaseRecorder::Notify(PhaseEvent::Kind kind) {
  if (!callback_ || !failure_.ok()) return;
  PhaseEvent event = current_;
  event.kind = kind;
  failure_ = Tell(callback_, event);
}

}  // namespace internal::observe
}  // namespace sealpoint
