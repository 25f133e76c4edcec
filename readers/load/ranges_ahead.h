// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_RANGES_AHEAD_H_
#define SEALPOINT_READERS_LOAD_RANGES_AHEAD_H_

#include <cstddef>
#include <mutex>
#include <span>
#include <utility>

#include "readers/load/range_files.h"
#include "readers/load/read_plan_data.h"

namespace sealpoint::internal::load {

// Tells the storage which ranges are read soon, so that the next ones are under way while one is
// verified and copied.
// Thread safety: all functions.
class RangesAhead {
 public:
  // Borrows both.
  RangesAhead(RangeFiles& files, std::span<const transfer::PlanRange> ranges)
      : files_(files), ranges_(ranges) {}

  // Call before range `i` is read. Files that cannot be opened are skipped; reading them returns
  // the error.
  void Reach(std::size_t i);

 private:
  // Ranges to announce when range `i` is read and that no other thread announces: [first, second).
  std::pair<std::size_t, std::size_t> Take(std::size_t i);

  RangeFiles& files_;
  const std::span<const transfer::PlanRange> ranges_;
  std::mutex mutex_;
  std::size_t advised_ = 0;  // so many of the ranges
};

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_RANGES_AHEAD_H_
