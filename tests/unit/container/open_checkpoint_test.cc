// SPDX-License-Identifier: Apache-2.0
#include "lib/container/open_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>

#include "lib/format/constants.h"
#include "lib/format/marker.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/container/rule_matchers.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/support/storage/reading_storage.h"

namespace sealpoint::internal::container {
namespace {

using ::sealpoint::testing::BreaksRule;
using ::sealpoint::testing::BuildMini;
using ::sealpoint::testing::CutTensor;
using ::sealpoint::testing::FailsRule;
using ::sealpoint::testing::HasCode;
using ::sealpoint::testing::MiniContainer;
using ::sealpoint::testing::MiniSpec;
using ::sealpoint::testing::NoiseBytes;
using ::sealpoint::testing::ReadCall;
using ::sealpoint::testing::ReadingStorage;
using ::sealpoint::testing::StoreFiles;
using ::sealpoint::testing::TempDir;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Two blobs, one tensor in both.
MiniSpec TwoBlobs() {
  MiniSpec spec;
  const Shape shape = {8, 4};
  spec.tensors.push_back(CutTensor("w", DType::kF32, shape, NoiseBytes(1, 128),
                                   {Region::Of({{0, 0}, {4, 4}}), Region::Of({{4, 0}, {4, 4}})},
                                   {0, 1}));
  return spec;
}

class OpenCommittedTest : public ::testing::Test {
 protected:
  // Stores it as "c" and opens it.
  Result<CommittedFiles> Open(const MiniContainer& container, const Limits& limits = {}) {
    StoreFiles(*storage_, "c", container.files);
    return OpenCommitted(*storage_, "c", limits, true);
  }
  Status ErrorOf(const MiniContainer& container, const Limits& limits = {}) {
    return Open(container, limits).status();
  }

  std::shared_ptr<Storage> storage_ = MemoryStorage();
};

TEST_F(OpenCommittedTest, GivesMarkerAndIndex) {
  const MiniContainer container = BuildMini(TwoBlobs());
  const auto files = Open(container);
  ASSERT_TRUE(files.ok()) << files.error().ToString();
  EXPECT_EQ(files->marker.marker.attempt, container.attempt);
  EXPECT_EQ(files->marker.bytes, container.files.at("COMMIT"));
  EXPECT_EQ(*files->index.bytes, container.files.at(container.index_name));
  EXPECT_EQ(files->index.metadata.tensor_count(), 1u);
  EXPECT_EQ(files->index.metadata.blob_count(), 2u);
}

TEST_F(OpenCommittedTest, MissingPathIsNotFound) {
  const Status error = OpenCommitted(*storage_, "nowhere", {}, true).status();
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_EQ(error.place().rule, "R-DIR-01");
}

TEST_F(OpenCommittedTest, FileInPlaceOfTheDirectoryIsNotFound) {
  StoreFiles(*storage_, "parent", {{"c", Bytes(10)}});
  const Status error = OpenCommitted(*storage_, "parent/c", {}, true).status();
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_EQ(error.place().rule, "R-DIR-01");
  EXPECT_THAT(error.message(), HasSubstr("not a directory"));
}

TEST_F(OpenCommittedTest, DirectoryWithForeignFilesOnlyIsNoCheckpoint) {
  StoreFiles(*storage_, "c", {{"README", Bytes(10)}, {"KEEP", {}}});
  const Status error = OpenCommitted(*storage_, "c", {}, true).status();
  EXPECT_EQ(error.code(), Code::kNotACheckpoint);
  EXPECT_EQ(error.place().rule, "R-DIR-05");
  EXPECT_EQ(error.place().path, "c");
}

TEST_F(OpenCommittedTest, SeriesIsNoCheckpoint) {
  StoreFiles(*storage_, "c/notes", {{"README", Bytes(10)}});
  StoreFiles(*storage_, "c/step-1", BuildMini(TwoBlobs()).files);
  const Status error = OpenCommitted(*storage_, "c", {}, true).status();
  EXPECT_EQ(error.code(), Code::kNotACheckpoint);
  EXPECT_EQ(error.place().rule, "R-DIR-05");
  EXPECT_EQ(error.place().path, "c");
}

TEST_F(OpenCommittedTest, FilesOfAnAttemptWithoutMarkerAreUncommitted) {
  MiniContainer container = BuildMini(TwoBlobs());
  container.files.erase("COMMIT");
  const Status error = ErrorOf(container);
  EXPECT_EQ(error.code(), Code::kUncommitted);
  EXPECT_EQ(error.place().rule, "R-MRK-01");
  EXPECT_EQ(error.place().path, "c/COMMIT");
}

TEST_F(OpenCommittedTest, DirectoryNamedCommitIsNoMarker) {
  MiniContainer container = BuildMini(TwoBlobs());
  container.files.erase("COMMIT");
  ASSERT_TRUE(storage_->CreateDirectories("c/COMMIT").ok());
  EXPECT_EQ(ErrorOf(container).place().rule, "R-MRK-01");
}

TEST_F(OpenCommittedTest, DirectoryNamedAsABlobIsNoFileOfAnAttempt) {
  StoreFiles(*storage_, "c", {{"README", Bytes(10)}});
  ASSERT_TRUE(
      storage_->CreateDirectories("c/" + format::BlobName(MiniSpec::MakeId<BlobId>(1))).ok());
  const Status error = OpenCommitted(*storage_, "c", {}, true).status();
  EXPECT_EQ(error.code(), Code::kNotACheckpoint);
  EXPECT_EQ(error.place().rule, "R-DIR-05");
}

TEST_F(OpenCommittedTest, VoidMarkerIsUncommitted) {
  MiniSpec spec = TwoBlobs();
  spec.hooks.marker = [](format::Marker& marker) {
    marker = {.kind = format::MarkerKind::kVoid, .attempt = MiniSpec::MakeId(9), .step = 7};
  };
  const Status error = ErrorOf(BuildMini(spec));
  EXPECT_EQ(error.code(), Code::kUncommitted);
  EXPECT_EQ(error.place().rule, "R-MRK-09");
}

TEST_F(OpenCommittedTest, MarkerThatIsNotOursIsNoCheckpoint) {
  MiniContainer container = BuildMini(TwoBlobs());
  container.marker() = Bytes(512, std::byte{1});
  const Status error = ErrorOf(container);
  EXPECT_THAT(error, BreaksRule(Code::kNotACheckpoint, "R-HDR-02", 0));
  EXPECT_EQ(error.place().path, "c/COMMIT");
}

TEST_F(OpenCommittedTest, MarkerOfAnotherLengthIsCorrupt) {
  MiniContainer container = BuildMini(TwoBlobs());
  container.marker().push_back({});
  EXPECT_THAT(ErrorOf(container), BreaksRule(Code::kCorrupt, "R-MRK-02", 512));
}

TEST_F(OpenCommittedTest, LongMarkerIsReadBounded) {
  MiniContainer container = BuildMini(TwoBlobs());
  container.marker().resize(1 << 20);
  StoreFiles(*storage_, "c", container.files);
  ReadingStorage storage(storage_);
  EXPECT_FALSE(OpenCommitted(storage, "c", {}, true).ok());
  ASSERT_THAT(storage.log().reads, SizeIs(1));
  EXPECT_EQ(storage.log().reads[0].size, 513u);
}

TEST_F(OpenCommittedTest, DamagedMarkerIsCorrupt) {
  MiniContainer container = BuildMini(TwoBlobs());
  container.marker()[300] ^= std::byte{1};
  EXPECT_THAT(ErrorOf(container), BreaksRule(Code::kCorrupt, "R-HDR-04", 40));
}

TEST_F(OpenCommittedTest, MissingIndexIsIncomplete) {
  MiniContainer container = BuildMini(TwoBlobs());
  container.files.erase(container.index_name);
  const Status error = ErrorOf(container);
  EXPECT_EQ(error.code(), Code::kIncomplete);
  EXPECT_EQ(error.place().rule, "R-MRK-05");
  EXPECT_EQ(error.place().path, "c/" + container.index_name);
}

TEST_F(OpenCommittedTest, ShortIndexIsIncomplete) {
  MiniContainer container = BuildMini(TwoBlobs());
  container.index().pop_back();
  EXPECT_THAT(ErrorOf(container),
              BreaksRule(Code::kIncomplete, "R-MRK-05", container.index().size()));
}

TEST_F(OpenCommittedTest, LongIndexIsCorrupt) {
  MiniContainer container = BuildMini(TwoBlobs());
  const std::size_t size = container.index().size();
  container.index().push_back({});
  EXPECT_THAT(ErrorOf(container), BreaksRule(Code::kCorrupt, "R-MRK-08", size));
}

TEST_F(OpenCommittedTest, DamagedIndexIsCorrupt) {
  MiniContainer container = BuildMini(TwoBlobs());
  container.index().back() ^= std::byte{1};
  const Status error = ErrorOf(container);
  EXPECT_EQ(error.code(), Code::kCorrupt);
  EXPECT_EQ(error.place().rule, "R-MRK-06");
}

TEST_F(OpenCommittedTest, IndexOverTheLimitIsNotRead) {
  const MiniContainer container = BuildMini(TwoBlobs());
  StoreFiles(*storage_, "c", container.files);
  ReadingStorage storage(storage_);
  const Status error = OpenCommitted(storage, "c", {.index_size_max_bytes = 200}, true).status();
  EXPECT_EQ(error.code(), Code::kLimitExceeded);
  EXPECT_EQ(error.place().rule, "R-IDX-01");
  EXPECT_THAT(storage.log().reads, SizeIs(1));  // the marker
}

TEST_F(OpenCommittedTest, IndexOfExactlyTheLimitIsRead) {
  MiniContainer container = BuildMini(TwoBlobs());
  StoreFiles(*storage_, "c", container.files);
  const Limits limits{.index_size_max_bytes = container.index().size()};
  EXPECT_TRUE(OpenCommitted(*storage_, "c", limits, true).ok());
}

// Somebody else has read its bytes; the limit is on the file, its header included.
TEST(DecodeIndexFileTest, RefusesAnIndexOverTheLimit) {
  MiniContainer container = BuildMini(TwoBlobs());
  const format::Marker marker = format::DecodeMarker(container.marker()).value();
  const std::uint64_t size = container.index().size();
  const auto decode = [&](std::uint64_t limit) {
    return DecodeIndexFile("c", marker, container.index(), {.index_size_max_bytes = limit});
  };
  EXPECT_TRUE(decode(size).ok());
  EXPECT_EQ(decode(size - 1).status().code(), Code::kLimitExceeded);
}

TEST_F(OpenCommittedTest, IndexOfAnotherStepIsCorrupt) {
  MiniSpec spec = TwoBlobs();
  spec.hooks.index_header = [](format::FileHeader& header) { ++header.step; };
  EXPECT_THAT(ErrorOf(BuildMini(spec)), BreaksRule(Code::kCorrupt, "R-HDR-08", 56));
}

TEST_F(OpenCommittedTest, IndexOfAnotherAttemptIsCorrupt) {
  MiniSpec spec = TwoBlobs();
  spec.hooks.index_header = [](format::FileHeader& header) {
    header.id = header.attempt = MiniSpec::MakeId(3);
  };
  EXPECT_THAT(ErrorOf(BuildMini(spec)), BreaksRule(Code::kCorrupt, "R-HDR-08", 56));
}

TEST_F(OpenCommittedTest, IndexWithAnotherIdIsCorrupt) {
  MiniSpec spec = TwoBlobs();
  spec.hooks.index_header = [](format::FileHeader& header) {
    header.id = MiniSpec::MakeId<BlobId>(3);
  };
  EXPECT_THAT(ErrorOf(BuildMini(spec)), BreaksRule(Code::kCorrupt, "R-HDR-08", 56));
}

TEST_F(OpenCommittedTest, IndexWrittenForAnotherAttemptIsCorrupt) {
  MiniSpec spec = TwoBlobs();
  spec.hooks.index_header = [](format::FileHeader& header) {
    header.attempt = MiniSpec::MakeId(9);
  };
  EXPECT_THAT(ErrorOf(BuildMini(spec)), BreaksRule(Code::kCorrupt, "R-HDR-08", 56));
}

TEST_F(OpenCommittedTest, IndexWithOtherFeaturesIsCorrupt) {
  MiniSpec spec = TwoBlobs();
  spec.hooks.index_header = [](format::FileHeader& header) { header.features.compat = 1; };
  EXPECT_THAT(ErrorOf(BuildMini(spec)), BreaksRule(Code::kCorrupt, "R-HDR-09", 24));
}

TEST_F(OpenCommittedTest, OffsetOfAnIndexErrorCountsInTheFile) {
  MiniSpec spec = TwoBlobs();
  spec.hooks.index_bytes = [](Bytes& buffer) { buffer[4] = std::byte{'X'}; };  // the identifier
  const Status error = ErrorOf(BuildMini(spec));
  EXPECT_EQ(error.place().rule, "R-IDX-02");
  EXPECT_GE(error.place().offset, format::kHeaderSize);
}

TEST_F(OpenCommittedTest, OtherBlobCountThanTheIndexIsCorrupt) {
  MiniSpec spec = TwoBlobs();
  spec.hooks.marker = [](format::Marker& marker) { ++marker.blob_count; };
  EXPECT_EQ(ErrorOf(BuildMini(spec)).place().rule, "R-MRK-07");
}

TEST_F(OpenCommittedTest, OtherTotalThanTheIndexIsCorrupt) {
  MiniSpec spec = TwoBlobs();
  spec.hooks.marker = [](format::Marker& marker) { ++marker.total_bytes; };
  EXPECT_EQ(ErrorOf(BuildMini(spec)).place().rule, "R-MRK-07");
}

TEST_F(OpenCommittedTest, MissingBlobIsIncomplete) {
  MiniContainer container = BuildMini(TwoBlobs());
  const std::string name = container.blobs.at(1).name;
  container.files.erase(name);
  const Status error = ErrorOf(container);
  EXPECT_EQ(error.code(), Code::kIncomplete);
  EXPECT_EQ(error.place().rule, "R-BLB-01");
  EXPECT_EQ(error.place().path, "c/" + name);
}

TEST_F(OpenCommittedTest, EveryMissingBlobIsNamed) {
  MiniContainer container = BuildMini(TwoBlobs());
  container.files.erase(container.blobs.at(0).name);
  container.files.erase(container.blobs.at(1).name);
  const Status error = ErrorOf(container);
  EXPECT_EQ(error.code(), Code::kIncomplete);
  EXPECT_EQ(error.place().path, "c/" + container.blobs.at(0).name);
  EXPECT_THAT(error.message(), HasSubstr(container.blobs.at(1).name));
}

TEST_F(OpenCommittedTest, ShortBlobIsIncomplete) {
  MiniContainer container = BuildMini(TwoBlobs());
  container.blob(0).pop_back();
  EXPECT_THAT(ErrorOf(container), BreaksRule(Code::kIncomplete, "R-BLB-01", 4095));
}

TEST_F(OpenCommittedTest, LongBlobIsCorruptEvenBehindAMissingOne) {
  MiniContainer container = BuildMini(TwoBlobs());
  container.files.erase(container.blobs.at(0).name);
  container.blob(1).push_back({});
  EXPECT_THAT(ErrorOf(container), BreaksRule(Code::kCorrupt, "R-BLB-09", 4096));
}

TEST_F(OpenCommittedTest, DirectoryInPlaceOfABlobIsIncomplete) {
  MiniContainer container = BuildMini(TwoBlobs());
  container.files.erase(container.blobs.at(0).name);
  ASSERT_TRUE(storage_->CreateDirectories("c/" + container.blobs.at(0).name).ok());
  EXPECT_EQ(ErrorOf(container).code(), Code::kIncomplete);
}

TEST_F(OpenCommittedTest, BlobsAreNotLookedAtUnlessAsked) {
  MiniContainer container = BuildMini(TwoBlobs());
  container.files.erase(container.blobs.at(0).name);
  StoreFiles(*storage_, "c", container.files);
  ReadingStorage storage(storage_);
  EXPECT_TRUE(OpenCommitted(storage, "c", {}, false).ok());
  EXPECT_THAT(storage.log().stats, SizeIs(0));
}

TEST_F(OpenCommittedTest, ForeignFilesAndLeftoversDoNotMatter) {
  MiniContainer container = BuildMini(TwoBlobs());
  container.files["README"] = Bytes(3);
  container.files[format::BlobName(MiniSpec::MakeId<BlobId>(0x77))] = Bytes(3);
  container.files[format::IndexName(MiniSpec::MakeId(0x77))] = Bytes(3);
  EXPECT_TRUE(Open(container).ok());
}

TEST_F(OpenCommittedTest, NoBlobIsOpened) {
  const MiniContainer container = BuildMini(TwoBlobs());
  StoreFiles(*storage_, "c", container.files);
  ReadingStorage storage(storage_);
  ASSERT_TRUE(OpenCommitted(storage, "c", {}, true).ok());
  const std::vector<ReadCall> expected = {
      {"COMMIT", 0, 512},
      {container.index_name, 0, container.files.at(container.index_name).size()}};
  EXPECT_EQ(storage.log().reads, expected);
}

TEST_F(OpenCommittedTest, GivenBytesAreCheckedAlike) {
  MiniContainer container = BuildMini(TwoBlobs());
  std::map<std::string, Bytes> blobs = container.files;
  blobs.erase("COMMIT");
  blobs.erase(container.index_name);
  StoreFiles(*storage_, "c", blobs);
  const auto open = [&](Bytes marker, Bytes index) {
    return OpenCommitted(*storage_, "c", {}, true, GivenFiles{std::move(marker), std::move(index)})
        .status();
  };
  EXPECT_TRUE(open(container.marker(), container.index()).ok());
  Bytes bad_marker = container.marker();
  bad_marker[200] ^= std::byte{1};
  EXPECT_THAT(open(bad_marker, container.index()), BreaksRule(Code::kCorrupt, "R-HDR-04", 40));
  Bytes short_index = container.index();
  short_index.pop_back();
  const Status error = open(container.marker(), short_index);
  EXPECT_THAT(error, BreaksRule(Code::kIncomplete, "R-MRK-05", short_index.size()));
  EXPECT_EQ(error.place().path, "c/" + container.index_name);
  Bytes bad_index = container.index();
  bad_index.back() ^= std::byte{1};
  EXPECT_EQ(open(container.marker(), bad_index).place().rule, "R-MRK-06");
}

TEST_F(OpenCommittedTest, IndexThatShrinksWhileItIsReadIsAnError) {
  const MiniContainer container = BuildMini(TwoBlobs());
  const TempDir temp;
  const auto posix = PosixStorage();
  StoreFiles(*posix, temp / "c", container.files);
  ReadingStorage storage(posix, [&](const ReadCall& call) -> Status {
    if (call.name == container.index_name) {
      EXPECT_EQ(::truncate((temp / ("c/" + call.name)).c_str(), 150), 0);
    }
    return {};
  });
  const Status error = OpenCommitted(storage, temp / "c", {}, true).status();
  EXPECT_EQ(error.code(), Code::kIncomplete);
}

TEST_F(OpenCommittedTest, ErrorsOfTheStorageAreNoVerdict) {
  StoreFiles(*storage_, "c", BuildMini(TwoBlobs()).files);
  ReadingStorage storage(storage_, [](const ReadCall&) { return Status(Code::kIo, "disk"); });
  const Status error = OpenCommitted(storage, "c", {}, true).status();
  EXPECT_EQ(error.code(), Code::kIo);
  EXPECT_EQ(error.place().rule, "");
}

// A failing disk is no statement on what the path is.
TEST_F(OpenCommittedTest, ADirectoryThatCannotBeOpenedIsNoMissingOne) {
  const Bytes content = {std::byte{1}};
  ASSERT_TRUE(storage_->CreateDirectories("d").ok());
  testing::ReplaceFile(*storage_, "d", "file", &content);
  const auto failing = std::make_shared<testing::FailingStorage>(storage_);
  const auto code_of = [&](const std::string& path, Code code) {
    failing->Fail({.op = testing::StorageOp::kOpenDirectory, .error = {code, "injected"}});
    const Status error = OpenCommitted(*failing, path, {}, true).status();
    failing->Heal();
    return error.code();
  };
  EXPECT_EQ(code_of("d/nowhere", Code::kIo), Code::kIo);
  EXPECT_EQ(code_of("d/file", Code::kIo), Code::kNotFound);
  EXPECT_EQ(code_of("d/file", Code::kNoSpace), Code::kNoSpace);
}

TEST(OpenCommittedOnDisk, LinksAreFollowed) {
  const TempDir temp;
  const auto storage = PosixStorage();
  const MiniContainer container = BuildMini(TwoBlobs());
  StoreFiles(*storage, temp / "real", container.files);
  ASSERT_TRUE(storage->CreateDirectories(temp / "c").ok());
  for (const auto& [name, bytes] : container.files) {
    ASSERT_EQ(::symlink((temp / ("real/" + name)).c_str(), (temp / ("c/" + name)).c_str()), 0);
  }
  ASSERT_EQ(::symlink((temp / "c").c_str(), (temp / "link").c_str()), 0);
  EXPECT_TRUE(OpenCommitted(*storage, temp / "c", {}, true).ok());
  EXPECT_TRUE(OpenCommitted(*storage, temp / "link", {}, true).ok());
}

TEST(OpenCommittedOnDisk, DirectoryInPlaceOfABlobIsAMissingBlob) {
  const TempDir temp;
  const auto storage = PosixStorage();
  MiniContainer container = BuildMini(TwoBlobs());
  const std::string name = container.blobs.at(0).name;
  container.files.erase(name);
  StoreFiles(*storage, temp / "c", container.files);
  ASSERT_TRUE(storage->CreateDirectories(temp / ("c/" + name)).ok());
  const Status error = OpenCommitted(*storage, temp / "c", {}, true).status();
  EXPECT_EQ(error.code(), Code::kIncomplete);
  EXPECT_EQ(error.place().rule, "R-BLB-01");
  EXPECT_THAT(error.message(), HasSubstr("not a regular file"));
}

TEST(OpenCommittedOnDisk, LinkThatLeadsNowhereIsAMissingBlob) {
  const TempDir temp;
  const auto storage = PosixStorage();
  MiniContainer container = BuildMini(TwoBlobs());
  const std::string name = container.blobs.at(0).name;
  container.files.erase(name);
  StoreFiles(*storage, temp / "c", container.files);
  ASSERT_EQ(::symlink("nowhere", (temp / ("c/" + name)).c_str()), 0);
  const Status error = OpenCommitted(*storage, temp / "c", {}, true).status();
  EXPECT_EQ(error.code(), Code::kIncomplete);
  EXPECT_EQ(error.place().rule, "R-BLB-01");
  EXPECT_THAT(error.message(), HasSubstr("a link to a missing or empty file"));
}

TEST(OpenCommittedOnDisk, LinkToADirectoryIsNoMarkerAndLinkToAFileIsOne) {
  const TempDir temp;
  const auto storage = std::make_shared<testing::FailingStorage>(PosixStorage());
  MiniContainer container = BuildMini(TwoBlobs());
  container.files["target"] = container.marker();
  container.files.erase("COMMIT");
  StoreFiles(*storage, temp / "c", container.files);
  ASSERT_EQ(::symlink("target", (temp / "c/COMMIT").c_str()), 0);
  storage->Fail({.op = testing::StorageOp::kOpenForRead, .name = "COMMIT", .nth = 0});
  EXPECT_THAT(OpenCommitted(*storage, temp / "c", {}, true).status(), HasCode(Code::kIo));
  storage->Heal();
  EXPECT_TRUE(OpenCommitted(*storage, temp / "c", {}, true).ok());
  ASSERT_EQ(::unlink((temp / "c/COMMIT").c_str()), 0);
  ASSERT_EQ(::symlink(".", (temp / "c/COMMIT").c_str()), 0);
  EXPECT_THAT(OpenCommitted(*storage, temp / "c", {}, true).status(),
              FailsRule(Code::kUncommitted, "R-MRK-01"));
}

TEST(OpenCommittedOnDisk, FileAndLinkToAFileAreNoDirectories) {
  const TempDir temp;
  const auto storage = PosixStorage();
  StoreFiles(*storage, temp.path(), {{"file", Bytes(1)}});
  ASSERT_EQ(::symlink("file", (temp / "link").c_str()), 0);
  for (const char* name : {"file", "link"}) {
    const Status error = OpenCommitted(*storage, temp / name, {}, true).status();
    EXPECT_EQ(error.code(), Code::kNotFound) << name;
    EXPECT_THAT(error.message(), HasSubstr("not a directory"));
  }
}

}  // namespace
}  // namespace sealpoint::internal::container
