// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_CRASH_EXPECT_SYNCS_H_
#define SEALPOINT_TESTS_CRASH_EXPECT_SYNCS_H_

#include <cstdint>
#include <map>
#include <string>

#include "tests/crash/expect_crash.h"

namespace sealpoint::testing {

struct SyncCounts {
  std::uint64_t syncs = 0;
  std::uint64_t needed = 0;  // without which the oracle rejects an image

  SyncCounts& operator+=(const SyncCounts& other);
};

// Maps the description of a sync and its number, "rank 0: sync directory run #2", to the reason why
// it is made although no image is wrong without it.
using BeltAndBraces = std::map<std::string, std::string>;

// Takes each sync of the history away in turn. The oracle must then reject some image, unless the
// sync is excused; then it must accept all, so that no excuse outlives its reason.
SyncCounts ExpectEachSyncMatters(const CrashHistory& history, const CrashOptions& options,
                                 const BeltAndBraces& not_needed, const CrashOracle& oracle);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CRASH_EXPECT_SYNCS_H_
