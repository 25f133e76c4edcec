// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_DEADLINE_H_
#define SEALPOINT_DEADLINE_H_

#include <algorithm>
#include <chrono>

#include "sealpoint/export.h"

namespace sealpoint {

// As a deadline: no limit. Whatever hangs then hangs the program.
inline constexpr std::chrono::milliseconds kForever{0};

// Default for one collective call. The longest such wait is that of the first rank to finish
// writing for the last one: half an hour covers 64 GiB on a rank that writes 40 MB/s while another
// has nothing to write. It is also what torch.distributed gives its collectives by default.
inline constexpr std::chrono::milliseconds kDefaultDeadline = std::chrono::minutes(30);

// Default for a whole save in the background, from the end of the snapshot to the verdict: longer
// than the interval between two checkpoints should be.
inline constexpr std::chrono::milliseconds kDefaultBackgroundDeadline = std::chrono::hours(2);

// The most time between two calls that move a save in the background (Poll, Wait, calls of the
// saver) that counts towards its deadlines. A program that trains for an hour between
// two calls finds the save where it was, and not past its deadline.
inline constexpr std::chrono::milliseconds kPollGapMax = std::chrono::minutes(1);

// A deadline for work that proceeds only while it is polled. Value type; thread safety: as int.
class PolledDeadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit PolledDeadline(std::chrono::milliseconds limit, Clock::time_point now = Clock::now())
      : limit_(limit), last_poll_(now) {}

  // Counts the time since the last poll, at most kPollGapMax of it. True if the limit is
  // reached; never with kForever.
  bool IsOver(Clock::time_point now = Clock::now()) {
    counted_ += std::clamp<Clock::duration>(now - last_poll_, Clock::duration(0), kPollGapMax);
    last_poll_ = now;
    const auto counted = std::chrono::duration_cast<std::chrono::milliseconds>(counted_);
    return limit_ > kForever && counted >= limit_;
  }
  // The time since the last poll does not count at all.
  void Resume(Clock::time_point now = Clock::now()) { last_poll_ = now; }
  std::chrono::milliseconds limit() const { return limit_; }

 private:
  std::chrono::milliseconds limit_;
  Clock::time_point last_poll_;
  Clock::duration counted_{0};
};

}  // namespace sealpoint

#endif  // SEALPOINT_DEADLINE_H_
