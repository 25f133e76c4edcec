// SPDX-License-Identifier: Apache-2.0
//
// Whatever bit or byte of a checkpoint is changed, verification and loading report the violation
// that spec/reader-rules.md assigns to that place, and name the file.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/support/container/format_surgery.h"
#include "tests/support/damage/check.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

constexpr const char* kCommand = "ctest --test-dir build/dev -R damage.bits";

TEST(DamageBits, GoodCheckpointsAreCommittedAndLoad) {
  for (const DamageCase& damage_case : SmallDamageCases()) {
    DamageChecker checker(damage_case);
    EXPECT_EQ(checker.Both({}), "") << damage_case.name;
  }
}

TEST(DamageBits, EveryFlippedBitIsToldAsItsPlaceSays) {
  std::uint64_t bits = 0;
  std::uint64_t loads = 0;
  std::uint64_t files = 0;
  for (const DamageCase& damage_case : SmallDamageCases()) {
    DamageChecker checker(damage_case);
    for (const auto& [name, good] : damage_case.container.files) {
      ++files;
      Bytes& bytes = checker.bytes(name);
      for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
        FlipBit(bytes, bit);
        ASSERT_EQ(checker.Verification({name}), "")
            << damage_case.name << ", " << name << " bit " << bit;
        ++bits;
        // One bit of each byte, another one from byte to byte.
        if (bit % 8 == bit / 8 % 8) {
          ASSERT_EQ(checker.Load({name}), "") << damage_case.name << ", " << name << " bit " << bit;
          ++loads;
        }
        FlipBit(bytes, bit);
      }
    }
    ASSERT_EQ(checker.Both({}), "") << damage_case.name;
  }
  RecordRun({.row = "damage-bits",
             .title = "Every single bit flipped",
             .command = kCommand,
             .counts = {{"files", files}, {"bits", bits}, {"loads", loads}}});
}

TEST(DamageBits, EveryZeroedByteIsToldAsItsPlaceSays) {
  for (const DamageCase& damage_case : SmallDamageCases()) {
    DamageChecker checker(damage_case);
    for (const auto& [name, good] : damage_case.container.files) {
      for (std::size_t at = 0; at < good.size(); ++at) {
        if (good[at] == std::byte{0}) continue;
        checker.bytes(name)[at] = std::byte{0};
        ASSERT_EQ(checker.Verification({name}), "")
            << damage_case.name << ", " << name << " byte " << at;
        checker.bytes(name)[at] = good[at];
      }
    }
  }
}

}  // namespace
}  // namespace sealpoint::testing
