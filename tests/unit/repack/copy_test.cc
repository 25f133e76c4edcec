// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>

#include "sealpoint/object_store.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/support/storage/memory_object_store.h"
#include "tests/support/storage/reading_storage.h"
#include "tests/unit/repack/repack_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

// Larger than the memory of a thread in these tests, of two column shards in chunks of 128 KiB.
constexpr std::uint64_t kRows = 600;

// Five blobs: columns, runs, one that is coded, a scalar, an empty one, a private dtype.
MiniSpec SourceSpec() {
  MiniSpec spec{.parent = MiniSpec::MakeId(0x11),
                .sequence = 4,
                .mesh = {{"dp", 2}},
                .provenance = {{"metric.loss", "1.5"}, {"sealpoint.ranks", "2"}}};
  spec.tensors.push_back(CutTensor(
      "large", DType::kF32, {kRows, 512}, NoiseBytes(1, kRows * 512 * 4),
      {Region::Of({{0, 0}, {kRows, 256}}), Region::Of({{0, 256}, {kRows, 256}})}, {0, 1}));
  spec.tensors.back().placement = {"Replicate"};
  spec.tensors.back().chunk_size = 128 * kKiB;
  spec.tensors.push_back(
      CutTensor("coded", DType::kBf16, {3000}, Bytes(6000), {Region::Whole({3000})}, {2}));
  spec.tensors.back().codec = Codec::kByteSplitZstd;
  spec.tensors.push_back(CutTensor("empty", DType::kF32, {0, 3}, {}, {}));
  spec.tensors.push_back(CutTensor(
      "opt.m", DType::kInt8, {9000}, NoiseBytes(2, 9000),
      {Region({{0}, {9000}}, Run{0, 5000}), Region({{0}, {9000}}, Run{5000, 9000})}, {3, 4}));
  MiniTensor odd = CutTensor("opt.odd", DType::kInt8, {7}, Bytes(7), {Region::Whole({7})}, {4});
  odd.dtype = static_cast<DType>(61440);
  odd.element_size = 4;
  odd.shards.front().bytes = NoiseBytes(3, 28);
  spec.tensors.push_back(odd);
  spec.tensors.push_back(
      CutTensor("scalar", DType::kInt64, {}, NoiseBytes(4, 8), {Region::Whole({})}, {2}));
  std::ranges::sort(spec.tensors, {}, &MiniTensor::name);
  spec.objects.push_back({.name = "opt.rng", .bytes = NoiseBytes(5, 9000), .media_type = "a/b"});
  return spec;
}

class CopyTest : public RepackTest {
 protected:
  CopyTest() { StoreFiles(*storage_, "from", source_.files); }

  Result<RepackReport> Copy(CopyOptions options = {}, const std::string& to = "to") const {
    options.repack = Small(options.repack);
    return CopyCheckpoint({.from = "from", .to = to}, options);
  }
  MiniContainer source_ = BuildMini(SourceSpec());
};

TEST_F(CopyTest, IsTheSameCheckpointIfNothingIsChosen) {
  const auto first = Copy();
  ASSERT_TRUE(first.ok()) << first.error().ToString();
  EXPECT_TRUE(first->is_identical);
  EXPECT_EQ(first->blob_count, 5u);
  for (const auto& [name, bytes] : source_.files) {
    EXPECT_EQ(ReadWholeFile(*storage_, "to", name), bytes) << name;
  }
  EXPECT_TRUE(Copy().value().was_committed);
  // A promotion would wait for it.
  ReplaceFile(*storage_, "from", source_.blobs.at(3).name, nullptr);
  EXPECT_THAT(Copy({}, "other").status(), HasCode(Code::kIncomplete));
}

// Others may prune meanwhile. A promotion would wait for what is gone, until its deadline.
TEST_F(CopyTest, FingerprintsAreKept) {
  MiniSpec spec = SourceSpec();
  spec.has_fingerprints = true;
  StoreFiles(*storage_, "with", BuildMini(spec).files);
  const auto source = Checkpoint::Open("with", {.storage = storage_}).value();
  for (const bool is_chosen : {false, true}) {
    CopyOptions options{.repack = Small({})};
    if (is_chosen) options.drop = {"opt.*"};
    const std::string to = is_chosen ? "some" : "all";
    ASSERT_TRUE(CopyCheckpoint({.from = "with", .to = to}, options).ok());
    const auto copy = Checkpoint::Open(to, {.storage = storage_}).value();
    for (const TensorInfo& tensor : copy->tensors()) {
      ASSERT_TRUE(tensor.fingerprint.has_value()) << tensor.name;
      EXPECT_EQ(tensor.fingerprint, source->FindTensor(tensor.name)->fingerprint);
    }
  }
  ASSERT_TRUE(Copy({.drop = {"opt.*"}}).ok());  // of a source without
  const auto copy = Checkpoint::Open("to", {.storage = storage_}).value();
  EXPECT_FALSE(copy->FindTensor("large")->fingerprint.has_value());
}

TEST_F(CopyTest, WhatIsDeletedMeanwhileIsNotWaitedFor) {
  const auto seen = std::make_shared<FailingStorage>(storage_);
  seen->SetHook([&](StorageOp op, std::string_view) {
    if (op != StorageOp::kProbe) return;  // of the new place: the source was looked at
    for (const auto& [name, bytes] : source_.files) ReplaceFile(*storage_, "from", name, nullptr);
  });
  CopyOptions options;
  options.repack.to_storage = seen;
  EXPECT_THAT(Copy(options).status(), HasCode(Code::kNotFound));
}

TEST_F(CopyTest, AnEmptyCheckpointHasACopy) {
  StoreFiles(*storage_, "nothing", BuildMini({}).files);
  for (const bool is_coded : {false, true}) {
    const std::string to = is_coded ? "coded" : "same";
    CopyOptions options{.repack = Small()};
    if (is_coded) options.repack.codec = Codec::kZstd;
    const auto copied = CopyCheckpoint({.from = "nothing", .to = to}, options);
    ASSERT_TRUE(copied.ok()) << copied.error().ToString();
    EXPECT_EQ(copied->is_identical, !is_coded);
    EXPECT_EQ(Open(to)->tensor_count(), 0u);
  }
}

TEST_F(CopyTest, ADryRunSaysWhatWouldBeMade) {
  for (const CopyOptions& options : {CopyOptions{}, CopyOptions{.drop = {"opt.*"}}}) {
    CopyOptions dry = options;
    dry.repack.dry_run = true;
    const RepackReport planned = Copy(dry).value();
    EXPECT_THAT(storage_->OpenDirectory("to").status(), HasCode(Code::kNotFound));
    const RepackReport made = Copy(options, options.drop.empty() ? "all" : "some").value();
    EXPECT_EQ(planned.step, made.step);
    EXPECT_EQ(planned.tensor_count, made.tensor_count);
    EXPECT_EQ(planned.object_count, made.object_count);
    EXPECT_EQ(planned.raw_bytes, made.raw_bytes);
    EXPECT_EQ(planned.is_identical, made.is_identical);
  }
}

TEST_F(CopyTest, RefusesACopyOfNothingBeforeItWrites) {
  EXPECT_THAT(Copy({.drop = {"*"}}).status(), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(storage_->OpenDirectory("to").status(), HasCode(Code::kNotFound));
}

TEST_F(CopyTest, HasTheSameContentInAnyOtherForm) {
  struct Row {
    RepackOptions repack{};
    std::uint64_t blob_count = 0;
    std::uint64_t chunk_size_bytes = 128 * kKiB;
    std::optional<Codec> codec{};  // of "scalar" and of "large"
  };
  const std::vector<Row> rows = {
      {.repack = {.codec = Codec::kZstd}, .blob_count = 2, .codec = Codec::kZstd},
      {.repack = {.codec = Codec::kNone}, .blob_count = 2},
      {.repack = {.chunk_size_bytes = 64 * kKiB}, .blob_count = 2, .chunk_size_bytes = 64 * kKiB},
      {.repack = {.blob_count = 1}, .blob_count = 1},
      {.repack = {.blob_count = 3, .threads = 1}, .blob_count = 3},
      {.repack = {.blob_count = 8}, .blob_count = 8},
      {.repack = {.blob_count = 1000000}, .blob_count = 0},
      {.repack = {.blob_count = 1, .blob_size_max_bytes = kMiB}, .blob_count = 2},
      {.repack = {.chunk_size_bytes = 8192, .threads = 5},
       .blob_count = 0,
       .chunk_size_bytes = 8192},
  };
  const auto source = Open("from");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string to = "copy" + std::to_string(i);
    const auto report = Copy({.repack = rows[i].repack}, to);
    ASSERT_TRUE(report.ok()) << i << " " << report.error().ToString();
    EXPECT_EQ(FindDamage(storage_, to), "") << i;
    const auto copy = Open(to);
    EXPECT_EQ(ContentOf(*copy), ContentOf(*source)) << i;
    EXPECT_EQ(copy->attempt(), report->attempt);
    EXPECT_NE(copy->attempt(), source->attempt());
    EXPECT_EQ(copy->parent(), source->parent());
    EXPECT_EQ(copy->sequence(), 4u);
    EXPECT_EQ(copy->step(), 7u);
    EXPECT_EQ(copy->mesh(), source->mesh());
    EXPECT_THAT(copy->provenance(), Contains(Pair("metric.loss", "1.5")));
    EXPECT_THAT(copy->provenance(), Contains(Pair("repack.from", source->attempt().ToHex())));
    if (rows[i].blob_count != 0) EXPECT_EQ(copy->blobs().size(), rows[i].blob_count) << i;
    EXPECT_EQ(copy->FindTensor("large")->chunk_size_bytes, rows[i].chunk_size_bytes) << i;
    EXPECT_GT(copy->FindTensor("large")->shard_count, 2u) << "it was in memory whole";
    EXPECT_EQ(copy->FindTensor("opt.m")->shard_count, 1u);
    // What is not chosen stays as it is.
    const auto codec = [&](const char* tensor) {
      return copy->TensorChunks(tensor).value().codecs.back().codec;
    };
    EXPECT_EQ(codec("coded"), rows[i].repack.codec.value_or(Codec::kByteSplitZstd)) << i;
    EXPECT_EQ(codec("large"), Codec::kNone) << "noise";
  }
}

// In pieces that end with chunks, whichever of both are the larger ones.
TEST_F(CopyTest, ReadsNoChunkTwice) {
  for (const std::uint64_t chunk_size : {4 * kKiB, 128 * kKiB}) {
    const std::string to = "copy" + std::to_string(chunk_size);
    const auto reading = std::make_shared<ReadingStorage>(storage_);
    CopyOptions options{.match = {"large"}, .repack = Small({.chunk_size_bytes = chunk_size})};
    options.repack.from_storage = reading;
    options.repack.memory_budget_bytes += 40000;
    ASSERT_TRUE(CopyCheckpoint({.from = "from", .to = to}, options).ok());
    std::uint64_t read = 0;
    for (const ReadCall& call : reading->log().reads) {
      if (call.name.ends_with(".blob")) read += call.size;
    }
    EXPECT_LT(read, kRows * 512 * 4 * 11 / 10) << chunk_size;
  }
}

TEST_F(CopyTest, ReadsChunksThatAreLargerThanItsMemory) {
  MiniSpec spec;
  for (const char* name : {"coded", "plain"}) {
    spec.tensors.push_back(CutTensor(name, DType::kInt8, {3 * kMiB}, NoiseBytes(9, 3 * kMiB),
                                     {Region::Whole({3 * kMiB})}));
    spec.tensors.back().chunk_size = 2 * kMiB;
  }
  spec.tensors.front().codec = Codec::kZstd;
  StoreFiles(*storage_, "other", BuildMini(spec).files);
  for (const int threads : {1, 4}) {
    const std::string to = "copy" + std::to_string(threads);
    const auto copied =
        CopyCheckpoint({.from = "other", .to = to},
                       {.repack = Small({.chunk_size_bytes = 4096, .threads = threads})});
    ASSERT_TRUE(copied.ok()) << copied.error().ToString();
    EXPECT_EQ(ContentOf(*Open(to)), ContentOf(*Open("other")));
  }
}

TEST_F(CopyTest, TakesTensorsAndObjectsByTheirNames) {
  struct Row {
    CopyOptions options;
    std::vector<std::string> names;
  };
  const std::vector<Row> rows = {{{.match = {"opt.*"}}, {"opt.m", "opt.odd", "opt.rng"}},
                                 {{.drop = {"opt.*", "la?ge"}}, {"coded", "empty", "scalar"}},
                                 {{.match = {"*"}, .drop = {"opt.m", "opt.rng", "large"}},
                                  {"coded", "empty", "opt.odd", "scalar"}}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string to = "copy" + std::to_string(i);
    ASSERT_TRUE(Copy(rows[i].options, to).ok()) << i;
    const auto copy = Open(to);
    std::vector<std::string> names;
    for (const TensorInfo& tensor : copy->tensors()) names.push_back(tensor.name);
    for (const ObjectInfo& object : copy->objects()) names.push_back(object.name);
    EXPECT_EQ(names, rows[i].names);
    EXPECT_EQ(FindDamage(storage_, to), "");
  }
  const auto error = [&](CopyOptions options) { return Copy(options, "none").status(); };
  EXPECT_THAT(error({.match = {"nothing*"}}), HasCode(Code::kNotFound));
  EXPECT_THAT(error({.drop = {"*"}}), HasCode(Code::kInvalidArgument));
  const auto seen = std::make_shared<FailingStorage>(storage_);
  CopyOptions none{.match = {"coded"}};
  none.repack.from_storage = seen;
  none.repack.threads = -1;
  EXPECT_THAT(CopyCheckpoint({.from = "from", .to = "none"}, none).status(),
              HasCode(Code::kInvalidArgument));
  EXPECT_TRUE(seen->calls().empty()) << "before it is opened";
  EXPECT_THAT(error({.repack = {.blob_size_max_bytes = 5000}}).message(),
              HasSubstr("blob_size_max_bytes is 5000"));
  EXPECT_THAT(error({.repack = {.chunk_size_bytes = 5000}}), HasCode(Code::kInvalidArgument));
  EXPECT_EQ(FileNames(*storage_, "none"), std::vector<std::string>());
  CopyOptions little{.repack = Small()};
  little.repack.memory_budget_bytes = kMiB;
  EXPECT_THAT(CopyCheckpoint({.from = "from", .to = "none"}, little).status(),
              HasCode(Code::kInvalidArgument));
}

// Every byte of a chunk is verified, and a copy that fails leaves nothing.
TEST_F(CopyTest, RefusesADamagedChunk) {
  for (const auto& [number, blob] : source_.blobs) {
    for (const internal::format::ChunkRecord& record :
         {blob.records.front(), blob.records.back()}) {
      Bytes damaged = source_.files.at(blob.name);
      damaged[record.offset + record.stored_size - 1] ^= std::byte{1};
      ReplaceFile(*storage_, "from", blob.name, &damaged);
      const auto copied = Copy({.repack = {.blob_count = 2}});
      ASSERT_FALSE(copied.ok()) << blob.name;
      EXPECT_EQ(copied.error().code(), Code::kCorrupt) << copied.error().ToString();
      EXPECT_EQ(copied.error().place().path, "from/" + blob.name);
      EXPECT_EQ(FileNames(*storage_, "to"), std::vector<std::string>());
    }
    ReplaceFile(*storage_, "from", blob.name, &source_.files.at(blob.name));
  }
}

TEST_F(CopyTest, ABoundOfBlobsIsAChoice) {
  const auto copied = Copy({.repack = {.blob_size_max_bytes = kMiB}});
  ASSERT_TRUE(copied.ok()) << copied.error().ToString();
  EXPECT_FALSE(copied->is_identical);
  EXPECT_GT(copied->blob_count, 1u);
}

TEST_F(CopyTest, RefusesAPlaceThatCannotPublishOrBeLookedAt) {
  const auto failing = std::make_shared<FailingStorage>(storage_);
  const auto error = [&] {
    return Copy({.match = {"coded"}, .repack = {.to_storage = failing}}).status();
  };
  failing->Claim(Capabilities{.publish = PublishMethod::kNone, .directory_sync = true});
  EXPECT_THAT(error(), FailsRule(Code::kUnsupported, "R-CMT-04"));
  EXPECT_THAT(failing->changes(), Each(Not(StartsWith("create ")))) << "before a blob is written";
  failing->Claim(Capabilities{.publish = PublishMethod::kLink, .directory_sync = true});
  failing->Fail({.op = StorageOp::kStat, .name = "COMMIT"});
  EXPECT_THAT(error(), HasCode(Code::kIo));
  EXPECT_EQ(FileNames(*storage_, "to"), std::vector<std::string>());
}

// It is committed, but nobody can say so: its blobs stay.
TEST_F(CopyTest, WhatMayBeCommittedIsNotRemoved) {
  const auto failing = std::make_shared<FailingStorage>(storage_);
  failing->Fail({.op = StorageOp::kPublish, .name = "commit", .takes_effect = true});
  failing->Fail({.op = StorageOp::kOpenForRead, .name = "COMMIT", .nth = 0});
  const Status status = Copy({.match = {"coded"}, .repack = {.to_storage = failing}}).status();
  EXPECT_TRUE(status.has_unknown_outcome()) << status.ToString();
  EXPECT_EQ(ContentOf(*Open("to")).size(), 1u);
}

// Who made it may have died before the last sync.
TEST_F(CopyTest, WhatIsThereAlreadyIsSyncedAgain) {
  ASSERT_TRUE(Copy({.match = {"coded"}}).ok());
  const auto failing = std::make_shared<FailingStorage>(storage_);
  failing->Fail({.op = StorageOp::kSyncDirectory, .nth = 0});
  CopyOptions again{.match = {"coded"}};
  again.repack.to_storage = failing;
  EXPECT_THAT(Copy(again).status(), HasCode(Code::kIo));
}

TEST_F(CopyTest, IsMadeOnce) {
  const CopyOptions options{.match = {"coded"}};
  const RepackReport first = Copy(options).value();
  EXPECT_FALSE(first.was_committed);
  const RepackReport second = Copy(options).value();
  EXPECT_TRUE(second.was_committed);
  EXPECT_EQ(second.attempt, first.attempt);
  // Another copy, and the source, are not overwritten.
  for (const CopyOptions& other : {CopyOptions{.match = {"scalar"}}, CopyOptions()}) {
    EXPECT_THAT(Copy(other).status(), FailsRule(Code::kAlreadyExists, "R-CMT-01"));
  }
  EXPECT_THAT(Copy(options, "from").status(), FailsRule(Code::kAlreadyExists, "R-CMT-01"));
}

// Who cannot read a marker does not know whose it is.
TEST_F(CopyTest, AMarkerThatCannotBeReadIsNotCalledAnothers) {
  for (const bool is_identical : {false, true}) {
    const std::string to = is_identical ? "same" : "some";
    CopyOptions options;
    if (!is_identical) options.match = {"coded"};
    ASSERT_TRUE(Copy(options, to).ok());
    const auto seen = std::make_shared<FailingStorage>(storage_);
    seen->Fail({.op = StorageOp::kRead, .path = to + "/COMMIT", .nth = 0});
    options.repack.to_storage = seen;
    EXPECT_THAT(Copy(options, to).status(), HasCode(Code::kIo)) << to;
  }
}

TEST_F(CopyTest, TellsItsCallerHowFarItIsWhoMayEndIt) {
  std::uint64_t last = 0;
  std::uint64_t total = 0;
  CopyOptions options{.repack = {.blob_count = 1, .on_progress = [&](const PhaseEvent& event) {
                                   last = event.bytes_done;
                                   total = event.bytes_total;
                                   if (last >= kMiB) throw 1;
                                 }}};
  EXPECT_THAT(Copy(options).status(), HasCode(Code::kCancelled));
  EXPECT_GE(last, kMiB);
  EXPECT_LT(last, total);
  EXPECT_EQ(FileNames(*storage_, "to"), std::vector<std::string>());
  // All of it, whether it is written anew or copied as it is.
  for (const std::uint32_t blob_count : {1U, 0U}) {
    options.repack.blob_count = blob_count;
    options.repack.on_progress = [&](const PhaseEvent& event) {
      last = event.bytes_done;
      total = event.bytes_total;
    };
    ASSERT_TRUE(Copy(options, "to" + std::to_string(blob_count)).ok());
    EXPECT_EQ(last, total);
  }
}

TEST_F(CopyTest, PartsOfUploadsAreBesideTheBudget) {
  const auto store = std::make_shared<MemoryObjectStore>();
  store->part_size = 32 * kMiB;
  const auto copied = CopyCheckpoint(
      {.from = "from", .to = "mem://bucket/run"},
      {.drop = {"large"}, .repack = Small({.to_storage = ObjectStorage(store).value()})});
  EXPECT_TRUE(copied.ok()) << copied.error().ToString();
}

// Whichever request has trouble: the next try makes the copy, and nothing else is left.
TEST_F(CopyTest, GoesToAnObjectStoreWhateverRequestHasTrouble) {
  const auto copy_to = [&](const std::shared_ptr<MemoryObjectStore>& store) {
    const CopyOptions options{
        .drop = {"large"},
        .repack = Small({.to_storage = ObjectStorage(store).value(), .threads = 1})};
    return CopyCheckpoint({.from = "from", .to = "mem://bucket/run"}, options);
  };
  const auto whole = std::make_shared<MemoryObjectStore>();
  ASSERT_TRUE(copy_to(whole).ok());
  // But for what a probe leaves.
  const auto count_files = [](const MemoryObjectStore& store) {
    return std::ranges::count_if(store.Objects(), [](const auto& object) {
      return object.first.find(".probe") == std::string::npos;
    });
  };
  for (std::uint64_t number = 0; number < whole->request_count(); ++number) {
    for (const Trouble trouble : kTroubles) {
      const auto first = std::make_shared<MemoryObjectStore>();
      first->FailAt(number, trouble);
      const bool is_copied = copy_to(first).ok();
      first->Settle();
      const auto second = std::make_shared<MemoryObjectStore>();
      for (const auto& [key, content] : first->Objects()) second->Set(key, content);
      const bool is_committed = second->Objects().contains("run/COMMIT");
      EXPECT_TRUE(is_committed || !is_copied) << number;
      const auto again = copy_to(second);
      ASSERT_TRUE(again.ok()) << number << " " << again.error().ToString();
      EXPECT_EQ(again->was_committed, is_committed) << number;
      EXPECT_EQ(count_files(*second), count_files(*whole)) << number;
    }
  }
}

}  // namespace
}  // namespace sealpoint::testing
