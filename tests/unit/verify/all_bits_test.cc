// SPDX-License-Identifier: Apache-2.0
//
// No bit of a checkpoint is without meaning: whichever is flipped, verification sees it.
#include <string>

#include "tests/support/format_surgery.h"
#include "tests/unit/verify/verify_fixture.h"

namespace sealpoint::testing {
namespace {

class AllBits : public VerifyFixture {
 protected:
  void SetUp() override {
    Store(SmallSpec());
    const VerifyReport report = Check();
    ASSERT_EQ(report.verdict, Verdict::kCommitted) << report.violations.front().ToString();
    std::uint64_t total = 0;
    for (const auto& [name, bytes] : container_.files) total += bytes.size();
    ASSERT_LE(total, 16 * kKiB);
  }
  Verdict VerdictWith(const std::string& name, const Bytes& bytes) {
    ReplaceFile(*storage_, "ckpt", name, &bytes);
    return Check().verdict;
  }
};

TEST_F(AllBits, EveryFlippedBitIsFound) {
  for (const auto& [name, good] : container_.files) {
    Bytes bytes = good;
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      FlipBit(bytes, bit);
      ASSERT_NE(VerdictWith(name, bytes), Verdict::kCommitted) << name << " bit " << bit;
      FlipBit(bytes, bit);
    }
    ASSERT_EQ(VerdictWith(name, good), Verdict::kCommitted);
  }
}

TEST_F(AllBits, EveryTruncationIsFound) {
  for (const auto& [name, good] : container_.files) {
    Bytes bytes = good;
    while (!bytes.empty()) {
      bytes.pop_back();
      const Verdict expected = name == "COMMIT" ? Verdict::kCorrupt : Verdict::kIncomplete;
      ASSERT_EQ(VerdictWith(name, bytes), expected) << name << " of " << bytes.size();
    }
    ASSERT_EQ(VerdictWith(name, good), Verdict::kCommitted);
  }
}

TEST_F(AllBits, EveryExtensionIsFound) {
  for (const auto& [name, good] : container_.files) {
    for (std::size_t more = 1; more <= 4100; more = more < 4 ? more + 1 : more * 4) {
      Bytes bytes = good;
      bytes.resize(good.size() + more);
      ASSERT_EQ(VerdictWith(name, bytes), Verdict::kCorrupt) << name << " and " << more;
    }
    ASSERT_EQ(VerdictWith(name, good), Verdict::kCommitted);
  }
}

}  // namespace
}  // namespace sealpoint::testing
