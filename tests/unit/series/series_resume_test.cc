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
