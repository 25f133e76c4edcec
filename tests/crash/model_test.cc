// SPDX-License-Identifier: Apache-2.0
//
// The disk of the crash tests behaves as tests/support/crash/disk.h says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/support/crash/disk.h"
#include "tests/support/crash/states.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

Bytes Letters(std::size_t count, char letter) {
  return Bytes(count, static_cast<std::byte>(letter));
}

// "f:1024 g:0", of one directory.
std::string NamesAndSizes(const CrashImage& image, std::string_view directory) {
  std::string out;
  const CrashFolder* const folder = image.Find(directory);
  if (folder == nullptr) return "gone";
  for (const auto& [name, content] : folder->files) {
    if (!out.empty()) out += ' ';
    out += name + ":" + std::to_string(content->bytes.size());
  }
  return out;
}

class CrashModel : public ::testing::Test {
 protected:
  void SetUp() override {
    CrashImage start;
    start.folders["d"];
    disk_ = std::make_unique<CrashDisk>(2, start);
    for (int actor : {0, 1}) directories_.push_back(disk_->View(actor)->OpenDirectory("d").value());
  }
  std::unique_ptr<WritableFile> Create(int actor, const std::string& name, const Bytes& bytes) {
    auto file = directories_[static_cast<std::size_t>(actor)]->CreateExclusive(name, {}).value();
    EXPECT_TRUE(file->WriteAt(0, bytes).ok());
    return file;
  }
  Directory& dir(int actor = 0) { return *directories_[static_cast<std::size_t>(actor)]; }
  // What can be found when everything has been done.
  std::set<std::string> AtTheEnd(const CrashOptions& options = {}) {
    std::set<std::string> found;
    const CrashHistory history = disk_->history();
    ForEachCrashAt(history, AllCuts(history).back(), options,
                   [&](const CrashImage& image, const CrashCut&) {
                     found.insert(NamesAndSizes(image, "d"));
                     return true;
                   });
    return found;
  }

  std::unique_ptr<CrashDisk> disk_;
  std::vector<std::unique_ptr<Directory>> directories_;
};

TEST_F(CrashModel, NothingUnsyncedIsCertain) {
  Create(0, "f", Letters(512, 'a'));
  EXPECT_THAT(AtTheEnd(), UnorderedElementsAre("", "f:0", "f:512"));
}

TEST_F(CrashModel, SyncOfAFileIsNotThatOfItsName) {
  ASSERT_TRUE(Create(0, "f", Letters(512, 'a'))->Sync().ok());
  EXPECT_THAT(AtTheEnd(), UnorderedElementsAre("", "f:512"));
}

TEST_F(CrashModel, SyncOfADirectoryIsNotThatOfItsFiles) {
  Create(0, "f", Letters(512, 'a'));
  ASSERT_TRUE(dir().Sync().ok());
  EXPECT_THAT(AtTheEnd(), UnorderedElementsAre("f:0", "f:512"));
}

TEST_F(CrashModel, NamesSurviveEachForItself) {
  ASSERT_TRUE(Create(0, "f", {})->Sync().ok());
  ASSERT_TRUE(Create(0, "g", {})->Sync().ok());
  EXPECT_THAT(AtTheEnd(), UnorderedElementsAre("", "f:0", "g:0", "f:0 g:0"));
}

TEST_F(CrashModel, WhatIsWrittenAfterTheSyncIsNotCertain) {
  const auto file = Create(0, "f", Letters(512, 'a'));
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(dir().Sync().ok());
  ASSERT_TRUE(file->WriteAt(512, Letters(512, 'b')).ok());
  EXPECT_THAT(AtTheEnd(), UnorderedElementsAre("f:512", "f:1024"));
}

TEST_F(CrashModel, EachSectorIsWrittenLostZeroOrGarbage) {
  Create(0, "f", Letters(1024, 'a'));
  ASSERT_TRUE(dir().Sync().ok());
  std::set<std::pair<int, int>> firsts;  // first byte of each sector
  const CrashHistory history = disk_->history();
  ForEachCrashAt(history, AllCuts(history).back(), {}, [&](const CrashImage& image, const auto&) {
    const Bytes& bytes = image.Find("d")->files.at("f")->bytes;
    if (bytes.size() < 1024) return true;
    firsts.emplace(static_cast<int>(bytes[0]), static_cast<int>(bytes[512]));
    return true;
  });
  constexpr int kGarbage = 'a' ^ 0xa5;
  EXPECT_THAT(firsts, ElementsAre(std::pair(0, 0), std::pair(0, 'a'), std::pair('a', 0),
                                  std::pair('a', 'a'), std::pair('a', kGarbage),
                                  std::pair(kGarbage, 'a'), std::pair(kGarbage, kGarbage)));
}

TEST_F(CrashModel, LengthMaySurviveWithoutTheData) {
  Create(0, "f", Letters(512, 'a'));
  ASSERT_TRUE(dir().Sync().ok());
  bool zeros_seen = false;
  const CrashHistory history = disk_->history();
  ForEachCrash(history, {}, [&](const CrashImage& image, const auto&) {
    const auto file = image.Find("d")->files.find("f");
    zeros_seen |= file != image.Find("d")->files.end() && file->second->bytes == Bytes(512);
    return true;
  });
  EXPECT_TRUE(zeros_seen);
}

TEST_F(CrashModel, SyncOfADirectoryCoversItsOwnActorOnly) {
  Create(0, "f", {});
  disk_->PutBefore(0, 1);
  ASSERT_TRUE(dir(1).Sync().ok());
  EXPECT_THAT(AtTheEnd(), UnorderedElementsAre("", "f:0"));
  EXPECT_THAT(AtTheEnd({.reach = SyncReach::kEverybodys}), ElementsAre("f:0"));
}

TEST_F(CrashModel, RemovalMayBeUndone) {
  Create(0, "f", {});
  ASSERT_TRUE(dir().Sync().ok());
  ASSERT_TRUE(dir().Remove("f").ok());
  EXPECT_THAT(AtTheEnd(), UnorderedElementsAre("", "f:0"));
  ASSERT_TRUE(dir().Sync().ok());
  EXPECT_THAT(AtTheEnd(), ElementsAre(""));
}

TEST_F(CrashModel, LinkAddsANameAlone) {
  Create(0, "f", {});
  ASSERT_TRUE(dir().Sync().ok());
  ASSERT_TRUE(dir().PublishExclusive("f", "g", PublishMethod::kLink).ok());
  EXPECT_THAT(AtTheEnd(), UnorderedElementsAre("f:0", "f:0 g:0"));
}

TEST_F(CrashModel, RenameChangesBothNamesAtOnce) {
  Create(0, "f", {});
  ASSERT_TRUE(dir().Sync().ok());
  ASSERT_TRUE(dir().PublishExclusive("f", "g", PublishMethod::kRenameNoReplace).ok());
  EXPECT_THAT(AtTheEnd(), UnorderedElementsAre("f:0", "g:0"));
}

TEST_F(CrashModel, DirectoryIsGoneWithItsEntry) {
  const auto storage = disk_->View(0);
  ASSERT_TRUE(storage->CreateDirectories("new").ok());
  CrashOptions lying;
  lying.is_lost = [](const CrashOp& op) { return op.is_sync(); };
  const CrashHistory history = disk_->history();
  int with = 0;
  int without = 0;
  ForEachCrashAt(history, AllCuts(history).back(), lying, [&](const CrashImage& image, auto&) {
    ++(image.Find("new") != nullptr ? with : without);
    return true;
  });
  EXPECT_EQ(std::pair(with, without), std::pair(1, 1));
}

TEST_F(CrashModel, PublicationIsExclusiveUnlessTold) {
  Create(0, "f", {});
  Create(0, "g", {});
  EXPECT_EQ(dir().PublishExclusive("f", "g", PublishMethod::kLink).code(), Code::kAlreadyExists);
  CrashDisk replacing(1, disk_->Now(), {.publishes_exclusively = false});
  const auto opened = replacing.View(0)->OpenDirectory("d").value();
  EXPECT_TRUE(opened->PublishExclusive("f", "g", PublishMethod::kLink).ok());
}

TEST_F(CrashModel, CutsRespectWhatHappenedBefore) {
  Create(0, "f", {});  // create, write
  disk_->PutBefore(0, 1);
  Create(1, "g", {});
  EXPECT_EQ(AllCuts(disk_->history()).size(), 5u);
  Create(0, "h", {});  // at the same time as g
  EXPECT_EQ(AllCuts(disk_->history()).size(), 11u);
}

TEST_F(CrashModel, FaultsAreCountedByActor) {
  disk_->Fail({.actor = 1, .nth = 2});
  disk_->Fail({.actor = 0, .nth = 3, .takes_effect = true});
  Create(0, "f", {});
  const auto poisoned = dir(1).CreateExclusive("g", {}).value();
  EXPECT_EQ(poisoned->WriteAt(0, Letters(1, 'a')).code(), Code::kIo);
  EXPECT_EQ(poisoned->Sync().code(), Code::kIo);
  EXPECT_EQ(dir(0).Remove("f").code(), Code::kIo);
  EXPECT_EQ(NamesAndSizes(disk_->Now(), "d"), "g:0");
}

TEST_F(CrashModel, ImageIsWhatTheNextDiskBeginsWith) {
  Create(0, "f", Letters(3, 'x'));
  const CrashImage now = disk_->Now();
  EXPECT_EQ(ReadWholeFile(*StorageOf(now), "d", "f"), Letters(3, 'x'));
  EXPECT_EQ(CrashDisk(1, now).Now().Describe(), now.Describe());
}

}  // namespace
}  // namespace sealpoint::testing
