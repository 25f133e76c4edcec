// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/series/series_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class SeriesResumeTest : public SeriesTest {
 protected:
  SeriesResumeTest() {
    Put("a", 1);
    Put("b", 2, 1, 2);
    Put("c", 3, 2, 3);
  }
};

TEST_F(SeriesResumeTest, TakesTheNewest) {
  const ResumePoint point = series_.Newest().value();
  EXPECT_EQ(point.entry.name, "c");
  EXPECT_THAT(point.skipped, IsEmpty());
}

// From one look at the newest to the next its marker became that of a void directory.
TEST_F(SeriesResumeTest, TheNewestIsLookedAtAgainOnceItIsOpen) {
  const Bytes marker = VoidMarker(3);
  const auto newest = [&](int replaced) {
    int opens = 0;
    storage_->SetHook([&](StorageOp op, std::string_view name) {
      if (op != StorageOp::kOpenForRead || name != "COMMIT") return;
      if (++opens == replaced) ReplaceFile(*memory_, Path("c"), "COMMIT", &marker);
    });
    const std::string found = series_.Newest().value().entry.name;
    storage_->SetHook({});
    return std::pair(found, opens);
  };
  const auto [found, opens] = newest(0);
  EXPECT_EQ(found, "c");
  EXPECT_GE(opens, 2);
  EXPECT_EQ(newest(opens).first, "b");
}

TEST_F(SeriesResumeTest, ACheckpointGivenForItsSeriesIsAnErrorThatNamesTheSeries) {
  const Status error = Series(Path("c"), storage_).Newest().status();
  EXPECT_THAT(error, HasCode(Code::kInvalidArgument));
  EXPECT_THAT(error.message(),
              ::testing::HasSubstr("its parent directory, " + series_.path() + ","));
}

TEST_F(SeriesResumeTest, ACheckpointIsNamedByADot) {
  const Status here = Series(Path("c") + "/.", storage_).Newest().status();
  EXPECT_THAT(here.message(), ::testing::HasSubstr("parent directory, " + Path("c") + "/./..,"));
}

TEST_F(SeriesResumeTest, RefusesADamagedNewestUnlessAsked) {
  ReplaceFile(*memory_, Path("c"), BlobOf(3), nullptr);
  EXPECT_THAT(series_.Newest().status(), HasCode(Code::kIncomplete));
  const ResumePoint point = series_.Newest({.allow_fallback = true}).value();
  EXPECT_EQ(point.entry.name, "b");
  ASSERT_THAT(point.skipped, SizeIs(1));
  EXPECT_EQ(point.skipped[0].name, "c");
  EXPECT_EQ(point.skipped[0].verdict, Verdict::kIncomplete);
  EXPECT_THAT(point.skipped[0].problem, HasCode(Code::kIncomplete));
}

TEST_F(SeriesResumeTest, ADamagedIndexIsPassedOverTooIfAsked) {
  Bytes index = Container(3, 2, 3).index();
  index.back() ^= std::byte{1};
  ReplaceFile(*memory_, Path("c"), Container(3, 2, 3).index_name, &index);
  EXPECT_THAT(series_.Newest().status(), HasCode(Code::kCorrupt));
  EXPECT_EQ(series_.Newest({.allow_fallback = true}).value().entry.name, "b");
}

class CheckedTest : public SeriesTest {
 protected:
  // The provenance entries sdc.state and sdc.upto; empty: without this entry.
  // Returns the name of its index.
  std::string PutChecked(std::uint8_t number, const std::string& state, const std::string& upto,
                         std::uint64_t step) {
    MiniSpec spec{.attempt = MiniSpec::MakeId(number),
                  .parent = MiniSpec::MakeId(static_cast<std::uint8_t>(number - 1)),
                  .sequence = number,
                  .step = step};
    if (!state.empty()) spec.provenance.emplace_back("sdc.state", state);
    if (!upto.empty()) spec.provenance.emplace_back("sdc.upto", upto);
    const MiniContainer made = BuildMini(spec);
    StoreFiles(*memory_, Path(std::string(1, static_cast<char>('`' + number))), made.files);
    return made.index_name;
  }
  std::string Checked() {
    const Result<ResumePoint> point = series_.Newest({.require_checked = true});
    return point ? point->entry.name : "";
  }
};

TEST_F(CheckedTest, ResumesFromACheckedOneIfAsked) {
  PutChecked(1, "checked", "8", 10);
  PutChecked(2, "checked", "18", 20);
  EXPECT_EQ(Checked(), "b");
  PutChecked(3, "unchecked", "", 30);
  EXPECT_EQ(series_.Newest().value().entry.name, "c");
  const ResumePoint point = series_.Newest({.require_checked = true}).value();
  EXPECT_EQ(point.entry.name, "b");
  ASSERT_THAT(point.skipped, SizeIs(1));
  EXPECT_EQ(point.skipped[0].name, "c");
  EXPECT_EQ(point.skipped[0].verdict, Verdict::kCommitted);
  EXPECT_THAT(point.skipped[0].problem, HasCode(Code::kInvalidArgument));
  EXPECT_EQ(point.skipped[0].problem.place().rule, "R-FPR-04");
  // What was found later began after step 18: step 20 may have it.
  PutChecked(4, "found", "18", 40);
  EXPECT_EQ(Checked(), "a");
  EXPECT_THAT(series_.Newest({.require_checked = true}).value().skipped, SizeIs(3));
  // After the training went on from step 10.
  PutChecked(5, "checked", "28", 30);
  EXPECT_EQ(Checked(), "e");
  PutChecked(6, "found", "30", 40);
  EXPECT_EQ(Checked(), "e");
  PutChecked(7, "found", "29", 40);
  EXPECT_EQ(Checked(), "a");
}

TEST_F(CheckedTest, AFindingWithoutAGoodStepLeavesNothingChecked) {
  for (const char* const upto : {"", "x", "-1", "5x", "18446744073709551615"}) {
    PutChecked(1, "checked", "0", 0);
    EXPECT_EQ(Checked(), "a");
    PutChecked(2, "found", upto, 5);
    const Status error = series_.Newest({.require_checked = true}).status();
    EXPECT_THAT(error, HasCode(Code::kInvalidArgument)) << upto;
    EXPECT_THAT(error.message(), ::testing::HasSubstr("sdc.state is found"));
    EXPECT_EQ(series_.Newest().value().entry.name, "b");
    ASSERT_TRUE(RemoveCheckpoint(*memory_, Path("b"), {.everything = true}).ok());
  }
  PutChecked(2, "found", "0", 5);
  EXPECT_EQ(Checked(), "a");
}

TEST_F(CheckedTest, DamageOfTheNewestIsAnErrorOfItsOwn) {
  PutChecked(1, "checked", "8", 10);
  const std::string index = PutChecked(2, "checked", "18", 20);
  ReplaceFile(*memory_, Path("b"), index, nullptr);
  EXPECT_THAT(series_.Newest({.require_checked = true}).status(), HasCode(Code::kIncomplete));
  EXPECT_EQ(series_.Newest({.allow_fallback = true, .require_checked = true}).value().entry.name,
            "a");
}

TEST_F(SeriesResumeTest, OneThatCannotBeReadMayBeTheNewest) {
  for (const StorageOp op :
       {StorageOp::kOpenDirectory, StorageOp::kList, StorageOp::kOpenForRead, StorageOp::kRead}) {
    storage_->Heal();
    storage_->Fail({.op = op, .path = Path("c"), .nth = 0});
    EXPECT_THAT(series_.Newest().status(), HasCode(Code::kIo));
  }
  storage_->Heal();
  storage_->Fail({.op = StorageOp::kOpenForRead, .path = "c/COMMIT", .nth = 0});
  const ResumePoint point = series_.Newest({.allow_fallback = true}).value();
  EXPECT_EQ(point.entry.name, "b");
  ASSERT_THAT(point.skipped, SizeIs(1));
  EXPECT_EQ(point.skipped[0].name, "c");
}

TEST_F(SeriesResumeTest, OneWhoseMarkerIsDamagedMayBeTheNewest) {
  Bytes marker = Container(3, 2, 3).marker();
  marker[100] ^= std::byte{1};
  ReplaceFile(*memory_, Path("c"), "COMMIT", &marker);
  EXPECT_THAT(series_.Newest().status(), HasCode(Code::kCorrupt));
  const ResumePoint point = series_.Newest({.allow_fallback = true}).value();
  EXPECT_EQ(point.entry.name, "b");
  ASSERT_THAT(point.skipped, SizeIs(1));
  EXPECT_EQ(point.skipped[0].name, "c");
}

TEST_F(SeriesResumeTest, WhatTheFileSystemKeepsInItsRootIsNoCheckpoint) {
  ASSERT_TRUE(memory_->CreateDirectories(Path("lost+found")).ok());
  storage_->Fail({.op = StorageOp::kOpenDirectory, .name = "lost+found", .nth = 0});
  EXPECT_EQ(series_.Newest().value().entry.name, "c");
  EXPECT_THAT(series_.List().value().foreign, ::testing::ElementsAre("lost+found"));
}

TEST_F(SeriesResumeTest, OnlyASeriesWithoutACheckpointIsNotFound) {
  EXPECT_THAT(Series(InPlace("nowhere"), storage_).Newest().status(),
              FailsRule(Code::kNotFound, "R-SER-20"));
  ASSERT_TRUE(memory_->CreateDirectories(InPlace("empty")).ok());
  EXPECT_THAT(Series(InPlace("empty"), storage_).Newest().status(),
              FailsRule(Code::kNotFound, "R-SER-20"));
  EXPECT_THAT(Series(InPlace("empty/new"), storage_).Newest().status(),
              FailsRule(Code::kNotFound, "R-SER-20"));
}

TEST_F(SeriesResumeTest, AParentThatCannotBeOpenedIsThere) {
  storage_->Fail({.op = StorageOp::kOpenDirectory, .name = "closed", .nth = 2});
  EXPECT_THAT(Series(InPlace("closed/new"), storage_).Newest().status(),
              FailsRule(Code::kNotFound, "R-SER-20"));
}

TEST_F(SeriesResumeTest, AFileSystemThatIsNotThereIsNoEmptySeries) {
  const Status status = Series(InPlace("mount/job/run"), storage_).Newest().status();
  EXPECT_THAT(status, HasCode(Code::kIo));
  EXPECT_THAT(status.message(), ::testing::HasSubstr("nor the directory mount/job above it"));
  EXPECT_THAT(Series(InPlace("mount/job/run"), storage_).List().value().entries, IsEmpty());
}

TEST_F(SeriesResumeTest, NothingLeftToFallBackToIsTheErrorOfTheNewest) {
  for (std::uint8_t i = 1; i <= 3; ++i) {
    ReplaceFile(*memory_, Path(std::string(1, static_cast<char>('a' + i - 1))), BlobOf(i), nullptr);
  }
  const Status status = series_.Newest({.allow_fallback = true}).status();
  EXPECT_THAT(status, HasCode(Code::kIncomplete));
  EXPECT_THAT(status.message(), ::testing::StartsWith("no checkpoint to fall back to; c: "));
}

TEST_F(SeriesResumeTest, UncommittedOnesDoNotCount) {
  ReplaceFile(*memory_, Path("c"), "COMMIT", nullptr);
  EXPECT_EQ(series_.Newest().value().entry.name, "b");
}

}  // namespace
}  // namespace sealpoint::testing
