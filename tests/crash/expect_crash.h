// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_CRASH_EXPECT_CRASH_H_
#define SEALPOINT_TESTS_CRASH_EXPECT_CRASH_H_

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/support/crash_judge.h"
#include "tests/support/crash_states.h"

namespace sealpoint::testing {

// "" where an image is as it must be, else what is wrong.
using CrashOracle = std::function<std::string(const CrashImage&, const CrashCut&)>;

// Of a save of step 2 into a series with step 1: step 1 is there; step 2 is whole or not
// committed; it is whole once anybody was told of success, and never there once anybody was told
// of failure.
inline CrashOracle OldOrBoth(CrashJudge& judge) {
  return [&judge](const CrashImage& image, const CrashCut& cut) {
    CrashPromise promise{.there = {1}};
    if (cut.success_count > 0) promise.there.push_back(2);
    if (cut.success_count == 0 && cut.failure_count == 0) promise.perhaps.push_back(2);
    return judge.Check(image, promise);
  };
}

// What the oracle says of the first image that it rejects; "" where it accepts all.
inline std::string FirstRejected(const CrashHistory& history, const CrashOptions& options,
                                 const CrashOracle& oracle) {
  std::string rejected;
  ForEachCrash(history, options, [&](const CrashImage& image, const CrashCut& cut) {
    rejected = oracle(image, cut);
    return rejected.empty();
  });
  return rejected;
}

// Every image is as it must be. The first that is not is shown, and the enumeration ends.
inline CrashCounts ExpectAccepted(const CrashHistory& history, const CrashOptions& options,
                                  const CrashOracle& oracle) {
  return ForEachCrash(history, options, [&](const CrashImage& image, const CrashCut& cut) {
    const std::string rejected = oracle(image, cut);
    if (rejected.empty()) return true;
    ADD_FAILURE() << rejected << "\nafter "
                  << (cut.last == nullptr ? "nothing" : cut.last->Describe()) << "\n"
                  << image.Describe();
    return false;
  });
}

inline CrashCounts ExpectOldOrBoth(const CrashHistory& history, const CrashOptions& options) {
  CrashJudge judge;
  return ExpectAccepted(history, options, OldOrBoth(judge));
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CRASH_EXPECT_CRASH_H_
