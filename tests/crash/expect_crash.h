// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_CRASH_EXPECT_CRASH_H_
#define SEALPOINT_TESTS_CRASH_EXPECT_CRASH_H_

#include <functional>
#include <string>

#include "tests/support/crash/check.h"
#include "tests/support/crash/states.h"

namespace sealpoint::testing {

// Returns "" if an image is as it must be, else what is wrong.
using CrashOracle = std::function<std::string(const CrashImage&, const CrashCut&)>;

// The oracle for a save of step 2 into a series with step 1: step 1 is there; step 2 is whole or
// not committed; it is whole once success was reported to anybody, and never there once a failure
// was.
CrashOracle OldOrBoth(CrashChecker& checker);

// The oracle's reason for the first image that it rejects; "" if it accepts all.
std::string FirstRejected(const CrashHistory& history, const CrashOptions& options,
                          const CrashOracle& oracle);

// Every image is as it must be. The first that is not is shown, and the enumeration ends.
CrashCounts ExpectAccepted(const CrashHistory& history, const CrashOptions& options,
                           const CrashOracle& oracle);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CRASH_EXPECT_CRASH_H_
