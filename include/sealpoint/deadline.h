// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_DEADLINE_H_
#define SEALPOINT_DEADLINE_H_

#include <algorithm>
#include <chrono>

#include "sealpoint/export.h"

namespace sealpoint {

// Deadline without a limit: the program hangs if storage or another rank hangs. Any other deadline
// is above zero. It is SEALPOINT_FOREVER in C and None in Python.
inline constexpr std::chrono::milliseconds kForever = std::chrono::milliseconds::max();

// Default for one collective call. The longest wait is that of the first rank to finish writing for
// the last one. Half an hour covers 64 GiB on a rank that writes 40 MB/s while another rank has
// nothing to write. It is also the default of torch.distributed.
inline constexpr std::chrono::milliseconds kDefaultDeadline = std::chrono::minutes(30);

// Default for a complete background save, from the end of the snapshot to the verdict. Longer than
// the interval between two checkpoints should be.
inline constexpr std::chrono::milliseconds kDefaultBackgroundDeadline = std::chrono::hours(2);

// Maximum time between two calls that advance a background save (Poll, Wait, calls of the saver)
// that counts toward its deadlines. A program that trains for an hour between two calls therefore
// does not exceed the deadline.
inline constexpr std::chrono::milliseconds kPollGapMax = std::chrono::minutes(1);

// A deadline for work that only proceeds when polled. A value type; thread safety as for int.
class PolledDeadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit PolledDeadline(std::chrono::milliseconds limit, Clock::time_point now = Clock::now())
      : limit_(limit), last_poll_(now) {}

  // Adds the time since the last poll, at most kPollGapMax. Returns true if the limit is reached;
  // never with kForever.
  bool IsOver(Clock::time_point now = Clock::now()) {
    counted_ += std::clamp<Clock::duration>(now - last_poll_, Clock::duration(0), kPollGapMax);
    last_poll_ = now;
    const auto counted = std::chrono::duration_cast<std::chrono::milliseconds>(counted_);
    return counted >= limit_;
  }
  // Ignores the time since the last poll.
  void Resume(Clock::time_point now = Clock::now()) { last_poll_ = now; }
  std::chrono::milliseconds limit() const { return limit_; }

 private:
  std::chrono::milliseconds limit_;
  Clock::time_point last_poll_;
  Clock::duration counted_{0};
};

}  // namespace sealpoint

#endif  // SEALPOINT_DEADLINE_H_
