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

SyncCounts& SyncCounts::operator+=(const SyncCounts& other) {
  syncs += other.syncs;
  needed += other.needed;
  return *this;
}

SyncCounts ExpectEachSyncMatters(const CrashHistory& history, const CrashOptions& options,
                                 const BeltAndBraces& not_needed, const CrashOracle& oracle) {
  SyncCounts counts;
  std::map<std::string, int> seen;
  std::map<std::string, int> unused;
  for (const auto& [name, reason] : not_needed) unused[name] = 1;
  for (const CrashOp& sync : history.ops) {
    if (!sync.is_sync()) continue;
    const std::string description = sync.Describe();
    const std::string name = description + " #" + std::to_string(++seen[description]);
    CrashOptions without = options;
    without.is_lost = [&sync](const CrashOp& op) { return &op == &sync; };
    const std::string rejected = FirstRejected(history, without, oracle);
    ++counts.syncs;
    if (!rejected.empty()) ++counts.needed;
    const bool is_named = unused.erase(name) == 1;
    EXPECT_EQ(rejected.empty(), is_named)
        << "without \"" << name << "\": " << (rejected.empty() ? "nothing is wrong" : rejected);
  }
  for (const auto& [name, count] : unused) ADD_FAILURE() << "there is no \"" << name << "\"";
  return counts;
}

}  // namespace sealpoint::testing
