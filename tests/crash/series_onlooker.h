// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_CRASH_SERIES_ONLOOKER_H_
#define SEALPOINT_TESTS_CRASH_SERIES_ONLOOKER_H_

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "lib/format/marker.h"
#include "tests/support/crash/disk.h"

namespace sealpoint::testing {

// Sees all of the series at once, at each moment, without the library's listing: against this the
// answers of those who list are judged. Thread safety: all functions.
class SeriesOnlooker {
 public:
  explicit SeriesOnlooker(const CrashDisk& disk) : disk_(disk) {}

  // Notes what is committed now, if anything changed. No other actor may be in an operation.
  // Returns the number of this moment.
  std::size_t Look();

  // At this moment or later. A zero attempt: no checkpoint.
  bool WasNewest(const AttemptId& attempt, std::size_t since) const;
  bool WasCommitted(const AttemptId& attempt, std::size_t since) const;
  bool IsCommitted(const AttemptId& attempt) const;  // at the last moment
  // Whether the parent of the checkpoint of this step was the newest one at some moment between
  // `since` and that in which the directory of the step was first there, and is counted on from.
  bool WasParentNewest(std::uint64_t step, std::size_t since) const;

  // What is wrong with the series at any moment: no checkpoint is left, or the newest is older than
  // before; else "".
  std::string wrong() const;

 private:
  struct Moment {
    std::vector<internal::format::Marker> committed{};  // newest first
    std::set<std::string> directories{};

    const internal::format::Marker* newest() const;
  };
  Moment SeeNow() const;

  const CrashDisk& disk_;
  mutable std::mutex mutex_;
  std::vector<Moment> moments_;
  std::size_t seen_ = 0;  // operations
  std::string wrong_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CRASH_SERIES_ONLOOKER_H_
