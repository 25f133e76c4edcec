// SPDX-License-Identifier: Apache-2.0
//
// A few flipped bits of each file of a checkpoint, on a real file system. Every bit, length and
// block is tried by night.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "sealpoint/verify.h"
#include "tests/support/damage/containers.h"
#include "tests/support/process/temp_dir.h"

namespace sealpoint::testing {
namespace {

void Store(const std::string& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

TEST(DamageOneFile, AFlippedBitIsCorruptAndItsFileIsNamed) {
  for (const DamageCase& damage_case : SmallDamageCases()) {
    const TempDir folder;
    for (const auto& [name, bytes] : damage_case.container.files) Store(folder / name, bytes);
    ASSERT_EQ(Verify(folder.path(), {}).value().verdict, Verdict::kCommitted) << damage_case.name;
    for (const auto& [name, good] : damage_case.container.files) {
      for (const std::size_t at : {good.size() / 3, good.size() / 2, good.size() - 1}) {
        Bytes damaged = good;
        damaged[at] ^= std::byte{4};
        Store(folder / name, damaged);
        const VerifyReport report = Verify(folder.path(), {}).value();
        EXPECT_EQ(report.verdict, Verdict::kCorrupt)
            << damage_case.name << ", " << name << " at " << at;
        ASSERT_FALSE(report.violations.empty()) << damage_case.name << ", " << name << " at " << at;
        EXPECT_EQ(report.violations.front().place().path, folder / name);
      }
      Store(folder / name, good);
    }
  }
}

}  // namespace
}  // namespace sealpoint::testing
