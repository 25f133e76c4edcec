// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/expect_crash.h"

#include <gtest/gtest.h>

namespace sealpoint::testing {

CrashOracle OldOrBoth(CrashChecker& checker) {
  return [&checker](const CrashImage& image, const CrashCut& cut) {
    CrashPromise promise{.there = {1}};
    if (cut.success_count > 0) promise.there.push_back(2);
    if (cut.success_count == 0 && cut.failure_count == 0) promise.perhaps.push_back(2);
    return checker.Check(image, promise);
  };
}

std::string FirstRejected(const CrashHistory& history, const CrashOptions& options,
                          const CrashOracle& oracle) {
  std::string rejected;
  ForEachCrash(history, options, [&](const CrashImage& image, const CrashCut& cut) {
    rejected = oracle(image, cut);
    return rejected.empty();
  });
  return rejected;
}

CrashCounts ExpectAccepted(const CrashHistory& history, const CrashOptions& options,
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

}  // namespace sealpoint::testing
