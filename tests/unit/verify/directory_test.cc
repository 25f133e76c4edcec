// SPDX-License-Identifier: Apache-2.0
//
// What the directory as a whole holds: markers, index, missing and foreign files, the report.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "lib/format/constants.h"
#include "tests/support/container/format_surgery.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/unit/verify/verify_fixture.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VerifyDirectory : public VerifyFixture {
 protected:
  void SetUp() override { Store(SmallSpec()); }
  void Put(const std::string& name, const Bytes& bytes) {
    ReplaceFile(*storage_, "ckpt", name, &bytes);
  }
  void Drop(const std::string& name) { ReplaceFile(*storage_, "ckpt", name, nullptr); }
  std::uint64_t TotalBytes() const {
    std::uint64_t total = 0;
    for (const auto& [name, bytes] : container_.files) total += bytes.size();
    return total;
  }
};

TEST_F(VerifyDirectory, GoodCheckpointIsCommittedAtEachLevel) {
  for (const VerifyLevel level :
       {VerifyLevel::kFiles, VerifyLevel::kStructure, VerifyLevel::kFull}) {
    const VerifyReport report = Check(level);
    EXPECT_EQ(report.verdict, Verdict::kCommitted);
    EXPECT_EQ(report.level, level);
    EXPECT_THAT(report.violations, IsEmpty());
    EXPECT_THAT(report.notes, IsEmpty());
  }
}

TEST_F(VerifyDirectory, ReportSaysWhatWasChecked) {
  const VerifyReport report = Check();
  EXPECT_EQ(report.path, "ckpt");
  EXPECT_EQ(report.attempt, container_.attempt);
  EXPECT_EQ(report.sequence, 1u);
  EXPECT_EQ(report.step, 7u);
  EXPECT_EQ(report.tensor_count, 4u);
  EXPECT_EQ(report.object_count, 2u);
  EXPECT_EQ(report.blob_count, 2u);
  EXPECT_EQ(report.chunk_count, 7u);
  EXPECT_EQ(report.bytes_checked, TotalBytes());
  EXPECT_GT(report.seconds, 0);
}

// Whatever is removed, and at whichever call: with its marker gone there is no checkpoint to be
// incomplete.
TEST_F(VerifyDirectory, WhatIsDeletedMeanwhileIsGoneAndNotIncomplete) {
  for (const VerifyLevel level :
       {VerifyLevel::kFiles, VerifyLevel::kStructure, VerifyLevel::kFull}) {
    int calls_max = 1;
    int deleted_count = 0;
    for (int nth = 1; nth <= calls_max; ++nth) {
      StoreAgain();
      const auto failing = std::make_shared<FailingStorage>(storage_);
      int calls = 0;
      failing->SetHook([&](StorageOp, std::string_view) {
        if (++calls != nth) return;
        for (const auto& [name, bytes] : container_.files) Drop(name);
      });
      const VerifyReport report =
          Verify("ckpt", {.level = level, .direct_io = false, .storage = failing}).value();
      calls_max = std::max(calls_max, calls);
      EXPECT_NE(report.verdict, Verdict::kIncomplete) << "call " << nth;
      EXPECT_NE(report.verdict, Verdict::kCorrupt) << "call " << nth;
      if (report.verdict != Verdict::kUnreadable || report.attempt.is_zero()) continue;
      ++deleted_count;
      ASSERT_EQ(report.violations.size(), 1u) << "call " << nth;
      EXPECT_EQ(report.violation_count, 1u);
      EXPECT_EQ(report.violations[0].code(), Code::kNotFound);
      EXPECT_EQ(report.violations[0].message(), "the checkpoint was deleted while it was verified");
      EXPECT_EQ(report.violations[0].place().path, "ckpt");
    }
    EXPECT_GT(deleted_count, 0);
  }
}

TEST_F(VerifyDirectory, WhatIsMissingBehindAMarkerThatStaysIsIncomplete) {
  for (const auto& [name, bytes] : container_.files) {
    if (name == format::kMarkerName) continue;
    StoreAgain();
    Drop(name);
    EXPECT_EQ(Check().verdict, Verdict::kIncomplete) << name;
  }
}

TEST_F(VerifyDirectory, ProgressEndsAtTheTotal) {
  std::atomic<int> running = 0;
  std::vector<std::uint64_t> done;
  VerifyOptions options{.threads = 3, .storage = storage_};
  options.on_progress = [&](const PhaseEvent& progress) {
    EXPECT_EQ(++running, 1);
    done.push_back(progress.bytes_done);
    --running;
  };
  ASSERT_TRUE(Verify("ckpt", options).ok());
  ASSERT_FALSE(done.empty());
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), TotalBytes());
}

TEST_F(VerifyDirectory, NoThreadIsAnInvalidArgument) {
  EXPECT_EQ(Verify("ckpt", {.threads = -1, .storage = storage_}).error().code(),
            Code::kInvalidArgument);
}

TEST_F(VerifyDirectory, MissingPathIsUnreadable) {
  const VerifyReport report = Verify("nowhere", {.storage = storage_}).value();
  EXPECT_EQ(report.verdict, Verdict::kUnreadable);
  EXPECT_THAT(report.violations, ElementsAre(Violates(Code::kNotFound, "R-DIR-01", "nowhere", 0)));
}

TEST_F(VerifyDirectory, NoFileOfOursIsNoCheckpoint) {
  for (const auto& [name, bytes] : container_.files) Drop(name);
  Put("README", {});
  const VerifyReport report = Check();
  EXPECT_EQ(report.verdict, Verdict::kUnreadable);
  ASSERT_EQ(report.violations.size(), 1u);
  EXPECT_EQ(report.violations[0].code(), Code::kNotACheckpoint);
}

TEST_F(VerifyDirectory, NoMarkerIsUncommittedAndAllIsLeftOver) {
  Drop("COMMIT");
  const VerifyReport report = Check();
  EXPECT_EQ(report.verdict, Verdict::kUncommitted);
  EXPECT_THAT(report.violations,
              ElementsAre(Violates(Code::kUncommitted, "R-MRK-01", "ckpt/COMMIT", 0)));
  EXPECT_EQ(report.leftover_bytes, TotalBytes() - format::kMarkerSize);
  EXPECT_EQ(report.notes.size(), 3u);
}

TEST_F(VerifyDirectory, VoidMarkerIsUncommitted) {
  const format::MarkerBytes marker =
      format::EncodeMarker({.kind = format::MarkerKind::kVoid, .attempt = MiniSpec::MakeId(9)});
  Put("COMMIT", Bytes(marker.begin(), marker.end()));
  const VerifyReport report = Check();
  EXPECT_EQ(report.verdict, Verdict::kUncommitted);
  ASSERT_EQ(report.violations.size(), 1u);
  EXPECT_THAT(report.violations[0].message(), HasSubstr("void"));
  EXPECT_EQ(report.leftover_bytes, TotalBytes() - format::kMarkerSize);
}

TEST_F(VerifyDirectory, DamagedMarkerEndsTheCheck) {
  FlipBit(container_.marker(), 8 * 160);
  StoreAgain();
  const VerifyReport report = Check();
  EXPECT_EQ(report.verdict, Verdict::kCorrupt);
  EXPECT_THAT(report.violations,
              ElementsAre(Violates(Code::kCorrupt, "R-HDR-04", "ckpt/COMMIT", 40)));
  EXPECT_EQ(report.leftover_bytes, 0u);
}

TEST_F(VerifyDirectory, DamagedIndexEndsTheCheck) {
  FlipBit(container_.index(), 8 * 200);
  StoreAgain();
  const VerifyReport report = Check();
  EXPECT_EQ(report.verdict, Verdict::kCorrupt);
  EXPECT_THAT(report.violations,
              ElementsAre(Violates(Code::kCorrupt, "R-MRK-06", PathOf(container_.index_name), 0)));
  EXPECT_EQ(report.sequence, 1u);
  EXPECT_EQ(report.blob_count, 0u);
}

TEST_F(VerifyDirectory, MissingIndexIsIncomplete) {
  Drop(container_.index_name);
  const VerifyReport report = Check();
  EXPECT_EQ(report.verdict, Verdict::kIncomplete);
  EXPECT_THAT(report.violations, ElementsAre(Violates(Code::kIncomplete, "R-MRK-05",
                                                      PathOf(container_.index_name), 0)));
}

TEST_F(VerifyDirectory, EachMissingBlobIsNamedAtEachLevel) {
  Drop(container_.blobs.at(0).name);
  Drop(container_.blobs.at(1).name);
  for (const VerifyLevel level :
       {VerifyLevel::kFiles, VerifyLevel::kStructure, VerifyLevel::kFull}) {
    const VerifyReport report = Check(level);
    EXPECT_EQ(report.verdict, Verdict::kIncomplete);
    EXPECT_THAT(report.violations,
                ElementsAre(Violates(Code::kIncomplete, "R-BLB-01", BlobPath(0), 0),
                            Violates(Code::kIncomplete, "R-BLB-01", BlobPath(1), 0)));
  }
}

TEST_F(VerifyDirectory, DirectoryInPlaceOfABlobIsSaidToBeNone) {
  const TempDir temp;
  const std::string blob = container_.blobs.at(0).name;
  container_.files.erase(blob);
  StoreFiles(*PosixStorage(), temp.path(), container_.files);
  ASSERT_TRUE(PosixStorage()->CreateDirectories(temp / blob).ok());
  const VerifyReport report = Verify(temp.path(), {.level = VerifyLevel::kFiles}).value();
  ASSERT_EQ(report.violations.size(), 1u);
  EXPECT_THAT(report.violations[0], Violates(Code::kIncomplete, "R-BLB-01", temp / blob, 0));
  EXPECT_THAT(report.violations[0].message(), HasSubstr("not a regular file"));
}

TEST_F(VerifyDirectory, DamageBesideAMissingBlobIsFoundAndWins) {
  const std::uint64_t offset = container_.blobs.at(1).records.front().offset;
  FlipBit(container_.blob(1), 8 * offset);
  StoreAgain();
  Drop(container_.blobs.at(0).name);
  const VerifyReport report = Check();
  EXPECT_EQ(report.verdict, Verdict::kCorrupt);
  EXPECT_THAT(report.violations,
              ElementsAre(Violates(Code::kIncomplete, "R-BLB-01", BlobPath(0), 0),
                          Violates(Code::kCorrupt, "R-CHK-02", BlobPath(1), offset)));
}

TEST_F(VerifyDirectory, LongerBlobIsCorruptAndItsPinnedPartIsChecked) {
  const std::uint64_t size = container_.blob(0).size();
  FlipBit(container_.blob(0), 0);
  container_.blob(0).resize(size + 1);
  StoreAgain();
  const VerifyReport report = Check();
  EXPECT_EQ(report.verdict, Verdict::kCorrupt);
  ASSERT_EQ(report.violations.size(), 2u);
  EXPECT_EQ(report.violations[0].place().rule, "R-HDR-10");
  EXPECT_EQ(report.violations[1].place().offset, size);
}

TEST_F(VerifyDirectory, ForeignNamesAreNotes) {
  Put("README.md", NoiseBytes(1, 10));
  Put("x.blob", NoiseBytes(1, 10));
  const VerifyReport report = Check();
  EXPECT_EQ(report.verdict, Verdict::kCommitted);
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("README.md"), HasSubstr("x.blob")));
  EXPECT_EQ(report.leftover_bytes, 0u);
}

TEST_F(VerifyDirectory, ManyForeignNamesAreNotedInPartAndCounted) {
  for (int i = 0; i < 1003; ++i) Put("x" + std::to_string(10'000 + i), {});
  const VerifyReport report = Check();
  ASSERT_EQ(report.notes.size(), 1001u);
  EXPECT_EQ(report.notes.front(), "foreign, not checked: x10000");
  EXPECT_EQ(report.notes[999], "foreign, not checked: x10999");
  EXPECT_EQ(report.notes.back(), "3 more foreign files");
}

TEST_F(VerifyDirectory, FilesOfOtherAttemptsAreLeftovers) {
  Put(format::BlobName(MiniSpec::MakeId<BlobId>(0x77)), NoiseBytes(1, 10));
  Put(format::IndexName(MiniSpec::MakeId(0x77)), NoiseBytes(1, 20));
  Put(format::UnpublishedMarkerName(container_.attempt), NoiseBytes(1, 40));
  const VerifyReport report = Check();
  EXPECT_EQ(report.verdict, Verdict::kCommitted);
  EXPECT_EQ(report.leftover_bytes, 70u);
  EXPECT_EQ(report.notes.size(), 3u);
}

TEST_F(VerifyDirectory, FilesOfKindsOfALaterVersionAreNoted) {
  Put(container_.attempt.ToHex() + ".sig", NoiseBytes(1, 10));
  const VerifyReport report = Check();
  EXPECT_EQ(report.verdict, Verdict::kCommitted);
  EXPECT_EQ(report.leftover_bytes, 10u);
  EXPECT_THAT(report.notes, ElementsAre("of an unknown kind, not checked, 10 bytes: " +
                                        container_.attempt.ToHex() + ".sig"));
}

// The blobs of the index are searched by their ids.
TEST_F(VerifyDirectory, BlobBeforeThoseOfTheIndexIsALeftover) {
  BlobId before = container_.blobs.at(0).id;
  before.bytes[0] = std::byte{0};
  Put(format::BlobName(before), NoiseBytes(1, 10));
  EXPECT_EQ(Check().leftover_bytes, 10u);
}

TEST_F(VerifyDirectory, KeepIsNeitherForeignNorLeftOver) {
  Put("KEEP", {});
  const VerifyReport report = Check();
  EXPECT_EQ(report.verdict, Verdict::kCommitted);
  EXPECT_THAT(report.notes, IsEmpty());
}

TEST_F(VerifyDirectory, UnknownCompatFeaturesAreANote) {
  MiniSpec spec = SmallSpec();
  spec.hooks.index_header = [](format::FileHeader& header) { header.features.compat = 4; };
  spec.hooks.marker = [](format::Marker& marker) { marker.features.compat = 4; };
  Store(spec);
  const VerifyReport report = Check();
  EXPECT_EQ(report.verdict, Verdict::kCommitted);
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("compat features 4")));
}

TEST_F(VerifyDirectory, LimitsMakeItUnsupported) {
  VerifyOptions options{.storage = storage_};
  options.limits.blob_count_max = 1;
  const VerifyReport report = Verify("ckpt", options).value();
  EXPECT_EQ(report.verdict, Verdict::kUnsupported);
  ASSERT_EQ(report.violations.size(), 1u);
  EXPECT_EQ(report.violations[0].code(), Code::kLimitExceeded);
}

}  // namespace
}  // namespace sealpoint::testing
