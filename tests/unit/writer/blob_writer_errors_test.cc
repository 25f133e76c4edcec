// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/format/constants.h"
#include "lib/format/marker.h"
#include "lib/storage/durable.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/commit.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/unit/writer/checkpoint_dir.h"

namespace sealpoint::testing {
namespace {

using internal::format::EncodeMarker;
using internal::format::IndexName;
using internal::format::MarkerBytes;
using internal::format::MarkerKind;
using internal::format::UnpublishedMarkerName;
using internal::storage::WriteFileDurably;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class BlobWriterErrorsTest : public ::testing::Test {
 protected:
  BlobWriterErrorsTest() { EXPECT_TRUE(failing_->CreateDirectories(kDir).ok()); }

  std::unique_ptr<BlobWriter> Writer(BlobWriterOptions options = {}) {
    return BlobWriter::Create(*engine_, kDir, std::move(options)).value();
  }
  Status AddWhole(BlobWriter& writer, const TensorSpec& tensor) {
    const std::uint64_t size =
        ElementCount(tensor.shape).value_or(0) * DTypeSizeBytes(tensor.dtype);
    return writer.Add(tensor, Region::Whole(tensor.shape), First(size));
  }

  MemoryView First(std::size_t size) const {
    return MemoryView::Host(std::span(bytes_).first(std::min(size, bytes_.size())));
  }

  const Bytes bytes_ = NoiseBytes(1, 200000);
  const std::shared_ptr<FailingStorage> failing_ =
      std::make_shared<FailingStorage>(MemoryStorage());
  std::unique_ptr<Engine> engine_ = SmallEngine(failing_);
};

TEST_F(BlobWriterErrorsTest, CreateNeedsADirectoryAndRoom) {
  EXPECT_THAT(BlobWriter::Create(*engine_, "elsewhere").status(), HasCode(Code::kNotFound));
  EXPECT_THAT(BlobWriter::Create(*engine_, kDir, {.size_max_bytes = kMiB - 1}).status(),
              HasCode(Code::kInvalidArgument));
}

struct BadTensor {
  std::string what;
  std::function<void(TensorSpec&)> spoil;
  Code code = Code::kInvalidArgument;
};

TEST_F(BlobWriterErrorsTest, RefusesBadTensors) {
  const std::vector<BadTensor> cases = {
      {"no name", [](TensorSpec& t) { t.name.clear(); }},
      {"long name", [](TensorSpec& t) { t.name.assign(1025, 'x'); }},
      {"control character", [](TensorSpec& t) { t.name = "a\nb"; }},
      {"not UTF-8", [](TensorSpec& t) { t.name = "\xff"; }},
      {"dtype 0",
       [](TensorSpec& t) {
         t.dtype = static_cast<DType>(0);
         t.element_size = 4;
       }},
      {"unregistered dtype without a size",
       [](TensorSpec& t) { t.dtype = static_cast<DType>(99); }},
      {"another element size", [](TensorSpec& t) { t.element_size = 2; }},
      {"element size of 3",
       [](TensorSpec& t) {
         t.dtype = static_cast<DType>(99);
         t.element_size = 3;
       }},
      {"element size of 512",
       [](TensorSpec& t) {
         t.dtype = static_cast<DType>(99);
         t.element_size = 512;
       }},
      {"chunk size of no power of two", [](TensorSpec& t) { t.chunk_size_bytes = 5000; }},
      {"small chunks", [](TensorSpec& t) { t.chunk_size_bytes = 2048; }},
      {"large chunks", [](TensorSpec& t) { t.chunk_size_bytes = 256 * kMiB; }},
      {"unknown codec", [](TensorSpec& t) { t.codec = static_cast<Codec>(77); }},
      {"unknown level",
       [](TensorSpec& t) {
         t.codec = Codec::kZstd;
         t.codec_level = 1000;
       }},
      {"empty placement", [](TensorSpec& t) { t.placement = {""}; }},
      {"too many dimensions", [](TensorSpec& t) { t.shape.assign(33, 1); }},
      {"too many elements", [](TensorSpec& t) { t.shape = {1ull << 40, 1ull << 40}; },
       Code::kLimitExceeded},
      {"too many bytes",
       [](TensorSpec& t) {
         t.dtype = DType::kF64;
         t.shape = {1ull << 62};
       },
       Code::kLimitExceeded},
  };
  for (const BadTensor& bad : cases) {
    TensorSpec tensor = ByteTensor("w", 100);
    bad.spoil(tensor);
    const auto writer = Writer();
    const Status status = writer->Add(tensor, Slice(0, 100), First(100));
    EXPECT_THAT(status, HasCode(bad.code)) << bad.what;
    EXPECT_EQ(status.place().tensor, tensor.name) << bad.what;
  }
  EXPECT_THAT(FileNames(*failing_, kDir), IsEmpty());
}

TEST_F(BlobWriterErrorsTest, RefusesBadRegionsAndMemory) {
  const TensorSpec tensor{.name = "w", .dtype = DType::kUInt8, .shape = {10, 10}};
  const Region whole = Region::Whole(tensor.shape);
  const auto add = [&](const Region& region, const MemoryView& view) {
    return Writer()->Add(tensor, region, view);
  };
  const auto view = First(100);
  EXPECT_THAT(add(Slice(0, 10), view), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add(Region::Of({.offset = {5, 0}, .extent = {6, 10}}), view),
              HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add({whole.box, {5, 4}}, view), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add(Region::Of({.offset = {11, 0}, .extent = {0, 10}}), view),
              HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add({whole.box, {0, 101}}, view), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add(whole, MemoryView::Host(nullptr, 100)), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add(whole, MemoryView::Host(bytes_, {1})), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add(whole, MemoryView::Cuda(std::span(bytes_).first(100), -2, nullptr)),
              HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add(whole, MemoryView::Cuda(std::span(bytes_).first(100), 99, nullptr)),
              HasCode(Code::kDevice))
      << "not there, with a driver or without";
  EXPECT_THAT(Writer()->AddEmpty(tensor), HasCode(Code::kInvalidArgument));
}

TEST_F(BlobWriterErrorsTest, RefusesBadObjects) {
  const auto add = [&](const std::string& name, const std::string& type, ByteSpan bytes,
                       Codec codec) {
    return Writer()->AddObject({.name = name, .media_type = type, .codec = codec}, bytes);
  };
  const ByteSpan one = ByteSpan(bytes_).first(1);
  EXPECT_THAT(add("", "text/plain", one, Codec::kNone), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add("o", "", one, Codec::kNone), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add("o", std::string(256, 't'), one, Codec::kNone), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add(std::string(1025, 'n'), "t", one, Codec::kNone), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add("o", "t", one, static_cast<Codec>(9)), HasCode(Code::kInvalidArgument));
}

TEST_F(BlobWriterErrorsTest, RefusesAnObjectTwiceAlsoInAnotherBlob) {
  const auto writer = Writer({.size_max_bytes = kMiB});
  ASSERT_TRUE(writer->AddObject({.name = "o", .media_type = "t"}, {}).ok());
  ASSERT_TRUE(writer->AddObject({.name = "filler", .media_type = "t"}, Bytes(kMiB)).ok());
  const Status status = writer->AddObject({.name = "o", .media_type = "t"}, {});
  EXPECT_THAT(status, HasCode(Code::kInvalidArgument));
  EXPECT_EQ(status.place().object, "o");
}

TEST_F(BlobWriterErrorsTest, RefusesATensorThatChangedAlsoInAnotherBlob) {
  const std::vector<std::function<void(TensorSpec&)>> changes = {
      [](TensorSpec& t) { t.dtype = DType::kInt8; },
      [](TensorSpec& t) { t.shape = {200, 1000}; },
      [](TensorSpec& t) { t.chunk_size_bytes = 8192; },
      [](TensorSpec& t) { t.placement = {"Shard(0)"}; },
  };
  for (const auto& change : changes) {
    TensorSpec tensor = ByteTensor("w", 200000);
    const auto writer = Writer();
    ASSERT_TRUE(writer->Add(tensor, Slice(0, 9), First(9)).ok());
    change(tensor);
    tensor.group = "another blob";
    EXPECT_THAT(AddWhole(*writer, tensor), HasCode(Code::kInvalidArgument));
  }
}

TEST_F(BlobWriterErrorsTest, RefusesATensorWhoseElementsChangedTheirSize) {
  TensorSpec tensor = ByteTensor("w", 100);
  tensor.dtype = static_cast<DType>(99);
  tensor.element_size = 2;
  const auto writer = Writer();
  ASSERT_TRUE(writer->Add(tensor, Slice(0, 50), First(100)).ok());
  tensor.element_size = 4;
  tensor.group = "another blob";
  EXPECT_THAT(writer->Add(tensor, Slice(50, 100), First(200)), HasCode(Code::kInvalidArgument));
}

TEST_F(BlobWriterErrorsTest, RefusesABadTensorWithoutElements) {
  EXPECT_THAT(Writer()->AddEmpty(ByteTensor("", 0)), HasCode(Code::kInvalidArgument));
}

TEST_F(BlobWriterErrorsTest, RefusesATensorWithoutElementsThatChanged) {
  TensorSpec tensor{.name = "w", .dtype = DType::kUInt8, .shape = {0, 2}};
  const auto writer = Writer();
  ASSERT_TRUE(writer->AddEmpty(tensor).ok());
  ASSERT_TRUE(writer->AddEmpty(tensor).ok());
  tensor.shape = {0, 3};
  EXPECT_THAT(writer->AddEmpty(tensor), HasCode(Code::kInvalidArgument));
}

// The first write fails, so that no more of the source is read than the staging buffers hold.
TEST_F(BlobWriterErrorsTest, ABlobHas4294967295ChunksAtMost) {
  constexpr std::uint64_t kChunk = 4096;
  constexpr std::uint64_t kChunksMax = 0xffffffff;
  const auto add_chunks = [&](std::uint64_t chunk_count) {
    TensorSpec tensor = ByteTensor("w", chunk_count * kChunk);
    tensor.chunk_size_bytes = kChunk;
    const auto view = MemoryView::Host(bytes_.data(), chunk_count * kChunk);
    return Writer({.size_max_bytes = std::uint64_t{1} << 60})
        ->Add(tensor, Region::Whole(tensor.shape), view);
  };
  failing_->Fail({.op = StorageOp::kWrite, .nth = 0});
  EXPECT_THAT(add_chunks(kChunksMax), HasCode(Code::kIo));
  EXPECT_THAT(add_chunks(kChunksMax + 1), HasCode(Code::kLimitExceeded));
}

TEST_F(BlobWriterErrorsTest, TheSameShardTwiceInABlobIsTheCallersFault) {
  const auto writer = Writer();
  const TensorSpec tensor = ByteTensor("w", 1000);
  ASSERT_TRUE(AddWhole(*writer, tensor).ok());
  ASSERT_TRUE(AddWhole(*writer, tensor).ok());
  EXPECT_THAT(writer->Finish().status(), HasCode(Code::kInvalidArgument));
}

TEST_F(BlobWriterErrorsTest, MoreTensorsThanTheLimitAreNoFaultOfTheirShards) {
  const auto writer = Writer({.limits = {.tensor_count_max = 1}});
  ASSERT_TRUE(AddWhole(*writer, ByteTensor("v", 1000)).ok());
  ASSERT_TRUE(AddWhole(*writer, ByteTensor("w", 1000)).ok());
  EXPECT_THAT(writer->Finish().status(), HasCode(Code::kLimitExceeded));
}

TEST_F(BlobWriterErrorsTest, ShardsOfABlobThatOverlapAreRefusedByCommit) {
  const auto writer = Writer();
  const TensorSpec tensor = ByteTensor("w", 1000);
  ASSERT_TRUE(writer->Add(tensor, Slice(0, 600), First(600)).ok());
  ASSERT_TRUE(writer->Add(tensor, Slice(500, 1000), First(500)).ok());
  const Status status = Commit(*failing_, kDir, {}, writer->Finish().value()).status();
  EXPECT_THAT(status, HasCode(Code::kInvalidArgument));
  EXPECT_EQ(status.place().tensor, "w");
}

TEST_F(BlobWriterErrorsTest, RefusesMoreGroupsThanTheBudgetHasBuffersFor) {
  engine_ = SmallEngine(failing_, 3);
  const auto writer = Writer();
  Status status;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(status.ok()) << i;
    TensorSpec tensor = ByteTensor("t" + std::to_string(i), 100000);
    tensor.group = std::to_string(i);
    status = AddWhole(*writer, tensor);
  }
  EXPECT_THAT(status, HasCode(Code::kInvalidArgument));
  EXPECT_THAT(status.message(), HasSubstr("memory budget"));
}

TEST_F(BlobWriterErrorsTest, RefusesMoreWritersAtATimeThanTheBudgetHasBuffersFor) {
  engine_ = SmallEngine(failing_, 2);
  const auto first = Writer();
  ASSERT_TRUE(AddWhole(*first, ByteTensor("a", 100000)).ok());
  const Status refused = AddWhole(*Writer(), ByteTensor("b", 100000));
  EXPECT_THAT(refused, HasCode(Code::kInvalidArgument));
  EXPECT_THAT(refused.message(), HasSubstr("memory budget"));
  ASSERT_TRUE(first->Finish().ok());
  EXPECT_TRUE(AddWhole(*Writer(), ByteTensor("b", 100000)).ok());
}

TEST_F(BlobWriterErrorsTest, FirstErrorSticks) {
  const auto writer = Writer();
  const Status first = writer->AddObject({.name = "", .media_type = "t"}, {});
  EXPECT_EQ(AddWhole(*writer, ByteTensor("w", 10)), first);
  EXPECT_EQ(writer->AddEmpty(ByteTensor("e", 0)), first);
  EXPECT_EQ(writer->Finish().status(), first);
}

TEST_F(BlobWriterErrorsTest, UnfinishedWriterRemovesItsFiles) {
  auto writer = Writer({.size_max_bytes = kMiB});
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(AddWhole(*writer, ByteTensor(std::to_string(i), bytes_.size())).ok());
  }
  EXPECT_THAT(FileNames(*failing_, kDir), SizeIs(2));
  writer.reset();
  EXPECT_THAT(FileNames(*failing_, kDir), IsEmpty());
}

TEST_F(BlobWriterErrorsTest, FinishedWriterLeavesItsFiles) {
  auto writer = Writer();
  ASSERT_TRUE(AddWhole(*writer, ByteTensor("w", 100)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  writer.reset();
  EXPECT_THAT(FileNames(*failing_, kDir), SizeIs(1));
}

TEST_F(BlobWriterErrorsTest, AbandonAfterFinishRemovesTheFiles) {
  const auto writer = Writer();
  ASSERT_TRUE(AddWhole(*writer, ByteTensor("w", 100)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_TRUE(writer->Abandon().ok());
  EXPECT_THAT(FileNames(*failing_, kDir), IsEmpty());
  EXPECT_TRUE(writer->Abandon().ok());
}

// R-CMT-15: a blob that a marker pins, or that a commit under way may pin; without a marker that
// can be read, all of them.
TEST_F(BlobWriterErrorsTest, WhatACommitMayNeedStaysAfterFinish) {
  const AttemptId attempt = AttemptId::Random().value();
  const AttemptId other = AttemptId::Random().value();
  const MarkerBytes of_void = EncodeMarker({.kind = MarkerKind::kVoid, .attempt = attempt});
  const MiniContainer committed = BuildInSeries(1, 0, 1);
  struct Case {
    std::map<std::string, Bytes> files;
    AttemptId attempt;
    bool stays;
  };
  const std::vector<Case> cases = {
      {{{"COMMIT", {}}}, attempt, true},
      {{{"COMMIT", Bytes(of_void.begin(), of_void.end())}}, attempt, false},
      {committed.files, {}, false},
      {{{"COMMIT", committed.files.at("COMMIT")}}, {}, true},
      {{{IndexName(attempt), {}}}, attempt, true},
      {{{UnpublishedMarkerName(attempt), {}}}, {}, true},
      {{{IndexName(other), {}}}, attempt, false},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [files, own, stays] = cases[i];
    const auto writer = Writer({.attempt = own});
    ASSERT_TRUE(AddWhole(*writer, ByteTensor("w", 100)).ok());
    ASSERT_TRUE(writer->Finish().ok());
    const auto directory = failing_->OpenDirectory(kDir).value();
    for (const auto& [name, content] : files) {
      ASSERT_TRUE(WriteFileDurably(*directory, name, content).ok());
    }
    EXPECT_EQ(writer->Abandon().place().rule, stays ? "R-CMT-15" : "") << i;
    EXPECT_THAT(FileNames(*failing_, kDir), SizeIs(files.size() + (stays ? 1 : 0))) << i;
    for (const std::string& name : FileNames(*failing_, kDir)) {
      ASSERT_TRUE(directory->Remove(name).ok());
    }
  }
}

TEST_F(BlobWriterErrorsTest, ACommittedBlobStays) {
  const auto writer = Writer();
  ASSERT_TRUE(AddWhole(*writer, ByteTensor("w", 100)).ok());
  ASSERT_TRUE(Commit(*failing_, kDir, {}, writer->Finish().value()).ok());
  EXPECT_THAT(writer->Abandon(), FailsRule(Code::kInvalidArgument, "R-CMT-15"));
  EXPECT_THAT(FileNames(*failing_, kDir), SizeIs(3));
}

TEST_F(BlobWriterErrorsTest, OfTwoFilesThatStayTheFirstIsReported) {
  const auto writer = Writer();
  for (const char* const name : {"a", "b"}) {
    TensorSpec tensor = ByteTensor(name, 100);
    tensor.group = name;
    ASSERT_TRUE(AddWhole(*writer, tensor).ok());
  }
  failing_->Fail({.op = StorageOp::kRemove, .nth = 1, .error = Status(Code::kIo, "first")});
  failing_->Fail({.op = StorageOp::kRemove, .nth = 2, .error = Status(Code::kIo, "second")});
  EXPECT_THAT(writer->Abandon().message(), HasSubstr("first"));
  EXPECT_EQ(failing_->fault_count(), 2U);
}

TEST_F(BlobWriterErrorsTest, RefusesUseAfterFinish) {
  const auto writer = Writer();
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_THAT(AddWhole(*writer, ByteTensor("w", 10)), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(writer->AddObject({.name = "o", .media_type = "t"}, {}),
              HasCode(Code::kInvalidArgument));
  EXPECT_THAT(writer->Finish().status(), HasCode(Code::kInvalidArgument));
}

struct StorageFailure {
  std::string what;
  StorageFault fault;
};

class BlobWriterFaultTest : public BlobWriterErrorsTest,
                            public ::testing::WithParamInterface<StorageFailure> {};

TEST_P(BlobWriterFaultTest, IsReportedAndLeavesNoFile) {
  failing_->Fail(GetParam().fault);
  auto writer = Writer({.size_max_bytes = kMiB});
  Status status;
  for (int i = 0; i < 8 && status.ok(); ++i) {
    status = AddWhole(*writer, ByteTensor(std::to_string(i), bytes_.size()));
  }
  const Status finished = writer->Finish().status();
  if (status.ok()) status = finished;
  EXPECT_THAT(status, HasCode(GetParam().fault.error.code()));
  EXPECT_EQ(status.message(), GetParam().fault.error.message());
  EXPECT_EQ(finished, status) << "the first error sticks";
  writer.reset();
  EXPECT_THAT(FileNames(*failing_, kDir), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Operations, BlobWriterFaultTest,
    ::testing::Values(
        StorageFailure{"create", {.op = StorageOp::kCreate}},
        StorageFailure{"create_second", {.op = StorageOp::kCreate, .nth = 2}},
        StorageFailure{"write", {.op = StorageOp::kWrite, .nth = 3}},
        StorageFailure{"full",
                       {.op = StorageOp::kWrite, .nth = 40, .error = {Code::kNoSpace, "full"}}},
        StorageFailure{"last_write_of_first_blob", {.op = StorageOp::kWrite, .nth = 64}},
        StorageFailure{"sync", {.op = StorageOp::kSyncFile}},
        StorageFailure{"sync_second", {.op = StorageOp::kSyncFile, .nth = 2}},
        StorageFailure{"close", {.op = StorageOp::kClose}},
        StorageFailure{"close_done_all_the_same", {.op = StorageOp::kClose, .takes_effect = true}},
        StorageFailure{"directory_sync", {.op = StorageOp::kSyncDirectory}}),
    [](const auto& test) { return test.param.what; });

}  // namespace
}  // namespace sealpoint::testing
