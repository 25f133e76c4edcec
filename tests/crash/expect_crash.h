// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_CRASH_EXPECT_CRASH_H_
#define SEALPOINT_TESTS_CRASH_EXPECT_CRASH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "tests/support/crash/check.h"
#include "tests/support/crash/states.h"

namespace sealpoint::testing {

// "" where an image is as it must be, else what is wrong.
using CrashOracle = std::function<std::string(const CrashImage&, const CrashCut&)>;

// Of a save of step 2 into a series with step 1: step 1 is there; step 2 is whole or not
// committed; it is whole once anybody was told of success, and never there once anybody was told
// of failure.
CrashOracle OldOrBoth(CrashChecker& checker);

// What the oracle says of the first image that it rejects; "" where it accepts all.
std::string FirstRejected(const CrashHistory& history, const CrashOptions& options,
                          const CrashOracle& oracle);

// Every image is as it must be. The first that is not is shown, and the enumeration ends.
CrashCounts ExpectAccepted(const CrashHistory& history, const CrashOptions& options,
                           const CrashOracle& oracle);

struct SyncCounts {
  std::uint64_t syncs = 0;
  std::uint64_t needed = 0;  // without which the oracle rejects an image

  SyncCounts& operator+=(const SyncCounts& other);
};

// By the description of a sync and its number, "rank 0: sync directory run #2": why it is made
// although no image is wrong without it.
using BeltAndBraces = std::map<std::string, std::string>;

// Takes each sync of the history away in turn: the oracle must reject an image, unless the sync is
// named; then it must accept all, so that the names stay true.
SyncCounts ExpectEachSyncMatters(const CrashHistory& history, const CrashOptions& options,
                                 const BeltAndBraces& not_needed, const CrashOracle& oracle);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CRASH_EXPECT_CRASH_H_
