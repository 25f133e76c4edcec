// SPDX-License-Identifier: Apache-2.0
//
// Whole files that are missing, exchanged, renamed, not regular, or from another checkpoint; and
// files that change while they are read.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/format/constants.h"
#include "lib/format/marker.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/verify.h"
#include "tests/support/damage/check.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

constexpr const char* kCommand = "ctest --test-dir build/dev -R damage.files";

const DamageCase& LargeCase() {
  static const DamageCase large = MakeDamageCase("large", LargeSpec());
  return large;
}

std::vector<const DamageCase*> AllCases() {
  std::vector<const DamageCase*> cases = {&LargeCase()};
  for (const DamageCase& damage_case : SmallDamageCases()) cases.push_back(&damage_case);
  return cases;
}

std::set<std::string> NamesOf(const DamageCase& one) {
  std::set<std::string> names;
  for (const auto& [name, bytes] : one.container.files) names.insert(name);
  return names;
}

// Each file becomes each of these things.
std::uint64_t ReplaceEachFile(const DamageCase& one) {
  DamageChecker checker(one);
  std::uint64_t count = 0;
  const auto expect = [&](const std::string& name, const std::string& what) {
    EXPECT_EQ(checker.Both({name}), "") << one.name << ", " << name << ' ' << what;
    checker.Restore(name);
    ++count;
  };
  for (const auto& [name, good] : one.container.files) {
    DamagedFiles& files = checker.storage().files();
    files.erase(name);
    expect(name, "missing");
    files[name] = {.bytes = {}};
    expect(name, "empty");
    files[name] = {.kind = EntryKind::kDirectory};
    expect(name, "a directory");
    files[name] = {.kind = EntryKind::kOther};
    expect(name, "a pipe");
    files[name] = {.kind = EntryKind::kSymlink, .target = "nowhere"};
    expect(name, "a link that leads nowhere");
    for (const auto& [other, bytes] : one.container.files) {
      if (other == name) continue;
      files[name] = {.kind = EntryKind::kSymlink, .target = other};
      expect(name, "a link to " + other);
      files[name] = {.bytes = bytes};
      expect(name, "a copy of " + other);
    }
  }
  return count;
}

std::uint64_t ExchangeFiles(const DamageCase& one) {
  DamageChecker checker(one);
  std::uint64_t count = 0;
  const auto& good = one.container.files;
  for (auto a = good.begin(); a != good.end(); ++a) {
    for (auto b = std::next(a); b != good.end(); ++b) {
      checker.bytes(a->first) = b->second;
      checker.bytes(b->first) = a->second;
      EXPECT_EQ(checker.Both({a->first, b->first}), "") << one.name << ", " << a->first;
      checker.Restore();
      ++count;
    }
    // Renamed: as if it were a blob that no index knows.
    checker.storage().files()[internal::format::BlobName(MiniSpec::MakeId<BlobId>(0xee))] = {
        .bytes = a->second};
    checker.storage().files().erase(a->first);
    EXPECT_EQ(checker.Both({a->first}), "") << one.name << ", " << a->first << " renamed";
    checker.Restore();
    ++count;
  }
  return count;
}

// Every mixture of two versions of one checkpoint: the marker of either; the index of either, of
// both, of none; each blob of either or none. The marker decides which version is expected.
std::uint64_t MixVersions(const DamageCase& one) {
  const DamageCase older = MakeDamageCase("older " + one.name, OlderVersion(one.spec));
  const std::array<const DamageCase*, 2> versions = {&one, &older};
  std::array<DamageChecker, 2> checks = {DamageChecker(one), DamageChecker(older)};
  std::uint64_t blob_choices = 1;
  for (std::size_t i = 0; i < one.container.blobs.size(); ++i) blob_choices *= 3;
  std::uint64_t count = 0;
  for (std::size_t marker = 0; marker < 2; ++marker) {
    for (unsigned indexes = 0; indexes < 4; ++indexes) {
      for (std::uint64_t choice = 0; choice < blob_choices; ++choice) {
        DamagedFiles files;
        files["COMMIT"].bytes = versions[marker]->container.files.at("COMMIT");
        for (std::size_t v = 0; v < 2; ++v) {
          const MiniContainer& container = versions[v]->container;
          if ((indexes >> v & 1) == 0) continue;
          files[container.index_name].bytes = container.files.at(container.index_name);
        }
        std::uint64_t rest = choice;
        for (const auto& [number, blob] : one.container.blobs) {
          if (rest % 3 < 2)
            files[blob.name].bytes = versions[rest % 3]->container.files.at(blob.name);
          rest /= 3;
        }
        checks[marker].storage().files() = files;
        EXPECT_EQ(checks[marker].Both(NamesOf(*versions[marker])), "")
            << one.name << ": marker " << marker << ", indexes " << indexes << ", blobs " << choice;
        ++count;
      }
    }
  }
  return count;
}

TEST(DamageFiles, FilesAreToldAsTheirPlaceSays) {
  std::uint64_t replaced = 0;
  std::uint64_t exchanged = 0;
  std::uint64_t mixed = 0;
  for (const DamageCase* damage_case : AllCases()) {
    replaced += ReplaceEachFile(*damage_case);
    exchanged += ExchangeFiles(*damage_case);
    mixed += MixVersions(*damage_case);
  }
  ASSERT_FALSE(HasFailure());
  RecordRun({.row = "damage-files",
             .title = "Files missing, exchanged, replaced, of two versions",
             .command = kCommand,
             .counts = {{"replaced", replaced}, {"exchanged", exchanged}, {"mixtures", mixed}}});
}

// A blob that holds the same tensors at the same places, but was written under another id.
TEST(DamageFiles, BlobOfAnotherCheckpointUnderOurName) {
  for (const DamageCase* damage_case : AllCases()) {
    constexpr int kOtherIds = 50;
    MiniSpec spec = damage_case->spec;
    for (MiniTensor& tensor : spec.tensors) {
      for (MiniShard& shard : tensor.shards) shard.blob += kOtherIds;
    }
    for (MiniObject& object : spec.objects) object.blob += kOtherIds;
    const MiniContainer other = BuildMini(spec);
    DamageChecker checker(*damage_case);
    for (const auto& [number, blob] : damage_case->container.blobs) {
      checker.bytes(blob.name) = other.files.at(other.blobs.at(number + kOtherIds).name);
      EXPECT_EQ(checker.Both({blob.name}), "") << damage_case->name << ", " << blob.name;
      checker.Restore();
    }
  }
}

TEST(DamageFiles, IndexOfAnotherAttemptUnderOurName) {
  for (const DamageCase* damage_case : AllCases()) {
    const MiniContainer older = BuildMini(OlderVersion(damage_case->spec));
    DamageChecker checker(*damage_case);
    const std::string& name = damage_case->container.index_name;
    checker.bytes(name) = older.files.at(older.index_name);
    EXPECT_EQ(checker.Both({name}), "") << damage_case->name;
  }
}

// This was once reported as an error of the storage, as if the disk had failed.
TEST(DamageFiles, DirectoriesInThePlaceOfFilesAreMissingFiles) {
  const DamageCase& one = SmallDamageCases().front();
  DamageChecker checker(one);
  DamagedFiles& files = checker.storage().files();
  files[one.container.index_name] = {.kind = EntryKind::kDirectory};
  const Status index = LoadEverything(checker.shared_storage()).error();
  EXPECT_EQ(index.code(), Code::kIncomplete);
  EXPECT_EQ(index.place().rule, "R-MRK-05");
  checker.Restore();

  const std::string& blob = one.container.blobs.at(0).name;
  files[blob] = {.kind = EntryKind::kDirectory};
  const auto checkpoint =
      Checkpoint::Open(DamageStorage::kPath,
                       {.storage = checker.shared_storage(), .check_files = false})
          .value();
  Bytes bytes(one.content.tensors.at("grid").size());
  ReadRequest request;
  request.Add("grid", MutableMemoryView::Host(bytes));
  const Status missing = checkpoint->Load(request, LoadContract::Partial()).status();
  EXPECT_EQ(missing.code(), Code::kIncomplete);
  EXPECT_EQ(missing.place().rule, "R-BLB-01");
  EXPECT_EQ(missing.place().path, JoinPath(DamageStorage::kPath, blob));
}

TEST(DamageFiles, VoidMarkerBarsACommittedCheckpoint) {
  const DamageCase& one = SmallDamageCases().front();
  DamageChecker checker(one);
  const internal::format::MarkerBytes bytes = internal::format::EncodeMarker(
      {.kind = internal::format::MarkerKind::kVoid, .attempt = OtherAttempt()});
  checker.bytes("COMMIT").assign(bytes.begin(), bytes.end());
  EXPECT_EQ(checker.Both({"COMMIT"}), "");
}

// How a file changes while it is read.
struct Change {
  std::string what;
  bool loses_all = false;
  std::function<void(Bytes& file)> apply;
};

std::vector<Change> Changes() {
  return {{"cut to nothing", true, [](Bytes& file) { file.clear(); }},
          {"cut in half", false, [](Bytes& file) { file.resize(file.size() / 2); }},
          {"cut by a byte", false, [](Bytes& file) { file.pop_back(); }},
          {"grown by a page", false, [](Bytes& file) { file.resize(file.size() + 4096); }}};
}

// Runs `use` once for each read that it makes of `name`, with the change before that read.
std::uint64_t ChangeBeforeEachRead(DamageChecker& checker, const std::string& name,
                                   const Change& change, const std::function<void()>& use) {
  std::uint64_t count = 0;
  for (bool happened = true; happened;) {
    happened = false;
    std::uint64_t reads = 0;
    checker.storage().before_read = [&](const std::string& read, std::uint64_t) {
      if (read != name || reads++ != count) return;
      happened = true;
      change.apply(checker.bytes(name));
    };
    use();
    checker.storage().before_read = {};
    checker.Restore(name);
    if (happened) ++count;
  }
  return count;
}

TEST(DamageFiles, FilesThatChangeWhileTheyAreVerified) {
  for (const DamageCase& damage_case : SmallDamageCases()) {
    DamageChecker checker(damage_case);
    for (const auto& [name, good] : damage_case.container.files) {
      for (const Change& change : Changes()) {
        Verdict verdict{};
        std::vector<Status> violations;
        const auto use = [&] {
          const VerifyReport report =
              Verify(DamageStorage::kPath, {.storage = checker.shared_storage()}).value();
          verdict = report.verdict;
          violations = report.violations;
          for (const Status& violation : violations) {
            EXPECT_EQ(violation.place().path, JoinPath(DamageStorage::kPath, name))
                << violation.ToString();
          }
          EXPECT_EQ(verdict, CombinedVerdict(violations));
          if (change.loses_all && checker.bytes(name).empty()) {
            EXPECT_NE(verdict, Verdict::kCommitted) << damage_case.name << ", " << name;
          }
        };
        EXPECT_GT(ChangeBeforeEachRead(checker, name, change, use), 0u) << name << change.what;
      }
    }
  }
}

// Either an error that names the file, or exactly what was saved.
TEST(DamageFiles, FilesThatChangeWhileTheyAreLoaded) {
  for (const DamageCase& damage_case : SmallDamageCases()) {
    DamageChecker checker(damage_case);
    for (const auto& [name, good] : damage_case.container.files) {
      for (const Change& change : Changes()) {
        const auto use = [&] {
          const Result<CorpusContent> loaded = LoadEverything(checker.shared_storage());
          if (loaded.ok()) {
            EXPECT_FALSE(change.loses_all && checker.bytes(name).empty())
                << damage_case.name << ", " << name;
            EXPECT_EQ(loaded->tensors, damage_case.content.tensors);
            EXPECT_EQ(loaded->objects, damage_case.content.objects);
          } else {
            EXPECT_TRUE(loaded.error().code() == Code::kIncomplete ||
                        loaded.error().code() == Code::kCorrupt);
            EXPECT_EQ(loaded.error().place().path, JoinPath(DamageStorage::kPath, name))
                << loaded.error().ToString();
          }
        };
        EXPECT_GT(ChangeBeforeEachRead(checker, name, change, use), 0u) << name << change.what;
      }
    }
  }
}

}  // namespace
}  // namespace sealpoint::testing
