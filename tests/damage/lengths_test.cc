// SPDX-License-Identifier: Apache-2.0
//
// Verification and opening notice every length of a file other than its own.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/support/damage/check.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

constexpr const char* kCommand = "ctest --test-dir build/dev -R damage.lengths";

// The length of the marker is fixed, the others are pinned by marker and index.
TEST(DamageLengths, EveryTruncationIsToldAsItsFileSays) {
  std::uint64_t count = 0;
  for (const DamageCase& damage_case : SmallDamageCases()) {
    DamageChecker checker(damage_case);
    for (const auto& [name, good] : damage_case.container.files) {
      Bytes& bytes = checker.bytes(name);
      for (bytes.pop_back();; bytes.pop_back()) {
        ASSERT_EQ(checker.Both({name}), "")
            << damage_case.name << ", " << name << " of " << bytes.size();
        ++count;
        if (bytes.empty()) break;
      }
      checker.Restore(name);
    }
  }
  RecordRun({.row = "damage-truncations",
             .title = "Every truncation of every file",
             .command = kCommand,
             .counts = {{"lengths", count}}});
}

// By every length up to a page, then by powers of two; with zeros, and with the file again.
TEST(DamageLengths, ExtensionsAreToldAsTheirFileSays) {
  constexpr std::size_t kEachUpTo = 4096 + 1;
  constexpr std::size_t kMax = 1 << 20;
  std::uint64_t count = 0;
  for (const DamageCase& damage_case : SmallDamageCases()) {
    DamageChecker checker(damage_case);
    for (const auto& [name, good] : damage_case.container.files) {
      Bytes& bytes = checker.bytes(name);
      for (std::size_t more = 1; more <= kMax; more = more < kEachUpTo ? more + 1 : 2 * more) {
        bytes.resize(good.size() + more);
        ASSERT_EQ(checker.Both({name}), "") << damage_case.name << ", " << name << " and " << more;
        ++count;
      }
      bytes = good;
      bytes.insert(bytes.end(), good.begin(), good.end());
      ASSERT_EQ(checker.Both({name}), "") << damage_case.name << ", " << name << " twice";
      ++count;
      checker.Restore(name);
    }
  }
  RecordRun({.row = "damage-extensions",
             .title = "Extensions of every file",
             .command = kCommand,
             .counts = {{"lengths", count}}});
}

}  // namespace
}  // namespace sealpoint::testing
