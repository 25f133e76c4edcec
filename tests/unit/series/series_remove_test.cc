// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/endian.h"
#include "lib/format/fields.h"
#include "sealpoint/object_store.h"
#include "tests/support/container/format_surgery.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/storage/memory_object_store.h"
#include "tests/support/storage/write_file.h"
#include "tests/unit/series/series_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class SeriesRemoveTest : public SeriesTest {
 protected:
  SeriesRemoveTest() {
    Put("a", 1);
    Put("b", 2, 1, 2);
  }
  bool Exists(const std::string& name) { return memory_->OpenDirectory(Path(name)).ok(); }
  std::vector<std::string> Files(const std::string& name) {
    return FileNames(*memory_, Path(name));
  }
  std::uint64_t SizeOf(std::uint8_t attempt) {
    std::uint64_t size = 0;
    for (const auto& [name, bytes] : Container(attempt).files) size += bytes.size();
    return size;
  }
};

TEST_F(SeriesRemoveTest, DeletesTheMarkerFirst) {
  ASSERT_TRUE(series_.Delete("a").ok());
  EXPECT_FALSE(Exists("a"));
  EXPECT_TRUE(Exists("b"));
  const std::string index = Container(1).index_name;
  std::vector<std::string> rest = {"remove " + index, "remove " + BlobOf(1)};
  std::sort(rest.begin(), rest.end());
  // The first sync is that of the newer one's directory.
  EXPECT_THAT(storage_->changes(),
              ElementsAre("sync directory", "remove COMMIT", "sync directory", rest[0], rest[1],
                          "sync directory", "remove directory"));
}

TEST_F(SeriesRemoveTest, RemovesInThisOrder) {
  for (const char* const name : {"metadata.json", ".metadata", "other", "stays"}) {
    WriteFile(*memory_, Path("b") + "/" + name, "x");
  }
  const RemovalOptions options{.first = {"metadata.json", ".metadata"}, .also = {"other", "none"}};
  ASSERT_TRUE(RemoveCheckpoint(*storage_, Path("b"), options).ok());
  const auto changes = storage_->changes();
  ASSERT_GE(changes.size(), 7u);
  EXPECT_THAT(std::vector(changes.begin(), changes.begin() + 7),
              ElementsAre("remove metadata.json", "sync directory", "remove .metadata",
                          "sync directory", "remove COMMIT", "sync directory", "remove other"));
  EXPECT_THAT(Files("b"), ElementsAre("stays"));
  EXPECT_TRUE(RemoveCheckpoint(*storage_, Path("none")).ok());
  ASSERT_TRUE(RemoveCheckpoint(*storage_, Path("b"), {.everything = true}).ok());
  EXPECT_FALSE(Exists("b"));
}

// In an object store, too, an attempt is void before its files go; with foreign objects beside them
// it stays so.
TEST(SeriesObjectsTest, AnAttemptIsVoidBeforeItsObjectsGo) {
  const std::string blob = "run/a/" + std::string(32, '1') + ".blob";
  for (const bool is_late : {false, true}) {
    const auto store = std::make_shared<MemoryObjectStore>();
    store->Set(blob, Bytes(10));
    store->Set("run/a/README", Bytes(1));
    const Series series("mem://bucket/run", ObjectStorage(store).value());
    // Whoever puts a marker afterwards is too late; or one was first.
    store->hook_on = "COMMIT";
    store->hook = [&] { EXPECT_TRUE(store->Objects().contains(blob)); };
    if (is_late) store->hook = [&] { store->Set("run/a/COMMIT", Bytes(512)); };
    EXPECT_EQ(series.RemoveUncommitted("a").ok(), !is_late);
    EXPECT_TRUE(store->Objects().contains("run/a/COMMIT"));
    EXPECT_EQ(store->Objects().contains(blob), is_late);
  }
}

// A store that keeps folders lists one for a while after its last object went.
TEST(SeriesObjectsTest, AFolderThatIsListedAndNotFoundIsNotThere) {
  const auto store = std::make_shared<MemoryObjectStore>();
  for (const auto& [name, content] : BuildInSeries(1, 0, 1).files) {
    store->Set("run/a/" + name, content);
  }
  store->ghost = "run/step-000000000007-01020304/";
  const SeriesListing listing =
      Series("mem://bucket/run", ObjectStorage(store).value()).List().value();
  ASSERT_THAT(listing.entries, SizeIs(1));
  EXPECT_EQ(listing.entries[0].name, "a");
}

// R-SER-25. What no listing of names shows goes with the attempt, even if it had nothing else.
TEST(SeriesObjectsTest, UploadsGoBehindTheVoidMarker) {
  const auto store = std::make_shared<MemoryObjectStore>();
  const auto storage = ObjectStorage(store).value();
  const Series series("mem://bucket/run", storage);
  const std::string blob = std::string(32, '1') + ".blob";
  std::vector<std::unique_ptr<ObjectUpload>> uploads;
  for (const std::string& name :
       {"a/" + blob, std::string("a/model.bin"), "b/" + blob, "c/" + blob})
    uploads.push_back(store->StartUpload("run/" + name).value());
  store->Set("run/c/COMMIT", Bytes(512));
  EXPECT_THAT(series.List()->entries, SizeIs(1)) << "c; nothing shows a and b";
  const auto found = series.ListUnfinished().value();
  ASSERT_THAT(found, SizeIs(4));
  EXPECT_EQ(found[0], (UnfinishedFile{"a/" + blob, "1", 1}));
  store->hook_on = "/COMMIT";
  store->hook = [&] { EXPECT_EQ(store->unfinished_uploads(), 4u) << "not void yet"; };
  const auto report = series.RemoveUncommitted("a").value();
  EXPECT_EQ(report.aborted, std::vector{found[0]});
  EXPECT_TRUE(report.uploads.ok());
  EXPECT_EQ(uploads[0]->Complete().code(), Code::kIo);
  EXPECT_TRUE(store->Objects().contains("run/a/COMMIT"));
  EXPECT_EQ(series.ListUnfinished()->size(), 3u) << "not the foreign one, nor those beside it";
  EXPECT_THAT(series.RemoveUncommitted("c").status(),
              FailsRule(Code::kInvalidArgument, "R-SER-07"));
  EXPECT_THAT(series.RemoveUncommitted("d").status(), HasCode(Code::kNotFound));
  store->lists_uploads = false;
  store->Set("run/b/" + blob, Bytes(10));
  const auto unlisted = series.RemoveUncommitted("b").value();
  EXPECT_EQ(unlisted.bytes_freed, 10u);
  EXPECT_THAT(unlisted.uploads, HasCode(Code::kUnsupported));
  EXPECT_EQ(store->unfinished_uploads(), 3u);
}

TEST_F(SeriesRemoveTest, RefusesToDeleteTheNewest) {
  EXPECT_THAT(series_.Delete("b"), FailsRule(Code::kInvalidArgument, "R-SER-05"));
  ASSERT_TRUE(series_.Delete("a").ok());
  EXPECT_THAT(series_.Delete("b"), FailsRule(Code::kInvalidArgument, "R-SER-05"));
  EXPECT_THAT(Files("b"), SizeIs(3));
}

TEST_F(SeriesRemoveTest, RefusesToDeleteWhatIsKeptUncommittedOrNotThere) {
  PutFile("a", "KEEP");
  EXPECT_THAT(series_.Delete("a"), FailsRule(Code::kInvalidArgument, "R-SER-05"));
  PutFile("leftover", BlobOf(7));
  EXPECT_THAT(series_.Delete("leftover"), FailsRule(Code::kInvalidArgument, "R-SER-05"));
  EXPECT_THAT(series_.Delete("nothing"), HasCode(Code::kNotFound));
  for (const std::string name : {"", ".", "..", "a/../b"}) {
    EXPECT_THAT(series_.Delete(name), HasCode(Code::kInvalidArgument)) << name;
    const Status refused = series_.RemoveUncommitted(name).status();
    EXPECT_THAT(refused, HasCode(Code::kInvalidArgument)) << name;
    EXPECT_THAT(refused.message(), HasSubstr("is not a name in a series"));
  }
  EXPECT_THAT(Files("a"), SizeIs(4));
}

TEST_F(SeriesRemoveTest, WhatIsNotListedIsNotFound) {
  const Status status = series_.Delete("nothing");
  EXPECT_THAT(status, HasCode(Code::kNotFound));
  EXPECT_EQ(status.message(), "no such checkpoint");
  EXPECT_EQ(status.place().path, Path("nothing"));
}

TEST_F(SeriesRemoveTest, DeletesOnlyBehindADurableNewerOne) {
  Put("c", 3, 2, 3);
  ReplaceFile(*memory_, Path("c"), BlobOf(3), nullptr);
  ASSERT_TRUE(series_.Delete("a").ok()) << "b is newer and whole";
  EXPECT_THAT(series_.Delete("b"), FailsRule(Code::kInvalidArgument, "R-SER-11"));
  EXPECT_THAT(Files("b"), SizeIs(3));
}

TEST_F(SeriesRemoveTest, NothingIsDeletedWhenTheNewerOneCannotBeSynced) {
  storage_->Fail({.op = StorageOp::kSyncDirectory, .name = "b"});
  EXPECT_THAT(series_.Delete("a"), HasCode(Code::kIo));
  EXPECT_THAT(Files("a"), SizeIs(3));
}

// One error of a read must not make the newest look like a damaged one, nor a kept one like any.
TEST_F(SeriesRemoveTest, DeletesNothingThatCouldNotBeRead) {
  storage_->Fail({.op = StorageOp::kRead, .path = "b/COMMIT", .nth = 0});
  EXPECT_THAT(series_.Delete("b"), HasCode(Code::kIo));
  EXPECT_THAT(Files("b"), SizeIs(3));
  storage_->Heal();
  storage_->Fail({.op = StorageOp::kRead, .path = "a/COMMIT", .nth = 0});
  EXPECT_THAT(series_.Delete("a"), HasCode(Code::kIo));
  EXPECT_THAT(Files("a"), SizeIs(3));
  PutFile("a", "KEEP");
  storage_->Heal();
  storage_->Fail({.op = StorageOp::kList, .name = Path("a")});
  EXPECT_THAT(series_.Delete("a"), HasCode(Code::kIo));
  EXPECT_THAT(Files("a"), SizeIs(4));
}

TEST_F(SeriesRemoveTest, ANewerOneThatCannotBeReadIsNoDamagedOne) {
  Put("c", 3, 2, 3);
  ReplaceFile(*memory_, Path("b"), BlobOf(2), nullptr);
  storage_->Fail({.op = StorageOp::kStat, .path = BlobOf(3), .nth = 0});
  const Status status = series_.Delete("a");
  EXPECT_THAT(status, FailsRule(Code::kIo, "R-SER-11"));
  EXPECT_THAT(status.message(), HasSubstr("of c: injected"));
  EXPECT_THAT(Files("a"), SizeIs(3));
}

TEST_F(SeriesRemoveTest, DeletesADamagedOne) {
  Bytes marker = Container(1).marker();
  marker[100] ^= std::byte{1};
  ReplaceFile(*memory_, Path("a"), "COMMIT", &marker);
  ASSERT_TRUE(series_.Delete("a").ok());
  EXPECT_FALSE(Exists("a"));
}

TEST_F(SeriesRemoveTest, RefusesToDeleteADamagedOneWhereNoneIsCommitted) {
  PutFile("a", "COMMIT");
  PutFile("b", "COMMIT");
  ASSERT_EQ(series_.List().value().newest(), nullptr);
  EXPECT_THAT(series_.Delete("a"), FailsRule(Code::kInvalidArgument, "R-SER-05"));
  EXPECT_THAT(Files("a"), SizeIs(3));
}

// It is listed behind what is committed, but its marker says where it belongs.
TEST_F(SeriesRemoveTest, OneOfAnotherVersionIsDeletedOnlyBehindANewerOne) {
  MiniContainer other = Container(3, 2, 3);
  internal::StoreLe(MutableByteSpan(other.marker()), internal::format::HeaderFields::kVersion.at,
                    std::uint32_t{0});
  ResealMarker(other.marker());
  StoreFiles(*memory_, Path("c"), other.files);
  EXPECT_THAT(series_.Delete("c"), FailsRule(Code::kInvalidArgument, "R-SER-11"));
  EXPECT_THAT(Files("c"), SizeIs(3));
  Put("d", 4, 3, 4);
  EXPECT_TRUE(series_.Delete("c").ok());
}

TEST_F(SeriesRemoveTest, LeavesForeignFiles) {
  PutFile("a", "metadata.json");
  ASSERT_TRUE(series_.Delete("a").ok());
  EXPECT_THAT(Files("a"), ElementsAre("metadata.json"));
}

// A checkpoint of a later version may have files of kinds that this one does not know.
TEST_F(SeriesRemoveTest, FilesOfAnUnknownKindGoWithTheirCheckpoint) {
  const std::string parity = MiniSpec::MakeId(1).ToHex() + ".parity";
  PutFile("a", parity);
  ASSERT_TRUE(series_.Delete("a").ok());
  EXPECT_FALSE(Exists("a"));
  PutFile("dead", BlobOf(7));
  PutFile("dead", parity);
  EXPECT_EQ(series_.RemoveUncommitted("dead").value().bytes_freed, 20u);
  EXPECT_THAT(Files("dead"), ElementsAre("COMMIT"));
}

// A folder of pictures that are named by their digests.
TEST_F(SeriesRemoveTest, NamesOfAnUnknownKindAloneAreNoAttempt) {
  PutFile("pictures", "d41d8cd98f00b204e9800998ecf8427e.png");
  EXPECT_THAT(series_.List().value().foreign, ElementsAre("pictures"));
  EXPECT_THAT(series_.RemoveUncommitted("pictures").status(),
              FailsRule(Code::kInvalidArgument, "R-SER-07"));
  EXPECT_THAT(Files("pictures"), SizeIs(1));
}

TEST_F(SeriesRemoveTest, ADeletionThatStopsIsNoCheckpointAnyMore) {
  storage_->Fail({.op = StorageOp::kRemove, .name = ".blob"});
  EXPECT_THAT(series_.Delete("a"), HasCode(Code::kIo));
  EXPECT_THAT(Files("a"), Not(Contains("COMMIT")));
  EXPECT_TRUE(series_.RemoveUncommitted("a").ok());
  EXPECT_TRUE(series_.RemoveUncommitted("a").ok());
  EXPECT_FALSE(Exists("a"));
}

TEST_F(SeriesRemoveTest, RefusesToCleanUpACommittedOne) {
  EXPECT_THAT(series_.RemoveUncommitted("a").status(),
              FailsRule(Code::kInvalidArgument, "R-SER-07"));
  Bytes marker = Container(1).marker();
  marker[100] ^= std::byte{1};
  ReplaceFile(*memory_, Path("a"), "COMMIT", &marker);
  EXPECT_THAT(series_.RemoveUncommitted("a").status(),
              FailsRule(Code::kInvalidArgument, "R-SER-07"));
  PutFile("kept", BlobOf(7));
  PutFile("kept", "KEEP");
  EXPECT_THAT(series_.RemoveUncommitted("kept").status(),
              FailsRule(Code::kInvalidArgument, "R-SER-07"));
  PutFile("logs", "events.json");
  EXPECT_THAT(series_.RemoveUncommitted("logs").status(),
              FailsRule(Code::kInvalidArgument, "R-SER-07"));
  EXPECT_THAT(series_.RemoveUncommitted("nothing").status(), HasCode(Code::kNotFound));
  EXPECT_THAT(Files("a"), SizeIs(3));
  EXPECT_THAT(Files("kept"), SizeIs(2));
}

TEST_F(SeriesRemoveTest, WritesNothingIntoACommittedOneThatItRefusesToCleanUp) {
  EXPECT_THAT(series_.RemoveUncommitted("a").status(),
              FailsRule(Code::kInvalidArgument, "R-SER-07"));
  EXPECT_THAT(storage_->changes(), IsEmpty());
}

// It may be a committed one.
TEST_F(SeriesRemoveTest, CleansUpNothingThatCouldNotBeRead) {
  storage_->Fail({.op = StorageOp::kRead, .name = "COMMIT"});
  EXPECT_THAT(series_.RemoveUncommitted("a").status(), HasCode(Code::kIo));
  EXPECT_THAT(Files("a"), SizeIs(3));
}

TEST_F(SeriesRemoveTest, PublishesNoVoidMarkerThatCannotBeDurable) {
  PutFile("dead", BlobOf(7));
  storage_->Claim({.publish = PublishMethod::kLink});
  EXPECT_THAT(series_.RemoveUncommitted("dead").status(),
              FailsRule(Code::kUnsupported, "R-CMT-05"));
  EXPECT_THAT(Files("dead"), ElementsAre(BlobOf(7)));
}

TEST_F(SeriesRemoveTest, PublishesAVoidMarkerFirst) {
  PutFile("dead", BlobOf(7));
  EXPECT_EQ(series_.RemoveUncommitted("dead")->bytes_freed, 10u);
  EXPECT_THAT(Files("dead"), ElementsAre("COMMIT"));
  std::vector<std::string> changes = storage_->changes();
  const auto at = [&](std::string_view part) {
    return std::find_if(
               changes.begin(), changes.end(),
               [&](const std::string& line) { return line.find(part) != std::string::npos; }) -
           changes.begin();
  };
  EXPECT_LT(at("sync directory"), at("publish"));
  EXPECT_LT(at("publish"), at("remove " + BlobOf(7)));
  EXPECT_EQ(changes.at(static_cast<std::size_t>(at("publish")) + 1), "sync directory");
  EXPECT_EQ(changes.back(), "sync directory");
}

TEST_F(SeriesRemoveTest, TheVoidMarkerGoesLast) {
  PutFile("dead", BlobOf(7));
  ASSERT_TRUE(series_.RemoveUncommitted("dead").ok());
  EXPECT_TRUE(series_.List().value().entries.back().is_void);
  PutFile("dead", BlobOf(8));
  storage_->ClearLog();
  ASSERT_TRUE(series_.RemoveUncommitted("dead").ok());
  EXPECT_FALSE(Exists("dead"));
  EXPECT_THAT(storage_->changes(),
              ElementsAre("remove " + BlobOf(8), "sync directory", "remove COMMIT",
                          "sync directory", "remove directory"));
}

TEST_F(SeriesRemoveTest, TheVoidMarkerStaysWithForeignFiles) {
  PutFile("dead", BlobOf(7));
  PutFile("dead", "notes.txt");
  ASSERT_TRUE(series_.RemoveUncommitted("dead").ok());
  ASSERT_TRUE(series_.RemoveUncommitted("dead").ok());
  EXPECT_THAT(Files("dead"), ElementsAre("COMMIT", "notes.txt"));
}

TEST_F(SeriesRemoveTest, AFailedVoidMarkerRemovesNothing) {
  PutFile("dead", BlobOf(7));
  storage_->Fail({.op = StorageOp::kPublish, .nth = 0});
  EXPECT_THAT(series_.RemoveUncommitted("dead").status(), HasCode(Code::kIo));
  EXPECT_THAT(Files("dead"), ElementsAre(BlobOf(7)));
}

TEST_F(SeriesRemoveTest, AFileThatStoodUnderTheMarkersUnpublishedNameStays) {
  PutFile("dead", BlobOf(7));
  storage_->Fail({.op = StorageOp::kCreate,
                  .name = ".commit",
                  .error = {Code::kAlreadyExists, "injected"},
                  .takes_effect = true});
  EXPECT_THAT(PublishVoidMarker(*storage_, Path("dead")), HasCode(Code::kAlreadyExists));
  EXPECT_THAT(Files("dead"), SizeIs(2));
}

TEST_F(SeriesRemoveTest, AWriterThatCommitsMeanwhileWins) {
  StoreFiles(*memory_, Path("slow"), Container(7).files);
  const Bytes marker = Container(7).marker();
  ReplaceFile(*memory_, Path("slow"), "COMMIT", nullptr);
  storage_->SetHook([&](StorageOp op, std::string_view) {
    if (op == StorageOp::kPublish) ReplaceFile(*memory_, Path("slow"), "COMMIT", &marker);
  });
  EXPECT_THAT(series_.RemoveUncommitted("slow").status(),
              FailsRule(Code::kInvalidArgument, "R-SER-07"));
  EXPECT_THAT(Files("slow"), SizeIs(3));
}

TEST_F(SeriesRemoveTest, BytesFreedCountNoMarker) {
  StoreFiles(*memory_, Path("dead"), Container(7).files);
  ReplaceFile(*memory_, Path("dead"), "COMMIT", nullptr);
  EXPECT_EQ(series_.RemoveUncommitted("dead")->bytes_freed, SizeOf(7) - 512);
}

TEST_F(SeriesRemoveTest, VoidMarkerIsRefusedWhereAMarkerIs) {
  EXPECT_THAT(PublishVoidMarker(*storage_, Path("a")), HasCode(Code::kAlreadyExists));
  EXPECT_THAT(Files("a"), SizeIs(3)) << "its own files are gone";
  EXPECT_EQ(ReadWholeFile(*memory_, Path("a"), "COMMIT"), Container(1).marker());
}

// Syncs of a deletion: of the newer one's directory, behind the marker, behind the files.
TEST_F(SeriesRemoveTest, AMarkerWhoseRemovalIsNotDurableKeepsItsFiles) {
  storage_->Fail({.op = StorageOp::kSyncDirectory, .nth = 2});
  EXPECT_THAT(series_.Delete("a"), HasCode(Code::kIo));
  EXPECT_THAT(Files("a"), SizeIs(2));
}

TEST_F(SeriesRemoveTest, AMarkerThatCannotBeRemovedKeepsItsFiles) {
  storage_->Fail({.op = StorageOp::kRemove, .name = "COMMIT"});
  EXPECT_THAT(series_.Delete("a"), HasCode(Code::kIo));
  EXPECT_THAT(Files("a"), SizeIs(3));
}

TEST_F(SeriesRemoveTest, ADeletionThatIsNotDurableIsAnError) {
  storage_->Fail({.op = StorageOp::kSyncDirectory, .nth = 3});
  EXPECT_THAT(series_.Delete("a"), HasCode(Code::kIo));
  EXPECT_TRUE(Exists("a"));
}

// Syncs of a clean-up: before the void marker is published, behind it, behind the files.
TEST_F(SeriesRemoveTest, AVoidMarkerThatIsNotDurableRemovesNothing) {
  PutFile("dead", BlobOf(7));
  const std::vector<StorageFault> faults = {{.op = StorageOp::kSyncFile, .name = ".commit"},
                                            {.op = StorageOp::kSyncDirectory}};
  for (const StorageFault& fault : faults) {
    storage_->Fail(fault);
    EXPECT_THAT(series_.RemoveUncommitted("dead").status(), HasCode(Code::kIo));
    EXPECT_THAT(Files("dead"), ElementsAre(BlobOf(7)));
    storage_->Heal();
  }
}

TEST_F(SeriesRemoveTest, AVoidMarkerThatMayBeDurableLeavesAllAsItIs) {
  PutFile("dead", BlobOf(7));
  storage_->Fail({.op = StorageOp::kSyncDirectory, .nth = 2});
  const Status status = series_.RemoveUncommitted("dead").status();
  EXPECT_TRUE(OutcomeIsUnknown(status)) << status.ToString();
  EXPECT_THAT(Files("dead"), SizeIs(3)) << "the blob and both names of the marker";
}

TEST_F(SeriesRemoveTest, ACleanUpThatIsNotDurableIsAnError) {
  PutFile("dead", BlobOf(7));
  storage_->Fail({.op = StorageOp::kSyncDirectory, .nth = 3});
  EXPECT_THAT(series_.RemoveUncommitted("dead").status(), HasCode(Code::kIo));
  storage_->Heal();
  storage_->Fail({.op = StorageOp::kSyncDirectory});
  EXPECT_THAT(series_.RemoveUncommitted("dead").status(), HasCode(Code::kIo));
  EXPECT_THAT(Files("dead"), ElementsAre("COMMIT"));
  storage_->Heal();
  storage_->Fail({.op = StorageOp::kSyncDirectory, .nth = 2});
  EXPECT_THAT(series_.RemoveUncommitted("dead").status(), HasCode(Code::kIo));
  EXPECT_TRUE(Exists("dead"));
}

TEST(SeriesLinkTest, LinksAreNotFollowedToRemove) {
  const TempDir dir;
  const auto put = [&](const std::string& path, std::uint8_t attempt, std::uint64_t sequence) {
    MiniSpec spec{.attempt = MiniSpec::MakeId(attempt), .sequence = sequence};
    if (sequence > 1) spec.parent = MiniSpec::MakeId(0x77);
    StoreFiles(*PosixStorage(), dir / path, BuildMini(spec).files);
  };
  put("elsewhere/old", 1, 1);
  put("elsewhere/dead", 2, 1);
  std::filesystem::remove(dir / "elsewhere/dead/COMMIT");
  put("series/new", 3, 2);
  std::filesystem::create_directory_symlink(dir / "elsewhere/old", dir / "series/old");
  std::filesystem::create_directory_symlink(dir / "elsewhere/dead", dir / "series/dead");
  const Series series(dir / "series");
  const auto before = FileNames(*PosixStorage(), dir / "elsewhere/old");
  EXPECT_THAT(series.Delete("old"), FailsRule(Code::kInvalidArgument, "R-SER-10"));
  EXPECT_THAT(series.RemoveUncommitted("dead").status(),
              FailsRule(Code::kInvalidArgument, "R-SER-10"));
  EXPECT_EQ(FileNames(*PosixStorage(), dir / "elsewhere/old"), before);
  EXPECT_THAT(FileNames(*PosixStorage(), dir / "elsewhere/dead"), Not(Contains("COMMIT")));
}

TEST(SeriesLinkTest, ALinkToACheckpointGoesAloneWithEverything) {
  const TempDir dir;
  StoreFiles(*PosixStorage(), dir / "there", BuildMini({}).files);
  std::filesystem::create_directory_symlink(dir / "there", dir / "link");
  EXPECT_THAT(RemoveCheckpoint(*PosixStorage(), dir / "link"),
              FailsRule(Code::kInvalidArgument, "R-SER-10"));
  EXPECT_TRUE(RemoveCheckpoint(*PosixStorage(), dir / "link", {.everything = true}).ok());
  EXPECT_FALSE(std::filesystem::is_symlink(dir / "link"));
  EXPECT_THAT(FileNames(*PosixStorage(), dir / "there"), Contains("COMMIT"));
}

// Links of our names inside are removed themselves.
TEST(SeriesLinkTest, LinkedFilesLoseTheirLinksOnly) {
  const TempDir dir;
  const auto storage = PosixStorage();
  const MiniSpec old{.attempt = MiniSpec::MakeId(1)};
  StoreFiles(*storage, dir / "cache", BuildMini(old).files);
  std::filesystem::create_directories(dir / "series/old");
  for (const std::string& name : FileNames(*storage, dir / "cache")) {
    std::filesystem::create_symlink(dir / ("cache/" + name), dir / ("series/old/" + name));
  }
  StoreFiles(
      *storage, dir / "series/new",
      BuildMini({.attempt = MiniSpec::MakeId(3), .parent = MiniSpec::MakeId(1), .sequence = 2})
          .files);
  ASSERT_TRUE(Series(dir / "series").Delete("old").ok());
  EXPECT_FALSE(std::filesystem::exists(dir / "series/old"));
  EXPECT_THAT(FileNames(*storage, dir / "cache"), Contains(HasSubstr("COMMIT")));
}

// Durable in the order of the log, also if another process has made it (R-SER-05).
TEST_F(SeriesRemoveTest, AKeepFileIsDurableWhenItIsReported) {
  Put("a", 1);
  const auto set = [&](bool is_kept) {
    storage_->ClearLog();
    return SetKept(*storage_, Path("a"), is_kept).value();
  };
  EXPECT_TRUE(set(true));
  if (!IsInObjects()) {
    EXPECT_THAT(storage_->changes(),
                ::testing::ElementsAre("create KEEP", "sync KEEP", "close KEEP", "sync directory"));
  }
  EXPECT_FALSE(set(true));
  EXPECT_THAT(storage_->changes(), ::testing::Contains("sync directory"));
  const auto entries = series_.List().value().entries;
  EXPECT_TRUE(std::ranges::find(entries, "a", &SeriesEntry::name)->is_kept);
  EXPECT_TRUE(set(false));
  if (!IsInObjects()) {
    EXPECT_THAT(storage_->changes(), ::testing::ElementsAre("remove KEEP", "sync directory"));
  }
  for (const bool is_kept : {true, false}) {
    storage_->Fail({.op = StorageOp::kSyncDirectory, .name = Path("a")});
    EXPECT_THAT(SetKept(*storage_, Path("a"), is_kept).status(), HasCode(Code::kIo));
  }
  for (const bool is_kept : {true, false}) {
    set(!is_kept);
    storage_->Fail({.op = is_kept ? StorageOp::kCreate : StorageOp::kRemove, .name = "KEEP"});
    EXPECT_THAT(SetKept(*storage_, Path("a"), is_kept).status(), HasCode(Code::kIo)) << is_kept;
  }
  for (const StorageOp op : {StorageOp::kSyncFile, StorageOp::kClose}) {
    if (IsInObjects()) break;
    set(false);
    storage_->Fail({.op = op, .name = "KEEP"});
    EXPECT_THAT(SetKept(*storage_, Path("a"), true).status(), HasCode(Code::kIo));
  }
  EXPECT_THAT(SetKept(*storage_, Path("gone"), true).status(), HasCode(Code::kNotFound));
}

}  // namespace
}  // namespace sealpoint::testing
