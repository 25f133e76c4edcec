// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/commit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/unit/writer/checkpoint_dir.h"

namespace sealpoint::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::uint64_t kSize = 20000;

class CommitTest : public ::testing::Test {
 protected:
  CommitTest() { EXPECT_TRUE(storage_->CreateDirectories(kDir).ok()); }

  // A blob of its own with this part of tensor "w", or with an object.
  BlobSummary WriteBlob(const Region& region, const TensorSpec& tensor = ByteTensor("w", kSize),
                        BlobWriterOptions options = {}) {
    const auto writer = BlobWriter::Create(*engine_, kDir, std::move(options)).value();
    EXPECT_TRUE(writer
                    ->Add(tensor, region,
                          MemoryView::Host(std::span(bytes_).subspan(region.box.offset[0],
                                                                     region.element_count())))
                    .ok());
    return writer->Finish().value().at(0);
  }
  BlobSummary WriteObject(const std::string& name) {
    const auto writer = BlobWriter::Create(*engine_, kDir).value();
    EXPECT_TRUE(
        writer->AddObject({.name = name, .media_type = "t"}, ByteSpan(bytes_).first(3)).ok());
    return writer->Finish().value().at(0);
  }
  std::vector<BlobSummary> WriteTwoBlobs() {
    return {WriteBlob(Slice(0, 9000)), WriteBlob(Slice(9000, kSize))};
  }
  Result<CommitInfo> CommitAll(const std::vector<BlobSummary>& summaries,
                               const CommitOptions& options = {}) {
    return Commit(*storage_, kDir, options, summaries);
  }
  std::vector<std::string> Files() { return FileNames(*storage_, kDir); }

  const Bytes bytes_ = NoiseBytes(1, kSize);
  const std::shared_ptr<Storage> memory_ = MemoryStorage();
  const std::shared_ptr<FailingStorage> storage_ = std::make_shared<FailingStorage>(memory_);
  const std::unique_ptr<Engine> engine_ = SmallEngine(memory_);
};

TEST_F(CommitTest, MakesBlobsOneCheckpoint) {
  const CommitOptions options{.attempt = MiniSpec::MakeId(5),
                              .step = 12,
                              .parent = ParentRef{MiniSpec::MakeId(4), 7},
                              .mesh = {{"data", 2}},
                              .provenance = {{"model", "tiny"}, {"branch", "x"}}};
  const auto summaries = WriteTwoBlobs();
  const CommitInfo info = CommitAll(summaries, options).value();
  EXPECT_EQ(info.directory, kDir);
  EXPECT_EQ(info.attempt, options.attempt);
  EXPECT_EQ(info.parent, options.parent->attempt);
  EXPECT_EQ(info.sequence, 8u);
  EXPECT_EQ(info.step, 12u);
  EXPECT_EQ(info.blob_count, 2u);
  EXPECT_EQ(info.tensor_count, 1u);
  EXPECT_EQ(info.raw_bytes, kSize);
  EXPECT_EQ(info.total_bytes, summaries[0].file_size_bytes() + summaries[1].file_size_bytes());
  EXPECT_EQ(info.as_parent(), (ParentRef{options.attempt, 8}));
  EXPECT_EQ(FindDamage(memory_, kDir), "");
  const auto checkpoint = OpenFrom(memory_, kDir);
  EXPECT_EQ(LoadWhole(*checkpoint, "w"), bytes_);
  EXPECT_EQ(checkpoint->attempt(), options.attempt);
  EXPECT_EQ(checkpoint->sequence(), 8u);
  EXPECT_EQ(checkpoint->step(), 12u);
  EXPECT_EQ(checkpoint->mesh(), options.mesh);
  EXPECT_THAT(checkpoint->provenance(), Contains(ProvenanceList::value_type("model", "tiny")));
  EXPECT_THAT(Files(), SizeIs(4));
}

TEST_F(CommitTest, ChoosesAnAttemptAndBeginsALineage) {
  const CommitInfo info = CommitAll(WriteTwoBlobs()).value();
  EXPECT_FALSE(info.attempt.is_zero());
  EXPECT_TRUE(info.parent.is_zero());
  EXPECT_EQ(info.sequence, 1u);
  EXPECT_EQ(info.step, kNoStep);
}

TEST_F(CommitTest, NoBlobIsACheckpointOfNothing) {
  EXPECT_EQ(CommitAll({}, {.allow_empty = true}).value().blob_count, 0u);
  EXPECT_EQ(FindDamage(memory_, kDir), "");
  EXPECT_EQ(OpenFrom(memory_, kDir)->tensor_count(), 0u);
}

TEST_F(CommitTest, CommitsSummariesReadBack) {
  WriteTwoBlobs();
  std::vector<BlobSummary> summaries;
  for (const BlobId& blob : ListBlobs(*storage_, kDir).value()) {
    summaries.push_back(ReadSummary(*storage_, kDir, blob).value());
  }
  ASSERT_THAT(summaries, SizeIs(2));
  ASSERT_TRUE(CommitAll(summaries).ok());
  EXPECT_EQ(LoadWhole(*OpenFrom(memory_, kDir), "w"), bytes_);
}

TEST_F(CommitTest, ReadSummaryChecksTheBlob) {
  const BlobSummary summary = WriteBlob(Slice(0, kSize));
  EXPECT_EQ(ReadSummary(*storage_, kDir, summary.blob()).value(), summary);
  EXPECT_THAT(ReadSummary(*storage_, kDir, MiniSpec::MakeId<BlobId>(1)).status(),
              HasCode(Code::kNotFound));
  const std::string name = summary.blob().ToHex() + ".blob";
  const Bytes good = ReadWholeFile(*memory_, kDir, name);
  const Bytes tiny(good.begin(), good.begin() + 300);
  ReplaceFile(*memory_, kDir, name, &tiny);
  EXPECT_THAT(ReadSummary(*storage_, kDir, summary.blob()).status(), HasCode(Code::kIncomplete));
  Bytes unfinished = good;
  std::fill(unfinished.end() - 4096, unfinished.end(), std::byte{0});
  ReplaceFile(*memory_, kDir, name, &unfinished);
  EXPECT_FALSE(ReadSummary(*storage_, kDir, summary.blob()).ok());
  const Bytes only_ends(good.end() - 128 - 256, good.end());
  ReplaceFile(*memory_, kDir, name, &only_ends);
  EXPECT_THAT(ReadSummary(*storage_, kDir, summary.blob()).status(),
              FailsRule(Code::kCorrupt, "R-BLB-03"));
  Bytes longer = good;
  longer.insert(longer.end(), good.begin(), good.end());
  ReplaceFile(*memory_, kDir, name, &longer);
  EXPECT_THAT(ReadSummary(*storage_, kDir, summary.blob()).status(), HasCode(Code::kCorrupt));
}

TEST_F(CommitTest, ReadSummaryRefusesABlobUnderAnotherName) {
  const BlobSummary summary = WriteBlob(Slice(0, kSize));
  const Bytes blob = ReadWholeFile(*memory_, kDir, summary.blob().ToHex() + ".blob");
  const auto other = MiniSpec::MakeId<BlobId>(1);
  ReplaceFile(*memory_, kDir, other.ToHex() + ".blob", &blob);
  const Status status = ReadSummary(*storage_, kDir, other).status();
  EXPECT_THAT(status, FailsRule(Code::kCorrupt, "R-BLB-03"));
  EXPECT_EQ(status.place().path, JoinPath(kDir, other.ToHex() + ".blob"));
}

TEST_F(CommitTest, ReadSummaryReadsNoManifestOverTheLimit) {
  const BlobSummary summary = WriteBlob(Slice(0, kSize));
  storage_->ClearLog();
  Limits limits;
  limits.manifest_size_max_bytes = 1;
  EXPECT_THAT(ReadSummary(*storage_, kDir, summary.blob(), limits).status(),
              FailsRule(Code::kLimitExceeded, "R-IDX-01"));
  const auto calls = storage_->calls();
  EXPECT_EQ(std::count_if(calls.begin(), calls.end(),
                          [](const StorageCall& call) { return call.op == StorageOp::kRead; }),
            2)
      << "header and trailer";
}

TEST_F(CommitTest, RefusesAnExistingMarker) {
  const auto summaries = WriteTwoBlobs();
  ASSERT_TRUE(CommitAll(summaries).ok());
  const auto files = Files();
  EXPECT_THAT(CommitAll(summaries).status(), FailsRule(Code::kAlreadyExists, "R-CMT-01"));
  EXPECT_EQ(Files(), files);
  const Bytes garbage = NoiseBytes(3, 100);
  ReplaceFile(*memory_, kDir, "COMMIT", &garbage);
  EXPECT_THAT(CommitAll(summaries).status(), FailsRule(Code::kAlreadyExists, "R-CMT-01"));
  EXPECT_EQ(ReadWholeFile(*memory_, kDir, "COMMIT"), garbage);
}

TEST_F(CommitTest, RefusesAMissingBlob) {
  const auto summaries = WriteTwoBlobs();
  const std::string name = summaries[1].blob().ToHex() + ".blob";
  const Bytes good = ReadWholeFile(*memory_, kDir, name);
  Bytes longer = good;
  longer.resize(good.size() + 1);
  const Bytes shorter(good.begin(), good.end() - 1);
  for (const Bytes* content :
       {static_cast<const Bytes*>(nullptr), &shorter, static_cast<const Bytes*>(&longer)}) {
    ReplaceFile(*memory_, kDir, name, content);
    const auto files = Files();
    const Status status = CommitAll(summaries).status();
    EXPECT_THAT(status, FailsRule(Code::kIncomplete, "R-CMT-02"));
    EXPECT_THAT(status.place().path, HasSubstr(name));
    EXPECT_EQ(Files(), files);
  }
}

TEST_F(CommitTest, RefusesHolesAndOverlaps) {
  const BlobSummary low = WriteBlob(Slice(0, 9000));
  const BlobSummary high = WriteBlob(Slice(9000, kSize));
  const BlobSummary middle = WriteBlob(Slice(8000, 12000));
  const auto files = Files();
  const Status hole = CommitAll({high}).status();
  EXPECT_THAT(hole, HasCode(Code::kInvalidArgument));
  EXPECT_EQ(hole.place().tensor, "w");
  EXPECT_THAT(hole.message(), HasSubstr("[0]"));
  const Status overlap = CommitAll({low, high, middle}).status();
  EXPECT_THAT(overlap, HasCode(Code::kInvalidArgument));
  EXPECT_EQ(overlap.place().tensor, "w");
  EXPECT_THAT(overlap.message(), HasSubstr(middle.blob().ToHex()));
  EXPECT_EQ(Files(), files) << "nothing but the blobs remains";
}

TEST_F(CommitTest, RefusesBlobsThatDisagree) {
  const BlobSummary low = WriteBlob(Slice(0, 9000));
  TensorSpec dtype = ByteTensor("w", kSize);
  dtype.dtype = DType::kInt8;
  TensorSpec chunk = ByteTensor("w", kSize);
  chunk.chunk_size_bytes = 8192;
  const TensorSpec shape = ByteTensor("w", kSize + 1);
  for (const auto& [tensor, word] :
       {std::pair(dtype, "dtype"), std::pair(chunk, "chunk size"), std::pair(shape, "shape")}) {
    const BlobSummary high = WriteBlob(Slice(9000, kSize), tensor);
    const Status status = CommitAll({low, high}).status();
    EXPECT_THAT(status, HasCode(Code::kInvalidArgument)) << word;
    EXPECT_EQ(status.place().tensor, "w");
    EXPECT_THAT(status.message(), HasSubstr(word));
    EXPECT_THAT(status.message(), HasSubstr(high.blob().ToHex()));
  }
}

TEST_F(CommitTest, RefusesASummaryTwiceAndAnObjectInTwoBlobs) {
  const BlobSummary whole = WriteBlob(Slice(0, kSize));
  EXPECT_THAT(CommitAll({whole, whole}).status(), HasCode(Code::kInvalidArgument));
  const BlobSummary a = WriteObject("rng");
  const BlobSummary b = WriteObject("rng");
  const Status status = CommitAll({whole, a, b}).status();
  EXPECT_THAT(status, HasCode(Code::kInvalidArgument));
  EXPECT_EQ(status.place().object, "rng");
}

TEST_F(CommitTest, RefusesABlobOfAnotherAttempt) {
  const AttemptId mine = MiniSpec::MakeId(1);
  const BlobSummary summary = WriteBlob(Slice(0, kSize), ByteTensor("w", kSize), {.attempt = mine});
  EXPECT_THAT(CommitAll({summary}, {.attempt = MiniSpec::MakeId(2)}).status(),
              FailsRule(Code::kInvalidArgument, "R-CMT-21"));
  EXPECT_TRUE(CommitAll({summary}, {.attempt = mine}).ok());
}

// As a caller does that linked the blob of an older checkpoint into the directory.
TEST_F(CommitTest, CommitsABlobOfAnotherAttemptIfAsked) {
  const BlobSummary summary = WriteBlob(Slice(0, kSize), ByteTensor("w", kSize),
                                        {.attempt = MiniSpec::MakeId(1), .step = 3});
  ASSERT_TRUE(
      CommitAll({summary}, {.attempt = MiniSpec::MakeId(2), .step = 4, .reuses_blobs = true}).ok());
  EXPECT_EQ(FindDamage(memory_, kDir), "");
  EXPECT_EQ(LoadWhole(*OpenFrom(memory_, kDir), "w"), bytes_);
}

TEST_F(CommitTest, RefusesABlobWithUnknownFeatures) {
  MiniSpec spec;
  spec.tensors.push_back(
      CutTensor("w", DType::kUInt8, {kSize}, bytes_, {Region::Whole(Shape{kSize})}));
  spec.hooks.blob_header = [](int, internal::format::FileHeader& header) {
    header.features.compat = 4;
  };
  spec.hooks.index_header = [](internal::format::FileHeader& header) {
    header.features.compat = 4;
  };
  spec.hooks.marker = [](internal::format::Marker& marker) { marker.features.compat = 4; };
  MiniContainer container = BuildMini(spec);
  container.files.erase("COMMIT");
  StoreFiles(*memory_, "/elsewhere", container.files);
  const BlobSummary summary =
      ReadSummary(*storage_, "/elsewhere", container.blobs.at(0).id).value();
  EXPECT_THAT(Commit(*storage_, "/elsewhere", {}, std::vector{summary}).status(),
              FailsRule(Code::kUnsupported, "R-CMT-31"));
}

TEST_F(CommitTest, RefusesReservedProvenanceKeys) {
  const auto with = [&](ProvenanceList provenance) {
    return CommitAll({}, {.provenance = std::move(provenance)}).status();
  };
  EXPECT_THAT(with({{"sealpoint.ranks", "9"}}), FailsRule(Code::kInvalidArgument, "R-CMT-24"));
  EXPECT_THAT(with({{"a", "1"}, {"b", "2"}, {"a", "3"}}),
              FailsRule(Code::kInvalidArgument, "R-CMT-24"));
  EXPECT_THAT(with({{"", "1"}}).message(), HasSubstr("provenance key"));
  EXPECT_THAT(with({{"a", std::string(64 * kKiB + 1, 'x')}}), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(with({{"a", "x\xff"}}), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(with({{"a", "x\xff"}}).message(), HasSubstr("\"a\" is not UTF-8"));
  EXPECT_THAT(CommitAll({}, {.mesh = {{"", 1}}}).status().message(), HasSubstr("mesh axis"));
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(CommitTest, RefusesAParentThatNoCheckpointCanHave) {
  const AttemptId id = MiniSpec::MakeId(3);
  for (const ParentRef& parent : {ParentRef{{}, 4}, ParentRef{id, 0}, ParentRef{id, ~0ull}}) {
    const Status refused = CommitAll({}, {.parent = parent, .allow_empty = true}).status();
    EXPECT_THAT(refused, HasCode(Code::kInvalidArgument));
    EXPECT_THAT(refused.message(), HasSubstr("the parent's"));
  }
  const CommitOptions own{.attempt = id, .parent = ParentRef{id, 1}, .allow_empty = true};
  EXPECT_EQ(CommitAll({}, own).status().message(), "the attempt is its own parent");
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(CommitTest, ChecksTheIndexAsAReaderDoes) {
  const auto summaries = WriteTwoBlobs();
  const auto files = Files();
  // Each manifest is within this limit, which only the pass over the whole index checks.
  EXPECT_THAT(CommitAll(summaries, {.limits = {.record_count_max = 4}}).status(),
              HasCode(Code::kLimitExceeded));
  EXPECT_EQ(Files(), files);
  EXPECT_TRUE(CommitAll(summaries, {.limits = {.record_count_max = 6}}).ok());
}

TEST_F(CommitTest, RefusesWithoutExclusivePublication) {
  storage_->Claim(Capabilities{.publish = PublishMethod::kNone, .directory_sync = true});
  EXPECT_THAT(CommitAll(WriteTwoBlobs()).status(), FailsRule(Code::kUnsupported, "R-CMT-04"));
}

TEST_F(CommitTest, RefusesWithoutDirectorySync) {
  storage_->Claim(Capabilities{.publish = PublishMethod::kLink, .directory_sync = false});
  EXPECT_THAT(CommitAll(WriteTwoBlobs()).status(), FailsRule(Code::kUnsupported, "R-CMT-05"));
}

// The whole order of operations of spec/commit.md, steps 6 to 10: without any one of the syncs, or
// with two of the lines exchanged, this differs.
TEST_F(CommitTest, SyncsBeforeThePublication) {
  const AttemptId attempt = MiniSpec::MakeId(0xab);
  const auto summaries = WriteTwoBlobs();
  storage_->ClearLog();
  ASSERT_TRUE(CommitAll(summaries, {.attempt = attempt}).ok());
  const std::string index = attempt.ToHex() + ".index";
  const std::string marker = attempt.ToHex() + ".commit";
  EXPECT_THAT(
      storage_->changes(),
      ElementsAre("probe", "create " + index, "write " + index, "sync " + index, "close " + index,
                  "create " + marker, "write " + marker, "sync " + marker, "close " + marker,
                  "sync directory", "publish " + marker, "sync directory", "remove " + marker));
}

TEST_F(CommitTest, SyncsAfterThePublication) {
  const auto summaries = WriteTwoBlobs();
  storage_->Fail({.op = StorageOp::kSyncDirectory, .nth = 2});
  const Status status = CommitAll(summaries).status();
  EXPECT_THAT(status, FailsRule(Code::kIo, "R-CMT-07"));
  EXPECT_TRUE(OutcomeIsUnknown(status));
  EXPECT_THAT(Files(), Contains("COMMIT"));
  EXPECT_THAT(Files(), SizeIs(5)) << "nothing is removed";
}

TEST_F(CommitTest, ReadsTheMarkerBackAfterAnAmbiguousError) {
  const auto summaries = WriteTwoBlobs();
  storage_->Fail({.op = StorageOp::kPublish, .takes_effect = true});
  ASSERT_TRUE(CommitAll(summaries).ok());
  EXPECT_EQ(FindDamage(memory_, kDir), "");
}

TEST_F(CommitTest, FailedPublicationRemovesOwnFilesAndLeavesTheBlobs) {
  const auto summaries = WriteTwoBlobs();
  const auto files = Files();
  storage_->Fail({.op = StorageOp::kPublish, .error = {Code::kIo, "link failed"}});
  const Status status = CommitAll(summaries).status();
  EXPECT_THAT(status, HasCode(Code::kIo));
  EXPECT_EQ(status.message(), "link failed");
  EXPECT_FALSE(OutcomeIsUnknown(status));
  EXPECT_EQ(Files(), files);
  storage_->Heal();
  EXPECT_TRUE(CommitAll(summaries).ok());
}

// What a crash in between leaves is then no attempt to publish.
TEST_F(CommitTest, OfItsOwnFilesTheMarkerIsRemovedFirst) {
  const auto summaries = WriteTwoBlobs();
  storage_->Fail({.op = StorageOp::kPublish, .error = {Code::kIo, "link failed"}});
  ASSERT_FALSE(CommitAll(summaries).ok());
  std::vector<std::string> ends;
  for (const std::string& change : storage_->changes()) {
    if (change.starts_with("remove ")) ends.push_back(change.substr(change.rfind('.')));
  }
  ASSERT_FALSE(ends.empty());
  EXPECT_EQ(ends.back(), ".index");
  EXPECT_THAT(ends, Contains(".commit"));
}

TEST_F(CommitTest, RemovesNothingWhenTheOutcomeIsUnknown) {
  const auto summaries = WriteTwoBlobs();
  storage_->Fail({.op = StorageOp::kPublish, .takes_effect = true});
  storage_->Fail({.op = StorageOp::kOpenForRead, .name = "COMMIT"});
  const Status status = CommitAll(summaries).status();
  EXPECT_THAT(status, FailsRule(Code::kIo, "R-CMT-07"));
  EXPECT_TRUE(OutcomeIsUnknown(status));
  EXPECT_THAT(Files(), SizeIs(5));
}

// A publication that is reported as failed and takes effect while its maker looks for it.
TEST_F(CommitTest, LooksAgainOnceNothingCanBePublishedAnyMore) {
  const auto summaries = WriteTwoBlobs();
  storage_->Fail({.op = StorageOp::kPublish});
  bool is_late = false;
  storage_->SetHook([&](StorageOp op, std::string_view name) {
    if (op != StorageOp::kRemove || std::exchange(is_late, true)) return;
    const auto late = memory_->OpenDirectory(kDir).value();
    EXPECT_TRUE(late->PublishExclusive(name, "COMMIT", PublishMethod::kLink).ok());
  });
  ASSERT_TRUE(CommitAll(summaries).ok());
  EXPECT_EQ(FindDamage(memory_, kDir), "");
}

TEST_F(CommitTest, OutcomeIsUnknownWhileSomethingCanStillBePublished) {
  const auto summaries = WriteTwoBlobs();
  storage_->Fail({.op = StorageOp::kPublish});
  storage_->Fail({.op = StorageOp::kRemove, .name = ".commit"});
  const Status status = CommitAll(summaries).status();
  EXPECT_THAT(status, FailsRule(Code::kIo, "R-CMT-07"));
  EXPECT_TRUE(OutcomeIsUnknown(status));
  EXPECT_THAT(Files(), SizeIs(4)) << "nothing is removed";
}

TEST_F(CommitTest, AMarkerThatAppearsMeanwhileWins) {
  const auto summaries = WriteTwoBlobs();
  auto files = Files();
  const Bytes other = NoiseBytes(4, 512);
  storage_->SetHook([&](StorageOp op, std::string_view) {
    if (op == StorageOp::kPublish) ReplaceFile(*memory_, kDir, "COMMIT", &other);
  });
  EXPECT_THAT(CommitAll(summaries).status(), FailsRule(Code::kAlreadyExists, "R-CMT-01"));
  EXPECT_EQ(ReadWholeFile(*memory_, kDir, "COMMIT"), other);
  files.insert(files.begin(), "COMMIT");
  std::sort(files.begin(), files.end());
  EXPECT_EQ(Files(), files);
}

// Two committers with the same attempt id: the second must not remove what the first wrote.
TEST_F(CommitTest, LeavesFilesThatItDidNotCreate) {
  const AttemptId attempt = MiniSpec::MakeId(9);
  const auto summaries = WriteTwoBlobs();
  for (const std::string suffix : {".index", ".commit"}) {
    const Bytes other = NoiseBytes(5, 700);
    const std::string name = attempt.ToHex() + suffix;
    ReplaceFile(*memory_, kDir, name, &other);
    EXPECT_THAT(CommitAll(summaries, {.attempt = attempt}).status(), HasCode(Code::kAlreadyExists));
    EXPECT_EQ(ReadWholeFile(*memory_, kDir, name), other);
    EXPECT_THAT(Files(), SizeIs(3)) << "its own are removed";
    ReplaceFile(*memory_, kDir, name, nullptr);
  }
}

struct CommitFault {
  std::string what;
  StorageFault fault;
};

class CommitFaultTest : public CommitTest, public ::testing::WithParamInterface<CommitFault> {};

TEST_P(CommitFaultTest, LeavesTheBlobsAndNoMarker) {
  const auto summaries = WriteTwoBlobs();
  const auto files = Files();
  storage_->Fail(GetParam().fault);
  const Status status = CommitAll(summaries).status();
  EXPECT_THAT(status, HasCode(GetParam().fault.error.code()));
  EXPECT_FALSE(OutcomeIsUnknown(status));
  EXPECT_EQ(Files(), files);
}

INSTANTIATE_TEST_SUITE_P(
    Operations, CommitFaultTest,
    ::testing::Values(
        CommitFault{"open", {.op = StorageOp::kOpenDirectory}},
        CommitFault{"look_for_marker", {.op = StorageOp::kStat, .name = "COMMIT"}},
        CommitFault{"look_for_blob", {.op = StorageOp::kStat, .name = ".blob"}},
        CommitFault{"probe", {.op = StorageOp::kProbe}},
        CommitFault{"create_index", {.op = StorageOp::kCreate, .name = ".index"}},
        CommitFault{"write_index",
                    {.op = StorageOp::kWrite, .name = ".index", .error = {Code::kNoSpace, "full"}}},
        CommitFault{"sync_index", {.op = StorageOp::kSyncFile, .name = ".index"}},
        CommitFault{"close_index", {.op = StorageOp::kClose, .name = ".index"}},
        CommitFault{"create_marker", {.op = StorageOp::kCreate, .name = ".commit"}},
        CommitFault{"write_marker", {.op = StorageOp::kWrite, .name = ".commit"}},
        CommitFault{"sync_marker", {.op = StorageOp::kSyncFile, .name = ".commit"}},
        CommitFault{"close_marker", {.op = StorageOp::kClose, .name = ".commit"}},
        CommitFault{"directory_sync", {.op = StorageOp::kSyncDirectory}}),
    [](const auto& test) { return test.param.what; });

}  // namespace
}  // namespace sealpoint::testing
