// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/blob_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "sealpoint/digest.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/process/in_child.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/unit/writer/checkpoint_dir.h"

namespace sealpoint::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class BlobWriterTest : public ::testing::Test {
 protected:
  BlobWriterTest() { EXPECT_TRUE(storage_->CreateDirectories(kDir).ok()); }

  std::unique_ptr<BlobWriter> Writer(BlobWriterOptions options = {}) {
    return BlobWriter::Create(*engine_, kDir, std::move(options)).value();
  }
  // Finishes and commits, then opens what was verified to be whole.
  std::unique_ptr<Checkpoint> FinishAndOpen(BlobWriter& writer) {
    summaries_ = writer.Finish().value();
    Commit(*storage_, kDir, {}, summaries_).value();
    EXPECT_EQ(FindDamage(storage_, kDir), "");
    return OpenFrom(storage_, kDir);
  }

  std::shared_ptr<Storage> storage_ = MemoryStorage();
  std::unique_ptr<Engine> engine_ = SmallEngine(storage_);
  std::vector<BlobSummary> summaries_;
};

TEST_F(BlobWriterTest, BytesComeBack) {
  const Bytes bytes = NoiseBytes(1, 300000);
  const auto writer = Writer();
  ASSERT_TRUE(
      writer->Add(ByteTensor("w", bytes.size()), Slice(0, bytes.size()), MemoryView::Host(bytes))
          .ok());
  const auto checkpoint = FinishAndOpen(*writer);
  EXPECT_EQ(LoadWhole(*checkpoint, "w"), bytes);
  ASSERT_THAT(summaries_, SizeIs(1));
  EXPECT_EQ(summaries_[0].raw_bytes(), bytes.size());
  EXPECT_THAT(FileNames(*storage_, kDir), SizeIs(3));
}

TEST_F(BlobWriterTest, SourceMayChangeAfterAdd) {
  Bytes bytes = NoiseBytes(2, 100000);
  const Bytes before = bytes;
  const auto writer = Writer();
  ASSERT_TRUE(
      writer->Add(ByteTensor("w", bytes.size()), Slice(0, bytes.size()), MemoryView::Host(bytes))
          .ok());
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  EXPECT_EQ(LoadWhole(*FinishAndOpen(*writer), "w"), before);
}

TEST_F(BlobWriterTest, EveryDTypeComesBack) {
  const auto writer = Writer();
  std::vector<Bytes> contents;
  for (const DTypeInfo& dtype : RegisteredDTypes()) {
    contents.push_back(NoiseBytes(contents.size(), 21u * dtype.size_bytes));
    const TensorSpec tensor{.name = std::string(dtype.name), .dtype = dtype.dtype, .shape = {3, 7}};
    ASSERT_TRUE(writer->Add(tensor, Region::Whole({3, 7}), MemoryView::Host(contents.back())).ok());
  }
  const auto checkpoint = FinishAndOpen(*writer);
  std::size_t i = 0;
  for (const DTypeInfo& dtype : RegisteredDTypes()) {
    EXPECT_EQ(LoadWhole(*checkpoint, dtype.name), contents[i++]) << dtype.name;
    EXPECT_EQ(checkpoint->FindTensor(dtype.name)->dtype, dtype.dtype);
  }
}

TEST_F(BlobWriterTest, UnregisteredDTypeComesBackWithItsElementSize) {
  const Bytes bytes = NoiseBytes(3, 64);
  const TensorSpec tensor{
      .name = "odd", .dtype = static_cast<DType>(4000), .shape = {4}, .element_size = 16};
  const auto writer = Writer();
  ASSERT_TRUE(writer->Add(tensor, Slice(0, 4), MemoryView::Host(bytes)).ok());
  const auto checkpoint = FinishAndOpen(*writer);
  EXPECT_EQ(LoadWhole(*checkpoint, "odd"), bytes);
  EXPECT_EQ(checkpoint->FindTensor("odd")->element_size, 16u);
}

TEST_F(BlobWriterTest, ScalarAndEmptyTensorsAreDeclared) {
  const Bytes scalar = NoiseBytes(4, 8);
  const auto writer = Writer();
  ASSERT_TRUE(writer
                  ->Add({.name = "scalar", .dtype = DType::kF64}, Region::Whole({}),
                        MemoryView::Host(scalar))
                  .ok());
  ASSERT_TRUE(writer->AddEmpty({.name = "empty", .dtype = DType::kF32, .shape = {5, 0, 3}}).ok());
  const auto checkpoint = FinishAndOpen(*writer);
  EXPECT_EQ(LoadWhole(*checkpoint, "scalar"), scalar);
  EXPECT_EQ(checkpoint->FindTensor("empty")->shape, (Shape{5, 0, 3}));
  EXPECT_THAT(LoadWhole(*checkpoint, "empty"), IsEmpty());
}

TEST_F(BlobWriterTest, OfARegionWithoutElementsNothingIsStored) {
  const auto writer = Writer();
  const TensorSpec full = ByteTensor("full", 8), empty = ByteTensor("empty", 0);
  const Bytes bytes = NoiseBytes(4, 8);
  ASSERT_TRUE(writer->Add(full, Slice(3, 3), MemoryView()).ok());
  ASSERT_TRUE(writer->Add(full, Slice(0, 8), MemoryView::Host(bytes)).ok());
  ASSERT_TRUE(writer->Add(full, Slice(8, 8), MemoryView()).ok());
  ASSERT_TRUE(writer->Add(empty, Slice(0, 0), MemoryView()).ok());
  ASSERT_TRUE(writer->Add(empty, Slice(0, 0), MemoryView()).ok());
  const auto checkpoint = FinishAndOpen(*writer);
  EXPECT_EQ(LoadWhole(*checkpoint, "full"), bytes);
  EXPECT_EQ(checkpoint->Shards("full")->size(), 1u);
  EXPECT_EQ(checkpoint->FindTensor("empty")->shape, (Shape{0}));
}

TEST_F(BlobWriterTest, ObjectsComeBack) {
  const Bytes large = NoiseBytes(5, 5 * kMiB);
  const auto writer = Writer();
  ASSERT_TRUE(
      writer->AddObject({.name = "large", .media_type = "application/octet-stream"}, large).ok());
  ASSERT_TRUE(writer->AddObject({.name = "none", .media_type = "text/plain"}, {}).ok());
  ASSERT_TRUE(writer
                  ->AddObject({.name = "packed", .media_type = "text/plain", .codec = Codec::kZstd},
                              AsBytes(std::string(90000, 'x')))
                  .ok());
  for (int i = 0; i < 500; ++i) {
    const std::string text = "value " + std::to_string(i);
    ASSERT_TRUE(writer
                    ->AddObject({.name = "n" + std::to_string(i), .media_type = "text/plain"},
                                AsBytes(text))
                    .ok());
  }
  const auto checkpoint = FinishAndOpen(*writer);
  EXPECT_EQ(checkpoint->object_count(), 503u);
  EXPECT_EQ(checkpoint->ReadObject("large").value(), large);
  EXPECT_THAT(checkpoint->ReadObject("none").value(), IsEmpty());
  EXPECT_EQ(checkpoint->ReadObject("packed").value(), Bytes(90000, std::byte{'x'}));
  const ByteSpan expected = AsBytes(std::string_view("value 77"));
  EXPECT_EQ(checkpoint->ReadObject("n77").value(), Bytes(expected.begin(), expected.end()));
  EXPECT_EQ(checkpoint->FindObject("none")->media_type, "text/plain");
}

TEST_F(BlobWriterTest, CompressibleChunksShrinkAndNoiseIsStoredRaw) {
  const Bytes zeros(400000, std::byte{0});
  const Bytes noise = NoiseBytes(6, 400000);
  for (const Codec codec : {Codec::kZstd, Codec::kByteSplitZstd}) {
    for (const Bytes* bytes : {&zeros, &noise}) {
      storage_ = MemoryStorage();
      ASSERT_TRUE(storage_->CreateDirectories(kDir).ok());
      engine_ = SmallEngine(storage_);
      TensorSpec tensor{
          .name = "w", .dtype = DType::kF32, .shape = {100000}, .chunk_size_bytes = 64 * kKiB};
      tensor.codec = codec;
      const auto writer = Writer();
      ASSERT_TRUE(writer->Add(tensor, Slice(0, 100000), MemoryView::Host(*bytes)).ok());
      EXPECT_EQ(LoadWhole(*FinishAndOpen(*writer), "w"), *bytes);
      const std::uint64_t size = summaries_[0].file_size_bytes();
      if (bytes == &zeros) {
        EXPECT_LT(size, 20000u);
      } else {
        EXPECT_LT(size, 400000u + 12000u);
        EXPECT_GT(size, 400000u);
      }
    }
  }
}

TEST_F(BlobWriterTest, CodedChunksLargerThanTheBudgetNeedNoSecondPiece) {
  const Bytes zeros(kMiB, std::byte{0});
  engine_ = SmallEngine(storage_, 2);
  TensorSpec tensor{.name = "w", .dtype = DType::kUInt8, .shape = {kMiB}, .chunk_size_bytes = kMiB};
  tensor.codec = Codec::kZstd;
  const auto writer = Writer();
  ASSERT_TRUE(writer->Add(tensor, Slice(0, kMiB), MemoryView::Host(zeros)).ok());
  EXPECT_EQ(LoadWhole(*FinishAndOpen(*writer), "w"), zeros);
}

TEST_F(BlobWriterTest, StridedSourcesAreGathered) {
  // A 6 x 5 matrix of 4-byte elements, saved by columns, backwards, and as the middle of a larger
  // one.
  const Bytes matrix = NoiseBytes(7, 6 * 5 * 4);
  const auto at = [](std::size_t row, std::size_t column) { return (row * 5 + column) * 4; };
  const auto writer = Writer();
  const auto spec = [](std::string name, Shape shape) {
    return TensorSpec{.name = std::move(name), .dtype = DType::kF32, .shape = std::move(shape)};
  };
  ASSERT_TRUE(writer
                  ->Add(spec("transposed", {5, 6}), Region::Whole({5, 6}),
                        MemoryView::Host(matrix, {4, 20}))
                  .ok());
  ASSERT_TRUE(writer
                  ->Add(spec("reversed", {6, 5}), Region::Whole({6, 5}),
                        MemoryView::Host(matrix, {-20, -4}, at(5, 4)))
                  .ok());
  ASSERT_TRUE(writer
                  ->Add(spec("inner", {2, 3}), Region::Whole({2, 3}),
                        MemoryView::Host(matrix, {20, 4}, at(2, 1)))
                  .ok());
  ASSERT_TRUE(
      writer->Add(spec("repeated", {3, 5}), Region::Whole({3, 5}), MemoryView::Host(matrix, {0, 4}))
          .ok());
  const auto checkpoint = FinishAndOpen(*writer);
  const auto element = [](const Bytes& bytes, std::size_t i) {
    return Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(4 * i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(4 * i + 4));
  };
  const Bytes transposed = LoadWhole(*checkpoint, "transposed");
  const Bytes reversed = LoadWhole(*checkpoint, "reversed");
  const Bytes inner = LoadWhole(*checkpoint, "inner");
  const Bytes repeated = LoadWhole(*checkpoint, "repeated");
  for (std::size_t row = 0; row < 6; ++row) {
    for (std::size_t column = 0; column < 5; ++column) {
      EXPECT_EQ(element(transposed, column * 6 + row), element(matrix, row * 5 + column));
      EXPECT_EQ(element(reversed, (5 - row) * 5 + (4 - column)), element(matrix, row * 5 + column));
      if (row < 3) {
        EXPECT_EQ(element(repeated, row * 5 + column), element(matrix, column));
      }
      if (row < 2 && column < 3) {
        EXPECT_EQ(element(inner, row * 3 + column), element(matrix, (row + 2) * 5 + column + 1));
      }
    }
  }
}

// With strides, memory is that of the region's box whatever the run is; also where the strides
// happen to be dense.
TEST_F(BlobWriterTest, RunsOfStridedBoxes) {
  const Shape shape{40, 30};
  const Bytes bytes = NoiseBytes(8, 40 * 30 * 4);
  Bytes padded(40 * 200);
  for (std::size_t row = 0; row < 40; ++row) {
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(row * 120), 120,
                padded.begin() + static_cast<std::ptrdiff_t>(row * 200));
  }
  const Box box{.offset = {0, 0}, .extent = {40, 30}};
  const auto writer = Writer();
  for (const auto& [name, view] :
       {std::pair<std::string, MemoryView>("dense", MemoryView::Host(bytes, {120, 4})),
        std::pair<std::string, MemoryView>("padded", MemoryView::Host(padded, {200, 4}))}) {
    const TensorSpec tensor{.name = name, .dtype = DType::kF32, .shape = shape};
    for (const sealpoint::Run& run :
         {sealpoint::Run{0, 37}, sealpoint::Run{37, 700}, sealpoint::Run{700, 1200}}) {
      ASSERT_TRUE(writer->Add(tensor, {box, run}, view).ok());
    }
  }
  const auto checkpoint = FinishAndOpen(*writer);
  EXPECT_EQ(LoadWhole(*checkpoint, "dense"), bytes);
  EXPECT_EQ(LoadWhole(*checkpoint, "padded"), bytes);
}

TEST_F(BlobWriterTest, RunsOfDenseMemoryBeginAtTheirFirstElement) {
  const Bytes bytes = NoiseBytes(9, 1200);
  const Box box{.offset = {0, 0}, .extent = {40, 30}};
  const TensorSpec tensor{.name = "w", .dtype = DType::kUInt8, .shape = {40, 30}};
  const auto writer = Writer();
  for (const sealpoint::Run& run : {sealpoint::Run{0, 37}, sealpoint::Run{37, 1200}}) {
    ASSERT_TRUE(writer
                    ->Add(tensor, {box, run},
                          MemoryView::Host(std::span(bytes).subspan(run.begin, run.size())))
                    .ok());
  }
  EXPECT_EQ(LoadWhole(*FinishAndOpen(*writer), "w"), bytes);
}

class CappedWriterTest : public BlobWriterTest,
                         public ::testing::WithParamInterface<std::tuple<std::uint64_t, bool>> {};

TEST_P(CappedWriterTest, ShardsAreCutAtChunkBordersAndNoBlobPassesTheCap) {
  const auto [chunk_size, is_strided] = GetParam();
  constexpr std::uint64_t kRows = 500;
  constexpr std::uint64_t kColumns = 4700;
  constexpr std::uint64_t kPitch = kColumns + 13;
  const Bytes memory = NoiseBytes(10, kRows * kPitch);
  Bytes expected;
  for (std::size_t row = 0; row < kRows; ++row) {
    const auto begin = memory.begin() + static_cast<std::ptrdiff_t>(row * kPitch);
    expected.insert(expected.end(), begin, begin + kColumns);
  }
  const TensorSpec tensor{.name = "w",
                          .dtype = DType::kUInt8,
                          .shape = {kRows, kColumns},
                          .chunk_size_bytes = chunk_size};
  engine_ = SmallEngine(storage_, 4, 256 * kKiB);
  const auto writer = Writer({.size_max_bytes = kMiB});
  const auto view = is_strided ? MemoryView::Host(memory, {kPitch, 1}) : MemoryView::Host(expected);
  ASSERT_TRUE(writer->Add(tensor, Region::Whole(tensor.shape), view).ok());
  const auto checkpoint = FinishAndOpen(*writer);
  EXPECT_EQ(LoadWhole(*checkpoint, "w"), expected);
  // 2.35 MB, so three blobs and not one per chunk.
  EXPECT_THAT(summaries_, SizeIs(3));
  for (const BlobSummary& summary : summaries_) EXPECT_LE(summary.file_size_bytes(), kMiB);
  for (const ShardInfo& shard : checkpoint->Shards("w").value()) {
    EXPECT_EQ(shard.region.run.begin % chunk_size, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(ChunksAndLayouts, CappedWriterTest,
                         ::testing::Combine(::testing::Values(4 * kKiB, 64 * kKiB),
                                            ::testing::Bool()));

TEST_F(BlobWriterTest, ManySmallTensorsFillBlobsUpToTheCap) {
  const Bytes bytes = NoiseBytes(11, 20000);
  const auto writer = Writer({.size_max_bytes = kMiB});
  for (int i = 0; i < 300; ++i) {
    TensorSpec tensor = ByteTensor("tensor." + std::to_string(i), bytes.size());
    tensor.placement = {std::string(500, 'p')};
    ASSERT_TRUE(writer->Add(tensor, Slice(0, bytes.size()), MemoryView::Host(bytes)).ok());
  }
  const auto checkpoint = FinishAndOpen(*writer);
  EXPECT_EQ(LoadWhole(*checkpoint, "tensor.299"), bytes);
  EXPECT_LE(summaries_.size(), 8u);
  EXPECT_GE(summaries_.size(), 6u);
  for (const BlobSummary& summary : summaries_) EXPECT_LE(summary.file_size_bytes(), kMiB);
}

TEST_F(BlobWriterTest, GroupsHaveBlobsOfTheirOwn) {
  const Bytes bytes = NoiseBytes(12, 50000);
  const auto writer = Writer();
  for (const std::string name : {"a", "b", "c", "d"}) {
    TensorSpec tensor = ByteTensor(name, bytes.size());
    tensor.group = name < "c" ? "weights" : "optimizer";
    ASSERT_TRUE(writer->Add(tensor, Slice(0, bytes.size()), MemoryView::Host(bytes)).ok());
  }
  const auto checkpoint = FinishAndOpen(*writer);
  const auto blob_of = [&](std::string_view name) {
    return checkpoint->Shards(name).value().at(0).blob;
  };
  EXPECT_THAT(summaries_, SizeIs(2));
  EXPECT_EQ(blob_of("a"), blob_of("b"));
  EXPECT_EQ(blob_of("c"), blob_of("d"));
  EXPECT_NE(blob_of("a"), blob_of("c"));
  EXPECT_EQ(LoadWhole(*checkpoint, "d"), bytes);
}

TEST_F(BlobWriterTest, ShardsBeginWhereTheFormatSays) {
  const Bytes bytes = NoiseBytes(13, 70000);
  const auto writer = Writer();
  const std::vector<std::uint64_t> sizes = {100, 65535, 65536, 3, 70000};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    ASSERT_TRUE(writer
                    ->Add(ByteTensor(std::to_string(i), sizes[i]), Slice(0, sizes[i]),
                          MemoryView::Host(std::span(bytes).first(sizes[i])))
                    .ok());
  }
  static_cast<void>(FinishAndOpen(*writer));
  const std::string name = summaries_[0].blob().ToHex() + ".blob";
  const Bytes file = ReadWholeFile(*storage_, kDir, name);
  EXPECT_EQ(file.size() % 4096, 0u);
  // In order of addition: behind the 128 bytes of the header, then aligned to 64 or 4096.
  std::uint64_t at = 128;
  for (const std::uint64_t size : sizes) {
    const std::uint64_t alignment = size >= 65536 ? 4096 : 64;
    at = (at + alignment - 1) / alignment * alignment;
    EXPECT_EQ(0, std::memcmp(file.data() + at, bytes.data(), size)) << size << " at " << at;
    at += size;
  }
}

TEST_F(BlobWriterTest, NothingAddedMakesNoFile) {
  const auto writer = Writer();
  EXPECT_THAT(writer->Finish().value(), IsEmpty());
  EXPECT_THAT(FileNames(*storage_, kDir), IsEmpty());
}

// Everything but ids: the bytes of header and trailer that hold ids and what covers them.
TEST_F(BlobWriterTest, SameStateGivesSameBytes) {
  const Bytes bytes = NoiseBytes(14, 200000);
  std::vector<Bytes> files;
  std::vector<Bytes> manifests;
  for (int round = 0; round < 2; ++round) {
    const auto writer = Writer();
    TensorSpec tensor = ByteTensor("w", bytes.size());
    tensor.codec = Codec::kZstd;
    ASSERT_TRUE(writer->Add(tensor, Slice(0, bytes.size()), MemoryView::Host(bytes)).ok());
    ASSERT_TRUE(writer
                    ->AddObject({.name = "o", .media_type = "text/plain"},
                                AsBytes(std::string_view("text")))
                    .ok());
    const BlobSummary summary = writer->Finish().value().at(0);
    Bytes file = ReadWholeFile(*storage_, kDir, summary.blob().ToHex() + ".blob");
    const std::size_t payload_end = file.size() - 256;
    files.emplace_back(file.begin() + 128, file.begin() + static_cast<std::ptrdiff_t>(payload_end));
    manifests.emplace_back(summary.manifest().begin(), summary.manifest().end());
  }
  EXPECT_EQ(files[0], files[1]);
  EXPECT_EQ(manifests[0], manifests[1]);
}

TEST_F(BlobWriterTest, ProgressCountsPayload) {
  std::vector<std::uint64_t> told;
  const Bytes bytes = NoiseBytes(15, 5000);
  BlobWriterOptions options;
  options.on_bytes = [&](std::uint64_t done) { told.push_back(done); };
  const auto writer = Writer(std::move(options));
  ASSERT_TRUE(writer->Add(ByteTensor("a", 5000), Slice(0, 5000), MemoryView::Host(bytes)).ok());
  ASSERT_TRUE(
      writer->AddObject({.name = "o", .media_type = "text/plain"}, ByteSpan(bytes).first(10)).ok());
  EXPECT_THAT(told, ElementsAre(5000, 5010));
}

TEST_F(BlobWriterTest, SummariesSurviveSerialization) {
  const Bytes bytes = NoiseBytes(16, 3 * kMiB);
  const auto writer = Writer({.size_max_bytes = kMiB});
  ASSERT_TRUE(
      writer->Add(ByteTensor("w", bytes.size()), Slice(0, bytes.size()), MemoryView::Host(bytes))
          .ok());
  const auto summaries = writer->Finish().value();
  ASSERT_GT(summaries.size(), 2u);
  const Bytes wire = SerializeSummaries(summaries);
  EXPECT_EQ(DeserializeSummaries(wire).value(), summaries);
  EXPECT_THAT(DeserializeSummaries(Bytes(16)).status().message(),
              HasSubstr("blob summary 0 at byte 0 of a list of 16: "));
  for (const std::size_t cut : {std::size_t{3}, std::size_t{200}, wire.size() - 1}) {
    EXPECT_FALSE(DeserializeSummaries(ByteSpan(wire).first(cut)).ok()) << cut;
  }
  Bytes damaged = wire;
  damaged[damaged.size() - 20] ^= std::byte{1};
  EXPECT_THAT(DeserializeSummaries(damaged).status(), HasCode(Code::kCorrupt));
}

TEST_F(BlobWriterTest, SyncsBlobsThenTheDirectory) {
  const auto failing = std::make_shared<FailingStorage>(storage_);
  engine_ = SmallEngine(failing);
  const Bytes bytes = NoiseBytes(17, 100000);
  const auto writer = Writer();
  ASSERT_TRUE(
      writer->Add(ByteTensor("w", bytes.size()), Slice(0, bytes.size()), MemoryView::Host(bytes))
          .ok());
  const std::string blob = writer->Finish().value().at(0).blob().ToHex() + ".blob";
  EXPECT_THAT(failing->changes(), ElementsAre("create " + blob, "write " + blob, "sync " + blob,
                                              "close " + blob, "sync directory"));
}

TEST(BlobWriterForkTest, RefusesUseAfterFork) {
  const TempDir dir;
  const Bytes bytes = NoiseBytes(18, 300000);
  auto engine = SmallEngine(PosixStorage());
  auto writer = BlobWriter::Create(*engine, dir.path()).value();
  const TensorSpec tensor = ByteTensor("w", bytes.size());
  const auto first = MemoryView::Host(std::span(bytes).first(100000));
  const auto rest = MemoryView::Host(std::span(bytes).subspan(100000));
  ASSERT_TRUE(writer->Add(tensor, Slice(0, 100000), first).ok());
  EXPECT_TRUE(HoldsInChild([&] {
    return writer->Add(tensor, Slice(100000, 300000), rest).code() == Code::kInvalidArgument &&
           writer->Finish().status().code() == Code::kInvalidArgument &&
           writer->Abandon().code() == Code::kInvalidArgument &&
           BlobWriter::Create(*engine, dir.path()).status().code() == Code::kInvalidArgument;
  }));
  // Destroyed there, they touch nothing and wait for nothing.
  EXPECT_TRUE(HoldsInChild([&] {
    writer.reset();
    engine.reset();
    return true;
  }));
  // The child's own engine works.
  EXPECT_TRUE(HoldsInChild([&] {
    const auto own = SmallEngine(PosixStorage());
    const auto mine = BlobWriter::Create(*own, dir.path()).value();
    const auto five = MemoryView::Host(std::span(bytes).first(5));
    return mine->Add(ByteTensor("child", 5), Slice(0, 5), five).ok() && mine->Finish().ok();
  }));
  ASSERT_TRUE(writer->Add(tensor, Slice(100000, 300000), rest).ok());
  const auto summaries = writer->Finish().value();
  ASSERT_TRUE(Commit(*PosixStorage(), dir.path(), {}, summaries).ok());
  EXPECT_EQ(LoadWhole(*OpenFrom(PosixStorage(), dir.path()), "w"), bytes);
}

#if !defined(SEALPOINT_TEST_SANITIZED)  // sanitizers take more address space than is left
TEST_F(BlobWriterTest, WithoutMemoryForABufferNoFileIsLeft) {
  const auto add_and_exit = [&] {
    const auto engine = SmallEngine(storage_);
    const auto writer = BlobWriter::Create(*engine, kDir, {}).value();
    const Bytes bytes = NoiseBytes(1, 100);
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    setrlimit(RLIMIT_AS, &none);
    const Status added =
        writer->Add(ByteTensor("w", bytes.size()), Slice(0, bytes.size()), MemoryView::Host(bytes));
    const bool is_empty = storage_->OpenDirectory(kDir).value()->List()->empty();
    std::_Exit(added.ok() ? 1 : is_empty ? 0 : 2);
  };
  EXPECT_EXIT(add_and_exit(), ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace sealpoint::testing
