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

// The greatest part of the time between two calls that carry a save in the background on (Poll,
// Wait, calls of the saver) that counts towards its deadlines. A program that trains for an hour
// between two calls finds the save where it was, and not past its deadline.
inline constexpr std::chrono::milliseconds kUnattendedMax = std::chrono::minutes(1);

// A deadline for what goes on only while somebody looks at it. Value type; thread safety: as int.
class AttendedDeadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit AttendedDeadline(std::chrono::milliseconds limit, Clock::time_point now = Clock::now())
      : limit_(limit), last_look_(now) {}

  // Counts the time since the last look, at most kUnattendedMax of it. True if the limit is
  // reached; never with kForever.
  bool IsOver(Clock::time_point now = Clock::now()) {
    attended_ += std::clamp<Clock::duration>(now - last_look_, Clock::duration(0), kUnattendedMax);
    last_look_ = now;
    const auto attended = std::chrono::duration_cast<std::chrono::milliseconds>(attended_);
    return limit_ > kForever && attended >= limit_;
  }
  // The time since the last look does not count at all.
  void Resume(Clock::time_point now = Clock::now()) { last_look_ = now; }
  std::chrono::milliseconds limit() const { return limit_; }

 private:
  std::chrono::milliseconds limit_;
  Clock::time_point last_look_;
  Clock::duration attended_{0};
};

}  // namespace sealpoint

#endif  // SEALPOINT_DEADLINE_H_
