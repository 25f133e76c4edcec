// SPDX-License-Identifier: Apache-2.0
//
// A crash before and after every operation of every rank of a save.
#include <gtest/gtest.h>

#include <string>

#include "tests/crash/expect_crash.h"
#include "tests/support/crash_runs.h"
#include "tests/support/results.h"

namespace sealpoint::testing {
namespace {

TEST(CrashSave, OldStaysAndNewIsAllOrNothing) {
  CrashCounts counts;
  for (const int ranks : {1, 2, 3}) {
    const CrashHistory history = RecordSave(ranks);
    counts += ExpectOldOrBoth(history, {.contents = CrashContents::kEachSector});
    printf("%d %lu %lu %lu\n", ranks, counts.points, counts.states, counts.distinct);
  }
}

}  // namespace
}  // namespace sealpoint::testing
