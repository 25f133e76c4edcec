// SPDX-License-Identifier: Apache-2.0
//
// Damage as disks, controllers and file systems do it: whole blocks that are lost, repeated,
// exchanged, moved, or written to the wrong place; and bursts of bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/container/format_surgery.h"
#include "tests/support/damage/check.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

constexpr const char* kCommand = "ctest --test-dir build/dev -R damage.blocks";

struct Tally {
  std::uint64_t changed = 0;
  std::uint64_t harmless = 0;  // no byte differs, so that verification must succeed
};

// The file of the older version that has the place of `name`.
const Bytes& OlderFile(const DamageCase& one, const MiniContainer& older, const std::string& name) {
  return older.files.at(name == one.container.index_name ? older.index_name : name);
}

class BlockDamage {
 public:
  BlockDamage(const DamageCase& one, std::uint64_t block_size, Tally& tally)
      : case_(one),
        older_(BuildMini(OlderVersion(one.spec))),
        size_(block_size),
        checker_(one),
        tally_(tally) {}

  void Run() {
    for (const auto& [name, good] : case_.container.files) {
      for (std::uint64_t at = 0; at < good.size(); at += size_) {
        InPlace(name, at);
        Moves(name, at);
        Misdirections(name, at);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }

 private:
  using Change = std::function<void(Bytes& file)>;

  void Check(const std::string& name, std::uint64_t at, std::string_view what,
             const Change& change) {
    Bytes& file = checker_.bytes(name);
    change(file);
    (file == checker_.good(name) ? tally_.harmless : tally_.changed) += 1;
    ASSERT_EQ(checker_.Both({name}), "")
        << case_.name << ", " << name << ": " << size_ << " bytes at " << at << ' ' << what;
    file = checker_.good(name);
  }

  void InPlace(const std::string& name, std::uint64_t at) {
    const std::uint64_t end = std::min<std::uint64_t>(at + size_, checker_.good(name).size());
    const auto fill = [=](std::byte value) {
      return
          [=](Bytes& file) { std::fill(file.begin() + Diff(at), file.begin() + Diff(end), value); };
    };
    Check(name, at, "zeroed", fill(std::byte{0}));
    Check(name, at, "set to ones", fill(std::byte{0xff}));
    Check(name, at, "moved by a byte", [=](Bytes& file) {
      std::rotate(file.begin() + Diff(at), file.begin() + Diff(at + 1), file.begin() + Diff(end));
    });
  }

  void Moves(const std::string& name, std::uint64_t at) {
    const std::uint64_t file_size = checker_.good(name).size();
    if (file_size < at + 2 * size_) return;
    Check(name, at, "written over the next ones too", [=, this](Bytes& file) {
      std::copy_n(file.begin() + Diff(at), size_, file.begin() + Diff(at + size_));
    });
    for (std::uint64_t other = at + size_; other + size_ <= file_size;
         other += Stride(other - at)) {
      Check(name, at, "exchanged with those at " + std::to_string(other), [=, this](Bytes& file) {
        std::swap_ranges(file.begin() + Diff(at), file.begin() + Diff(at + size_),
                         file.begin() + Diff(other));
      });
    }
    Check(name, at, "lost, what follows moved up", [=, this](Bytes& file) {
      std::move(file.begin() + Diff(at + size_), file.end(), file.begin() + Diff(at));
      std::fill(file.end() - Diff(size_), file.end(), std::byte{0});
    });
    Check(name, at, "repeated, what follows moved down", [=, this](Bytes& file) {
      std::move_backward(file.begin() + Diff(at), file.end() - Diff(size_), file.end());
    });
  }

  // All pairs of large blocks, and of small ones those whose distance is a power of two.
  std::uint64_t Stride(std::uint64_t distance) const { return size_ >= 4096 ? size_ : distance; }

  void Misdirections(const std::string& name, std::uint64_t at) {
    for (const auto& [other, bytes] : case_.container.files) {
      if (other != name) Overwrite(name, at, bytes, "of " + other);
    }
    Overwrite(name, at, OlderFile(case_, older_, name), "of an older version");
  }

  void Overwrite(const std::string& name, std::uint64_t at, const Bytes& source,
                 const std::string& what) {
    const std::uint64_t end =
        std::min<std::uint64_t>({at + size_, checker_.good(name).size(), source.size()});
    if (end <= at) return;
    Check(name, at, what, [&](Bytes& file) {
      std::copy(source.begin() + Diff(at), source.begin() + Diff(end), file.begin() + Diff(at));
    });
  }

  static std::ptrdiff_t Diff(std::uint64_t at) { return static_cast<std::ptrdiff_t>(at); }

  const DamageCase& case_;
  const MiniContainer older_;
  const std::uint64_t size_;
  DamageChecker checker_;
  Tally& tally_;
};

const DamageCase& LargeCase() {
  static const DamageCase large = MakeDamageCase("large", LargeSpec());
  return large;
}

TEST(DamageBlocks, EveryBlockIsToldAsItsPlaceSays) {
  Tally tally;
  for (const std::uint64_t block_size : {512u, 4096u}) {
    for (const DamageCase& damage_case : SmallDamageCases()) {
      BlockDamage(damage_case, block_size, tally).Run();
      if (HasFatalFailure()) return;
    }
    BlockDamage(LargeCase(), block_size, tally).Run();
    if (HasFatalFailure()) return;
  }
  RecordRun({.row = "damage-blocks",
             .title = "Blocks zeroed, repeated, exchanged, shifted, misdirected, outdated",
             .command = kCommand,
             .counts = {{"damages", tally.changed}, {"without effect", tally.harmless}}});
}

// 2 to 64 bits from the first to the last that differs.
TEST(DamageBlocks, BurstsAreToldAsTheirPlacesSay) {
  constexpr int kBurstsPerFile = 400;
  std::mt19937_64 random(20260801);
  std::uint64_t count = 0;
  for (const DamageCase& damage_case : SmallDamageCases()) {
    DamageChecker checker(damage_case);
    for (const auto& [name, good] : damage_case.container.files) {
      for (int i = 0; i < kBurstsPerFile; ++i) {
        Bytes& bytes = checker.bytes(name);
        const std::uint64_t length = 2 + random() % 63;
        const std::uint64_t first = random() % (8 * good.size() - length + 1);
        const std::uint64_t pattern = random() | 1 | std::uint64_t{1} << (length - 1);
        for (std::uint64_t bit = 0; bit < length; ++bit) {
          if ((pattern >> bit & 1) != 0) FlipBit(bytes, first + bit);
        }
        ASSERT_EQ(checker.Both({name}), "")
            << damage_case.name << ", " << name << ": pattern " << pattern << " at bit " << first;
        bytes = good;
        ++count;
      }
    }
  }
  RecordRun({.row = "damage-bursts",
             .title = "Bursts of 2 to 64 bits",
             .command = kCommand,
             .counts = {{"bursts", count}}});
}

}  // namespace
}  // namespace sealpoint::testing
