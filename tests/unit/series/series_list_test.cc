// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lib/series/series_scan.h"
#include "tests/support/process/temp_dir.h"
#include "tests/unit/series/series_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

std::vector<std::string> NamesOf(const SeriesListing& listing) {
  std::vector<std::string> names;
  for (const SeriesEntry& entry : listing.entries) names.push_back(entry.name);
  return names;
}

TEST(SeriesNameTest, HasTwelveDigitsAndTheAttempt) {
  AttemptId attempt;
  attempt.bytes = {std::byte{0x1f}, std::byte{0x2e}, std::byte{0x3d}, std::byte{0x4c},
                   std::byte{0x55}};
  EXPECT_EQ(SeriesDirectoryName(42, attempt), "step-000000000042-1f2e3d4c");
  EXPECT_EQ(SeriesDirectoryName(1234567890123u, attempt), "step-1234567890123-1f2e3d4c");
}

using SeriesListTest = SeriesTest;

TEST_F(SeriesListTest, NothingThereIsEmpty) {
  const Series nowhere(InPlace("nowhere"), storage_);
  EXPECT_THAT(nowhere.List().value().entries, IsEmpty());
  EXPECT_EQ(nowhere.List().value().newest(), nullptr);
  EXPECT_THAT(nowhere.Newest().status(), HasCode(Code::kNotFound));
  EXPECT_THAT(series_.List().value().entries, IsEmpty());
  EXPECT_THAT(series_.Newest().status(), HasCode(Code::kNotFound));
}

TEST_F(SeriesListTest, AFileIsNoSeries) {
  PutFile("x", "file");
  EXPECT_THAT(Series(InPlace("series/x/file"), storage_).List().status(), HasCode(Code::kIo));
}

TEST_F(SeriesListTest, NewestIsTheGreatestSequence) {
  // Neither names nor steps nor the order of creation say so.
  Put("step-000000000900-03030303", 3, 2, 3);
  Put("z", 1);
  Put("a", 2, 1, 2);
  const SeriesListing listing = series_.List().value();
  EXPECT_THAT(NamesOf(listing), ElementsAre("step-000000000900-03030303", "a", "z"));
  ASSERT_NE(listing.newest(), nullptr);
  EXPECT_EQ(listing.newest()->sequence, 3u);
  EXPECT_EQ(listing.newest()->step, 103u);
  EXPECT_EQ(listing.newest()->parent, MiniSpec::MakeId(2));
  EXPECT_THAT(listing.forks, IsEmpty());
}

TEST_F(SeriesListTest, ReadsAnyDirectoryName) {
  Put("my favourite", 1);
  const SeriesEntry entry = series_.List().value().entries.at(0);
  EXPECT_EQ(entry.name, "my favourite");
  EXPECT_EQ(entry.path, Path("my favourite"));
  EXPECT_EQ(entry.verdict, Verdict::kCommitted);
  EXPECT_TRUE(entry.problem.ok());
  std::uint64_t size = 0;
  for (const auto& [name, bytes] : Container(1).files) size += bytes.size();
  EXPECT_EQ(entry.size_bytes, size);
}

// Somebody's closed folder beside the checkpoints must not end all saves; what may be a step does.
TEST_F(SeriesListTest, WhatCannotBeOpenedAndHasNoNumberIsForeign) {
  Put("step-a", 1);
  for (const std::string name : {"private", "iter_0000042", "step-000000000007-00000000", "best"}) {
    const bool is_foreign = name == "private" || name == "best";
    Put(name, 2, 1, 2);
    for (const auto detail :
         {internal::series::SeriesDetail::kFiles, internal::series::SeriesDetail::kMarkers}) {
      storage_->Fail(
          {.any_op = true, .path = name, .nth = 0, .error = Status(Code::kIo, "closed")});
      const auto listing = internal::series::ScanSeries(*storage_, InPlace("series"), detail);
      ASSERT_TRUE(listing.ok()) << listing.error().ToString();
      EXPECT_EQ(listing->unread() == nullptr, is_foreign) << name;
      EXPECT_EQ(listing->foreign_count, is_foreign ? 1u : 0u) << name;
      EXPECT_EQ(series_.Newest().ok(), is_foreign) << name;
      storage_->Heal();
    }
    for (const auto& [file, bytes] : Container(2, 1, 2).files) {
      ReplaceFile(*memory_, Path(name), file, nullptr);
    }
    ASSERT_TRUE(memory_->OpenDirectory(InPlace("series")).value()->RemoveSubdirectory(name).ok());
  }
}

TEST_F(SeriesListTest, ReportsForks) {
  Put("a", 1);
  Put("b", 3, 1, 2);
  Put("c", 2, 1, 2);
  const SeriesListing listing = series_.List().value();
  EXPECT_THAT(listing.forks, ElementsAre(MiniSpec::MakeId(2), MiniSpec::MakeId(3)));
  EXPECT_EQ(listing.newest()->attempt, MiniSpec::MakeId(3)) << "on a tie the greatest id";
}

TEST_F(SeriesListTest, CopiesAreNoFork) {
  Put("a", 1);
  Put("b", 2, 1, 2);
  Put("copy of b", 2, 1, 2);
  const SeriesListing listing = series_.List().value();
  EXPECT_THAT(listing.forks, IsEmpty());
  EXPECT_THAT(NamesOf(listing), ElementsAre("b", "copy of b", "a"));
}

TEST_F(SeriesListTest, ForeignNamesAreListedApart) {
  Put("a", 1);
  PutFile("logs", "events.json");
  const Bytes content = NoiseBytes(1, 3);
  ReplaceFile(*memory_, InPlace("series"), "notes.txt", &content);
  const SeriesListing listing = series_.List().value();
  EXPECT_THAT(NamesOf(listing), ElementsAre("a"));
  EXPECT_THAT(listing.foreign, ElementsAre("logs", "notes.txt"));
  EXPECT_EQ(listing.foreign_count, 2u);
}

// A signature that was put into a checkpoint stays when that is deleted; it is no attempt then.
TEST_F(SeriesListTest, ADirectoryWithForeignFilesAloneIsForeignWhateverItsName) {
  const std::string name = "step-000000000007-01010101";
  Put(name, 1);
  PutFile(name, "model.sig");
  Put("b", 2, 1, 2);
  EXPECT_THAT(NamesOf(series_.List().value()), ElementsAre("b", name));
  ASSERT_TRUE(series_.Delete(name).ok());
  const SeriesListing listing = series_.List().value();
  EXPECT_THAT(NamesOf(listing), ElementsAre("b"));
  EXPECT_THAT(listing.foreign, ElementsAre(name));
  EXPECT_THAT(series_.RemoveUncommitted(name).status(), HasCode(Code::kInvalidArgument));
}

TEST_F(SeriesListTest, ForeignNamesBeyondALimitAreCounted) {
  Put("a", 1);
  const Bytes content = NoiseBytes(1, 3);
  constexpr std::size_t kMax = SeriesListing::kForeignNamesMax;
  for (std::size_t i = 0; i < kMax + 7; ++i) {
    ReplaceFile(*memory_, InPlace("series"), std::to_string(10000 + i), &content);
  }
  // A directory is known to be foreign only when it was looked at.
  ASSERT_TRUE(memory_->CreateDirectories(Path("0 first")).ok());
  const SeriesListing listing = series_.List().value();
  EXPECT_THAT(NamesOf(listing), ElementsAre("a"));
  EXPECT_EQ(listing.foreign.size(), kMax);
  EXPECT_EQ(listing.foreign.front(), "0 first");
  EXPECT_EQ(listing.foreign.back(), std::to_string(10000 + kMax - 2));
  EXPECT_EQ(listing.foreign_count, kMax + 8);
}

TEST_F(SeriesListTest, UncommittedOnesAreTold) {
  ASSERT_TRUE(memory_->CreateDirectories(Path("step-000000000001-00000000")).ok());
  PutFile("leftover", MiniSpec::MakeId(9).ToHex() + ".blob");
  PutFile("probe", MiniSpec::MakeId(9).ToHex() + ".probe.shared");
  ASSERT_TRUE(memory_->CreateDirectories(Path("void")).ok());
  ASSERT_TRUE(PublishVoidMarker(*memory_, Path("void")).ok());
  const SeriesListing listing = series_.List().value();
  // In an object store a folder without objects is nothing.
  std::vector<std::string> expected = {"leftover", "probe", "step-000000000001-00000000", "void"};
  if (IsInObjects()) expected.erase(expected.begin() + 2);
  EXPECT_THAT(NamesOf(listing), ElementsAreArray(expected));
  for (const SeriesEntry& entry : listing.entries) {
    EXPECT_EQ(entry.verdict, Verdict::kUncommitted) << entry.name;
    EXPECT_THAT(entry.problem, HasCode(Code::kUncommitted)) << entry.name;
    EXPECT_EQ(entry.is_void, entry.name == "void");
  }
  EXPECT_EQ(listing.entries[0].size_bytes, 10u);
  EXPECT_EQ(listing.newest(), nullptr);
}

TEST_F(SeriesListTest, DamagedMarkersAreTold) {
  Put("a", 1);
  PutFile("b", "COMMIT");
  Put("c", 3, 1, 2);
  Bytes flipped = Container(3, 1, 2).marker();
  flipped[100] ^= std::byte{1};
  ReplaceFile(*memory_, Path("c"), "COMMIT", &flipped);
  const SeriesListing listing = series_.List().value();
  EXPECT_THAT(NamesOf(listing), ElementsAre("a", "b", "c"));
  EXPECT_EQ(listing.entries[1].verdict, Verdict::kCorrupt);
  EXPECT_EQ(listing.entries[2].verdict, Verdict::kCorrupt);
}

TEST_F(SeriesListTest, UnreadableMarkersAreTold) {
  Put("a", 1);
  storage_->Fail({.op = StorageOp::kOpenForRead, .name = "COMMIT"});
  const SeriesListing listing = series_.List().value();
  EXPECT_EQ(listing.entries.at(0).verdict, Verdict::kUnreadable);
  EXPECT_THAT(listing.entries.at(0).problem, HasCode(Code::kIo));
}

TEST_F(SeriesListTest, KeepIsNoticed) {
  Put("a", 1);
  PutFile("a", "KEEP");
  EXPECT_TRUE(series_.List().value().entries.at(0).is_kept);
}

TEST_F(SeriesListTest, FollowsLinksToCheckpointsOnly) {
  const TempDir dir;
  StoreFiles(*PosixStorage(), dir / "elsewhere/real", Container(1).files);
  std::filesystem::create_directories(dir / "series");
  std::filesystem::create_directory_symlink(dir / "elsewhere/real", dir / "series/link");
  std::filesystem::create_directory_symlink(dir / InPlace("nowhere"), dir / "series/dangling");
  std::filesystem::create_symlink(dir / "elsewhere/real/COMMIT", dir / "series/to.a.file");
  const Series series(dir / "series");
  const SeriesListing listing = series.List().value();
  EXPECT_THAT(NamesOf(listing), ElementsAre("link"));
  EXPECT_THAT(listing.foreign, ElementsAre("dangling", "to.a.file"));
  EXPECT_EQ(series.Newest().value().entry.attempt, MiniSpec::MakeId(1));
}

TEST(SeriesNames, AreToldFromOthersByEachPart) {
  const std::string name = SeriesDirectoryName(7, MiniSpec::MakeId(1));
  ASSERT_TRUE(internal::series::IsSeriesDirectoryName(name));
  EXPECT_FALSE(internal::series::IsSeriesDirectoryName(name + "0"));
  EXPECT_FALSE(internal::series::IsSeriesDirectoryName(name.substr(0, name.size() - 1)));
  for (const std::uint64_t step :
       {std::uint64_t{999999999999}, std::uint64_t{1000000000000}, ~std::uint64_t{0}}) {
    EXPECT_TRUE(
        internal::series::IsSeriesDirectoryName(SeriesDirectoryName(step, MiniSpec::MakeId(1))));
  }
  EXPECT_FALSE(internal::series::IsSeriesDirectoryName("step-0000000000001-01010101"))
      << "13 digits, filled";
  EXPECT_FALSE(internal::series::IsSeriesDirectoryName("step-123456789012345678901-01010101"));
  EXPECT_FALSE(internal::series::IsSeriesDirectoryName("step-12345678901-01010101")) << "11 digits";
  EXPECT_FALSE(internal::series::IsSeriesDirectoryName("step-"));
  const auto with = [&](std::size_t at, char letter) {
    std::string other = name;
    other.at(at) = letter;
    return internal::series::IsSeriesDirectoryName(other);
  };
  EXPECT_FALSE(with(0, 'x')) << "the prefix";
  EXPECT_FALSE(with(4, '0')) << "the prefix's dash";
  EXPECT_FALSE(with(5, 'a')) << "the first digit of the step";
  EXPECT_FALSE(with(16, 'a')) << "the last digit of the step";
  EXPECT_FALSE(with(17, '0')) << "the dash behind the step";
  EXPECT_FALSE(with(18, 'g')) << "the first digit of the attempt";
  EXPECT_FALSE(with(25, 'F')) << "the last digit of the attempt";
  EXPECT_TRUE(with(25, 'f'));
}

}  // namespace
}  // namespace sealpoint::testing
