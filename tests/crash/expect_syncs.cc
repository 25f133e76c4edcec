// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/expect_syncs.h"

#include <gtest/gtest.h>

namespace sealpoint::testing {

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
