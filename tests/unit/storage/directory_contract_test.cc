// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/storage/storage_fixture.h"

// The contract of directories and storages, checked on every storage.

namespace sealpoint {
namespace {

using testing::Names;
using testing::ReadFile;
using testing::WriteFile;

class DirectoryContract : public testing::StorageTest {
 protected:
  std::string PathOf(const std::string& name) const { return root_ + "/" + name; }
};

TEST_P(DirectoryContract, CreationNeverTouchesAnExistingFile) {
  WriteFile(*directory_, "a", "old");
  const auto again = directory_->CreateExclusive("a", {});
  EXPECT_EQ(again.error().code(), Code::kAlreadyExists) << again.error().ToString();
  EXPECT_EQ(again.error().place().path, PathOf("a"));
  EXPECT_EQ(ReadFile(*directory_, "a"), "old");
}

TEST_P(DirectoryContract, CreationInTheWayOfADirectoryFails) {
  ASSERT_TRUE(storage_->CreateDirectories(PathOf("d")).ok());
  EXPECT_EQ(directory_->CreateExclusive("d", {.mode = IoMode::kDirect}).error().code(),
            Code::kAlreadyExists);
}

TEST_P(DirectoryContract, MissingFileIsNotFound) {
  const auto file = directory_->OpenForRead("a", IoMode::kBuffered);
  EXPECT_EQ(file.error().code(), Code::kNotFound);
  EXPECT_EQ(file.error().place().path, PathOf("a"));
  EXPECT_EQ(directory_->Stat("a").error().code(), Code::kNotFound);
  EXPECT_EQ(directory_->Remove("a").code(), Code::kNotFound);
}

TEST_P(DirectoryContract, DirectoryIsNotReadAsAFile) {
  ASSERT_TRUE(storage_->CreateDirectories(PathOf("d/e")).ok());
  EXPECT_EQ(directory_->ReadFileIn("d", "e", 3).error().code(), Code::kIo);
  const auto file = directory_->OpenForRead("d", IoMode::kBuffered);
  EXPECT_EQ(file.error().code(), Code::kIo) << file.error().ToString();
  EXPECT_EQ(directory_->Remove("d").code(), Code::kIo);
}

TEST_P(DirectoryContract, DescribesFilesAndDirectories) {
  WriteFile(*directory_, "f", "12345");
  ASSERT_TRUE(storage_->CreateDirectories(PathOf("d")).ok());
  EXPECT_EQ(directory_->Stat("f").value(), (EntryInfo{"f", EntryKind::kFile, 5}));
  EXPECT_EQ(directory_->Stat("d").value(), (EntryInfo{"d", EntryKind::kDirectory, 0}));
}

TEST_P(DirectoryContract, VisitsWhatItLists) {
  ASSERT_TRUE(storage_->CreateDirectories(PathOf("d")).ok());
  for (const char* const name : {"b", "a", "c"}) WriteFile(*directory_, name, "12345");
  std::vector<EntryInfo> visited;
  const Status all = directory_->ForEachEntry([&](const EntryInfo& entry) {
    visited.push_back(entry);
    return true;
  });
  EXPECT_TRUE(all.ok()) << all.ToString();
  std::sort(visited.begin(), visited.end(),
            [](const EntryInfo& a, const EntryInfo& b) { return a.name < b.name; });
  EXPECT_EQ(visited, directory_->List().value());
  int count = 0;
  EXPECT_TRUE(directory_->ForEachEntry([&](const EntryInfo&) { return ++count < 2; }).ok());
  EXPECT_EQ(count, 2);
}

TEST_P(DirectoryContract, ListsBytewise) {
  for (const char* const name : {"b", "a", "B", "\xc3\xa4", ".x", "a-"}) {
    WriteFile(*directory_, name, "");
  }
  ASSERT_TRUE(storage_->CreateDirectories(PathOf("aa")).ok());
  EXPECT_EQ(Names(*directory_),
            (std::vector<std::string>{".x", "B", "a", "a-", "aa", "b", "\xc3\xa4"}));
  EXPECT_EQ(Names(*directory_).size(), 7u) << "a second listing starts anew";
}

TEST_P(DirectoryContract, RemovesFiles) {
  WriteFile(*directory_, "a", "");
  ASSERT_TRUE(directory_->Remove("a").ok());
  EXPECT_TRUE(Names(*directory_).empty());
}

TEST_P(DirectoryContract, NamesWithSlashesAreRefusedByEveryFunction) {
  for (const char* const name : {"", ".", "..", "a/b", "../a"}) {
    EXPECT_EQ(directory_->CreateExclusive(name, {}).error().code(), Code::kInvalidArgument);
    EXPECT_EQ(directory_->OpenForRead(name, IoMode::kBuffered).error().code(),
              Code::kInvalidArgument);
    EXPECT_EQ(directory_->Stat(name).error().code(), Code::kInvalidArgument);
    EXPECT_EQ(directory_->Remove(name).code(), Code::kInvalidArgument);
    EXPECT_EQ(directory_->PublishExclusive(name, "a", PublishMethod::kLink).code(),
              Code::kInvalidArgument);
    EXPECT_EQ(directory_->PublishExclusive("a", name, PublishMethod::kLink).code(),
              Code::kInvalidArgument);
    EXPECT_EQ(directory_->Probe(name).error().code(), Code::kInvalidArgument);
  }
}

TEST_P(DirectoryContract, NameThatIsTooLongIsAnError) {
  const std::string name(256, 'x');
  EXPECT_EQ(directory_->CreateExclusive(name, {}).error().code(), Code::kIo);
  EXPECT_EQ(directory_->Stat(name).error().code(), Code::kIo);
}

TEST_P(DirectoryContract, LinkPublishesOnceAndKeepsTheSource) {
  WriteFile(*directory_, "one", "1");
  WriteFile(*directory_, "two", "2");
  ASSERT_TRUE(directory_->PublishExclusive("one", "COMMIT", PublishMethod::kLink).ok());
  EXPECT_EQ(ReadFile(*directory_, "one"), "1");
  const Status again = directory_->PublishExclusive("two", "COMMIT", PublishMethod::kLink);
  EXPECT_EQ(again.code(), Code::kAlreadyExists);
  EXPECT_EQ(again.place().path, PathOf("COMMIT"));
  EXPECT_EQ(ReadFile(*directory_, "COMMIT"), "1");
  ASSERT_TRUE(directory_->Remove("one").ok());
  EXPECT_EQ(ReadFile(*directory_, "COMMIT"), "1");
}

TEST_P(DirectoryContract, RenamePublishesOnceAndTakesTheSource) {
  WriteFile(*directory_, "one", "1");
  WriteFile(*directory_, "two", "2");
  constexpr auto kMethod = PublishMethod::kRenameNoReplace;
  ASSERT_TRUE(directory_->PublishExclusive("one", "COMMIT", kMethod).ok());
  EXPECT_EQ(directory_->Stat("one").error().code(), Code::kNotFound);
  EXPECT_EQ(directory_->PublishExclusive("two", "COMMIT", kMethod).code(), Code::kAlreadyExists);
  EXPECT_EQ(ReadFile(*directory_, "COMMIT"), "1");
  EXPECT_EQ(ReadFile(*directory_, "two"), "2");
}

TEST_P(DirectoryContract, PublishingNothingIsNotFound) {
  for (const auto method : {PublishMethod::kLink, PublishMethod::kRenameNoReplace}) {
    EXPECT_EQ(directory_->PublishExclusive("a", "b", method).code(), Code::kNotFound);
  }
}

TEST_P(DirectoryContract, PublishingOverADirectoryFails) {
  WriteFile(*directory_, "a", "");
  ASSERT_TRUE(storage_->CreateDirectories(PathOf("d")).ok());
  for (const auto method : {PublishMethod::kLink, PublishMethod::kRenameNoReplace}) {
    EXPECT_EQ(directory_->PublishExclusive("a", "d", method).code(), Code::kAlreadyExists);
  }
}

TEST_P(DirectoryContract, PublishingByNoMethodIsUnsupported) {
  WriteFile(*directory_, "a", "");
  EXPECT_EQ(directory_->PublishExclusive("a", "b", PublishMethod::kNone).code(),
            Code::kUnsupported);
}

TEST_P(DirectoryContract, ALinkFromAnotherDirectoryIsASecondName) {
  ASSERT_TRUE(storage_->CreateDirectories(PathOf("d")).ok());
  ASSERT_TRUE(storage_->CreateDirectories(PathOf("e")).ok());
  const auto from = storage_->OpenDirectory(PathOf("d")).value();
  const auto third = storage_->OpenDirectory(PathOf("e")).value();
  WriteFile(*from, "a", "1");
  EXPECT_EQ(directory_->LinkFrom(PathOf("d"), "a", 1).code(), Code::kUnsupported);
  ASSERT_TRUE(directory_->LinkFrom(PathOf("d"), "a", 2).ok());
  EXPECT_EQ(directory_->LinkFrom(PathOf("d"), "a", 9).code(), Code::kAlreadyExists);
  EXPECT_EQ(third->LinkFrom(PathOf("d"), "a", 2).code(), Code::kUnsupported);
  ASSERT_TRUE(from->Remove("a").ok());
  EXPECT_EQ(ReadFile(*directory_, "a"), "1");
  EXPECT_EQ(directory_->LinkFrom(PathOf("d"), "a", 9).code(), Code::kNotFound);
  EXPECT_EQ(directory_->LinkFrom(PathOf("d"), "../a", 9).code(), Code::kInvalidArgument);
  EXPECT_EQ(directory_->LinkFrom(PathOf("gone"), "a", 9).code(), Code::kNotFound);
}

TEST_P(DirectoryContract, SyncsAndKnowsItsSpace) {
  EXPECT_TRUE(directory_->Sync().ok());
  const auto space = directory_->FreeSpace();
  ASSERT_TRUE(space.ok()) << space.error().ToString();
  EXPECT_GT(space->free_bytes, 0u);
  EXPECT_GT(space->free_inodes, 0u);
}

TEST_P(DirectoryContract, ProbeFindsAMethodAndLeavesNothingBehind) {
  WriteFile(*directory_, "other", "");
  const auto found = directory_->Probe("probe");
  ASSERT_TRUE(found.ok()) << found.error().ToString();
  EXPECT_EQ(found->publish, PublishMethod::kLink);
  EXPECT_TRUE(found->directory_sync);
  EXPECT_EQ(Names(*directory_), std::vector<std::string>{"other"});
}

TEST_P(DirectoryContract, MissingDirectoryIsNotFound) {
  const auto missing = storage_->OpenDirectory(PathOf("d"));
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
  EXPECT_EQ(missing.error().place().path, PathOf("d"));
  EXPECT_EQ(directory_->RemoveSubdirectory("d").code(), Code::kNotFound);
  EXPECT_EQ(directory_->OpenSubdirectory("d").error().code(), Code::kNotFound);
  EXPECT_EQ(directory_->ReadFileIn("d", "f", 9).error().code(), Code::kNotFound);
}

TEST_P(DirectoryContract, FileIsNotADirectory) {
  WriteFile(*directory_, "f", "");
  EXPECT_EQ(storage_->OpenDirectory(PathOf("f")).error().code(), Code::kIo);
  EXPECT_EQ(storage_->CreateDirectories(PathOf("f")).code(), Code::kIo);
  EXPECT_EQ(storage_->CreateDirectories(PathOf("f/g")).code(), Code::kIo);
  EXPECT_EQ(directory_->RemoveSubdirectory("f").code(), Code::kIo);
  EXPECT_EQ(directory_->OpenSubdirectory("f").error().code(), Code::kIo);
  EXPECT_EQ(directory_->ReadFileIn("f", "g", 9).error().code(), Code::kIo);
}

TEST_P(DirectoryContract, MakesAllLevelsAndDoesNotMindThoseThatExist) {
  ASSERT_TRUE(storage_->CreateDirectories(PathOf("a//b/c/")).ok());
  ASSERT_TRUE(storage_->CreateDirectories(PathOf("a/b/d")).ok());
  const auto opened = storage_->OpenDirectory(PathOf("a/b"));
  ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  EXPECT_EQ(Names(**opened), (std::vector<std::string>{"c", "d"}));
}

TEST_P(DirectoryContract, RemovesOnlyEmptyDirectories) {
  ASSERT_TRUE(storage_->CreateDirectories(PathOf("a/b")).ok());
  EXPECT_EQ(directory_->RemoveSubdirectory("a").code(), Code::kIo);
  ASSERT_TRUE(directory_->OpenSubdirectory("a").value()->RemoveSubdirectory("b").ok());
  ASSERT_TRUE(directory_->RemoveSubdirectory("a").ok());
  EXPECT_EQ(storage_->OpenDirectory(PathOf("a")).error().code(), Code::kNotFound);
}

TEST_P(DirectoryContract, SubdirectoriesAreNamedByOneComponent) {
  ASSERT_TRUE(storage_->CreateDirectories(PathOf("a/b")).ok());
  for (const std::string name : {"", ".", "..", "a/b", "a/.", "/"}) {
    EXPECT_EQ(directory_->RemoveSubdirectory(name).code(), Code::kInvalidArgument) << name;
    EXPECT_EQ(directory_->OpenSubdirectory(name).error().code(), Code::kInvalidArgument) << name;
    EXPECT_EQ(directory_->ReadFileIn(name, "f", 9).error().code(), Code::kInvalidArgument) << name;
    EXPECT_EQ(directory_->ReadFileIn("a", name, 9).error().code(), Code::kInvalidArgument) << name;
  }
}

TEST_P(DirectoryContract, ReadsTheBeginOfAFileInASubdirectory) {
  ASSERT_TRUE(storage_->CreateDirectories(PathOf("a/b")).ok());
  const auto opened = directory_->OpenSubdirectory("a");
  ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  EXPECT_EQ((*opened)->path(), PathOf("a"));
  WriteFile(**opened, "f", "content");
  EXPECT_EQ(AsText(directory_->ReadFileIn("a", "f", 100).value()), "content");
  EXPECT_EQ(AsText(directory_->ReadFileIn("a", "f", 3).value()), "con");
  EXPECT_EQ(directory_->ReadFileIn("a", "g", 3).error().code(), Code::kNotFound);
}

TEST_P(DirectoryContract, RemovedDirectoryTakesNoFiles) {
  ASSERT_TRUE(storage_->CreateDirectories(PathOf("a")).ok());
  const auto opened = directory_->OpenSubdirectory("a").value();
  ASSERT_TRUE(directory_->RemoveSubdirectory("a").ok());
  EXPECT_EQ(opened->CreateExclusive("f", {}).error().code(), Code::kNotFound);
}

TEST_P(DirectoryContract, EmptyPathIsRefused) {
  EXPECT_EQ(storage_->OpenDirectory("").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(storage_->CreateDirectories("").code(), Code::kInvalidArgument);
}

SEALPOINT_FOR_ALL_STORAGES(DirectoryContract);

TEST(MemoryStorage, AbsoluteAndRelativePathsAreTheSame) {
  const auto storage = MemoryStorage();
  ASSERT_TRUE(storage->CreateDirectories("/a/b").ok());
  EXPECT_TRUE(storage->OpenDirectory("a/b").ok());
}

TEST(MemoryStorage, TwoStoragesShareNothing) {
  ASSERT_TRUE(MemoryStorage()->CreateDirectories("a").ok());
  EXPECT_FALSE(MemoryStorage()->OpenDirectory("a").ok());
}

// A sanitizer ends the program if an allocation fails.
#if !defined(SEALPOINT_TEST_SANITIZED)
TEST(MemoryStorage, FileThatFitsNoMemoryIsNoSpace) {
  const auto storage = MemoryStorage();
  auto root = storage->OpenDirectory("/");
  auto file = (*root)->CreateExclusive("a", {});
  EXPECT_EQ((*file)->WriteAt(std::uint64_t{1} << 62, AsBytes("x")).code(), Code::kNoSpace);
}
#endif

}  // namespace
}  // namespace sealpoint
