// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <set>

#include "tests/support/container/rule_matchers.h"
#include "tests/support/process/temp_dir.h"
#include "tests/unit/load/load_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kChunk = 4096;

// 64 x 64 elements of 16 bytes: 16 chunks of 4 rows, cut at row 32 into two blobs.
constexpr std::uint64_t kSide = 64;
const Shape kShape = {kSide, kSide};
constexpr std::uint64_t kTensorBytes = kSide * kSide * 16;
const Region kTop = Region::Of({{0, 0}, {32, 64}});
const Region kBottom = Region::Of({{32, 0}, {32, 64}});

MiniSpec TwoHalves(Codec codec = Codec::kNone) {
  MiniSpec spec;
  Bytes bytes = NoiseBytes(1, kTensorBytes);
  if (codec != Codec::kNone) {
    for (std::size_t i = 0; i < bytes.size(); i += 2) bytes[i] = std::byte{0};
  }
  spec.tensors.push_back(
      CutTensor("w", DType::kComplex128, kShape, bytes, {kTop, kBottom}, {0, 1}));
  spec.tensors.back().codec = codec;
  return spec;
}

class ReadTest : public LoadFixture {
 protected:
  Bytes Expected(const Region& region) {
    Bytes all;
    for (const MiniShard& shard : spec_.tensors[0].shards) {
      all.insert(all.end(), shard.bytes.begin(), shard.bytes.end());
    }
    return ExtractRegion(all, kShape, 16, region);
  }
  void OpenHalves(Codec codec = Codec::kNone,
                  const std::function<void(MiniContainer&)>& damage = {}) {
    spec_ = TwoHalves(codec);
    Open(spec_, damage);
  }
  // Flips a bit in the middle of a stored chunk.
  static void Flip(MiniContainer& container, int blob, std::size_t chunk) {
    const auto& record = container.blobs.at(blob).records[chunk];
    container.blob(blob)[record.offset + record.stored_size / 2] ^= std::byte{1};
  }

  MiniSpec spec_;
};

TEST_F(ReadTest, WholeTensorAcrossBlobs) {
  OpenHalves();
  EXPECT_EQ(ReadDense("w", Region::Whole(kShape)).value(), Expected(Region::Whole(kShape)));
}

TEST_F(ReadTest, ReadsNothingButTheChunksTheirGroupsAndTheGroupList) {
  OpenHalves();
  // Row 9 lies in chunk 2 of the first blob.
  const Region row = Region::Of({{9, 0}, {1, 64}});
  EXPECT_EQ(ReadDense("w", row).value(), Expected(row));
  const MiniBlob& blob = container_.blobs.at(0);
  const std::vector<ReadCall> expected = {{blob.name, blob.sections.table, 16},
                                          {blob.name, blob.sections.records, 8 * 64},
                                          {blob.name, blob.records[2].offset, kChunk}};
  EXPECT_EQ(storage_->log().reads, expected);
}

TEST_F(ReadTest, ColumnsAcrossChunksAndBlobs) {
  OpenHalves();
  const Region columns = Region::Of({{30, 5}, {10, 3}});
  EXPECT_EQ(ReadDense("w", columns).value(), Expected(columns));
}

TEST_F(ReadTest, RunOfRowMajorElements) {
  OpenHalves();
  const Region run{{{20, 10}, {30, 20}}, {37, 512}};
  EXPECT_EQ(ReadDense("w", run).value(), Expected(run));
}

TEST_F(ReadTest, ColumnOfWideRowsSkipsTheChunksBetween) {
  // Rows of 4 chunks: a column needs every fourth.
  const Shape shape = {4, 1024};
  const Bytes bytes = NoiseBytes(3, 4 * 4 * kChunk);
  MiniSpec spec;
  spec.tensors.push_back(CutTensor("w", DType::kComplex128, shape, bytes, {Region::Whole(shape)}));
  Open(spec);
  const Region column = Region::Of({{0, 300}, {4, 2}});
  EXPECT_EQ(ReadDense("w", column).value(), ExtractRegion(bytes, shape, 16, column));
  ReadRequest request;
  Bytes out(4 * 2 * 16);
  request.Add("w", column, MutableMemoryView::Host(out));
  EXPECT_EQ(checkpoint_->Plan(request)->Summary().chunks, 4u);
}

// The second chunk has the last element of a row and most of the next row, which lie together in
// the file: in memory together, apart, and together but for the elements of the next row.
TEST_F(ReadTest, ChunkThatBeginsAtTheEndOfARow) {
  constexpr std::int64_t kColumns = kChunk / 16 + 1;
  const Shape shape = {3, kColumns};
  const Bytes bytes = NoiseBytes(5, 3 * kColumns * 16);
  MiniSpec spec;
  spec.tensors.push_back(CutTensor("w", DType::kComplex128, shape, bytes, {Region::Whole(shape)}));
  Open(spec);
  for (const auto& [row, element] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {kColumns * 16, 16}, {kColumns * 16 + 16, 16}, {kColumns * 32 - 16, 32}}) {
    Bytes out(static_cast<std::size_t>(3 * row + 16));
    ReadRequest request;
    request.Add("w", MutableMemoryView::Host(out, {row, element}));
    ASSERT_TRUE(checkpoint_->Load(request).ok());
    Bytes dense;
    for (std::int64_t i = 0; i < 3 * kColumns; ++i) {
      const auto at = out.begin() + i / kColumns * row + i % kColumns * element;
      dense.insert(dense.end(), at, at + 16);
    }
    EXPECT_EQ(dense, bytes) << "strides " << row << ", " << element;
  }
}

TEST_F(ReadTest, RefusesMoreOrFewerStridesThanThereAreDimensions) {
  OpenHalves();
  Bytes out(16);
  for (const std::vector<std::int64_t>& strides : {std::vector<std::int64_t>{16}, {16, 16, 16}}) {
    ReadRequest request;
    request.Add("w", Region::Of({{0, 0}, {1, 1}}), MutableMemoryView::Host(out, strides));
    EXPECT_EQ(checkpoint_->Load(request).status().code(), Code::kInvalidArgument);
  }
}

TEST_F(ReadTest, CodedChunks) {
  for (const Codec codec : {Codec::kZstd, Codec::kByteSplitZstd}) {
    memory_ = MemoryStorage();
    storage_ = std::make_shared<ReadingStorage>(memory_);
    OpenHalves(codec);
    ASSERT_EQ(container_.blobs.at(0).records[0].codec, codec);
    const Region region = Region::Of({{1, 1}, {60, 60}});
    EXPECT_EQ(ReadDense("w", region).value(), Expected(region));
  }
}

TEST_F(ReadTest, DamageInAnUntouchedChunkDoesNotMatter) {
  OpenHalves(Codec::kNone, [](MiniContainer& container) { Flip(container, 0, 3); });
  const Region above = Region::Of({{0, 0}, {12, 64}});
  EXPECT_EQ(ReadDense("w", above).value(), Expected(above));
  const Region below = Region::Of({{16, 0}, {48, 64}});
  EXPECT_EQ(ReadDense("w", below).value(), Expected(below));
}

TEST_F(ReadTest, DamageInATouchedChunkNamesTensorFileAndOffset) {
  for (const bool isolate : {false, true}) {
    memory_ = MemoryStorage();
    storage_ = std::make_shared<ReadingStorage>(memory_);
    OpenHalves(Codec::kNone, [](MiniContainer& container) { Flip(container, 0, 3); });
    const Status error = ReadDense("w", Region::Whole(kShape), {.isolate = isolate}).status();
    EXPECT_THAT(error,
                BreaksRule(Code::kCorrupt, "R-CHK-02", container_.blobs.at(0).records[3].offset));
    EXPECT_EQ(error.place().tensor, "w");
    EXPECT_EQ(error.place().path, BlobPath(0));
  }
}

TEST_F(ReadTest, DamagedStoredBytesAreFoundBeforeDecoding) {
  OpenHalves(Codec::kZstd, [](MiniContainer& container) { Flip(container, 1, 2); });
  const Status error = ReadDense("w", Region::Whole(kShape)).status();
  EXPECT_THAT(error,
              BreaksRule(Code::kCorrupt, "R-CHK-01", container_.blobs.at(1).records[2].offset));
  EXPECT_EQ(error.place().tensor, "w");
  EXPECT_EQ(error.place().path, BlobPath(1));
}

TEST_F(ReadTest, WrongRawDigestOfACodedChunkIsCorrupt) {
  spec_ = TwoHalves(Codec::kZstd);
  spec_.hooks.records = [](int blob, std::vector<internal::format::ChunkRecord>& records) {
    if (blob == 0) records[1].raw_digest.bytes[0] ^= std::byte{1};
  };
  Open(spec_);
  EXPECT_EQ(ReadDense("w", Region::Whole(kShape)).status().place().rule, "R-CHK-02");
}

TEST_F(ReadTest, FrameThatIsNoneCarriesTheRuleOfTheCodec) {
  constexpr std::size_t kFirstChunkAt = internal::format::kHeaderSize;  // a shard below 64 KiB
  spec_ = TwoHalves(Codec::kZstd);
  Bytes area;
  spec_.hooks.chunk_area = [&area](int blob, Bytes& bytes) {
    if (blob != 0) return;
    bytes[kFirstChunkAt] ^= std::byte{1};  // the frame's magic
    area = bytes;
  };
  spec_.hooks.records = [&area](int blob, std::vector<internal::format::ChunkRecord>& records) {
    if (blob != 0) return;
    const ByteSpan stored = ByteSpan(area).subspan(kFirstChunkAt, records[0].stored_size);
    records[0].stored_digest = ComputeDigest(stored);
  };
  Open(spec_);
  const Status error = ReadDense("w", Region::Whole(kShape)).status();
  EXPECT_THAT(error, BreaksRule(Code::kCorrupt, "R-COD-02", kFirstChunkAt));
  EXPECT_EQ(error.place().tensor, "w");
}

TEST_F(ReadTest, SwappedChunksAreCorrupt) {
  OpenHalves(Codec::kNone, [](MiniContainer& container) {
    const auto& records = container.blobs.at(0).records;
    Bytes& bytes = container.blob(0);
    std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(records[0].offset),
                     bytes.begin() + static_cast<std::ptrdiff_t>(records[1].offset),
                     bytes.begin() + static_cast<std::ptrdiff_t>(records[1].offset));
  });
  EXPECT_EQ(ReadDense("w", Region::Whole(kShape)).status().place().rule, "R-CHK-02");
}

TEST_F(ReadTest, IsolatedDestinationOfADamagedChunkIsNotWritten) {
  OpenHalves(Codec::kNone, [](MiniContainer& container) { Flip(container, 0, 0); });
  Bytes out(kTensorBytes / 2, std::byte{0xee});
  ReadRequest request;
  request.Add("w", kTop, MutableMemoryView::Host(out));
  ASSERT_FALSE(checkpoint_->Load(request, {}, {.isolate = true}).ok());
  EXPECT_THAT(std::vector<std::byte>(out.begin(), out.begin() + kChunk), Each(std::byte{0xee}));
}

TEST_F(ReadTest, BlobThatShrankSinceOpenIsIncomplete) {
  OpenHalves();
  Bytes shorter = container_.blob(1);
  shorter.resize(shorter.size() - 4096);
  ReplaceFile(*memory_, "c", container_.blobs.at(1).name, &shorter);
  const Status error = ReadDense("w", Region::Whole(kShape)).status();
  EXPECT_EQ(error.code(), Code::kIncomplete);
  EXPECT_EQ(error.place().path, BlobPath(1));
  EXPECT_EQ(error.place().tensor, "w");
}

// Read in place, and copied.
TEST_F(ReadTest, ErrorOfTheStorageNamesTheTensor) {
  OpenHalves();
  Bytes out(kTensorBytes + kSide * 16);
  constexpr auto kRowBytes = static_cast<std::int64_t>(kSide * 16);
  for (const std::int64_t row_bytes : {kRowBytes, kRowBytes + 16}) {
    ReadRequest request;
    const std::uint64_t size = 63 * static_cast<std::uint64_t>(row_bytes) + kSide * 16;
    request.Add("w", MutableMemoryView::Host(MutableByteSpan(out).first(size), {row_bytes, 16}));
    for (const bool is_gone : {false, true}) {
      StoreFiles(*memory_, "c", container_.files);
      const std::string name = container_.blobs.at(1).name;
      auto failing = std::make_shared<ReadingStorage>(memory_, [&](const ReadCall& call) {
        return !is_gone && call.name == name ? Status(Code::kIo, "disk") : Status();
      });
      const ReadPlan plan = checkpoint_->Plan(request).value();
      const auto other = Checkpoint::Open("c", {.storage = failing}).value();
      if (is_gone) ReplaceFile(*memory_, "c", name, nullptr);
      const Status error = other->Read(plan).status();
      EXPECT_EQ(error.code(), is_gone ? Code::kIncomplete : Code::kIo);
      EXPECT_EQ(error.place().tensor, "w");
      EXPECT_EQ(error.place().path, BlobPath(1));
    }
  }
}

TEST_F(ReadTest, PlanOfAnotherCheckpointIsRefused) {
  OpenHalves();
  Bytes out(kTensorBytes);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Host(out));
  const ReadPlan plan = checkpoint_->Plan(request).value();
  MiniSpec spec = TwoHalves();
  spec.attempt = MiniSpec::MakeId(0x55);
  StoreFiles(*memory_, "other", BuildMini(spec).files);
  const auto other = Checkpoint::Open("other", {.storage = memory_}).value();
  EXPECT_EQ(other->Read(plan).status().code(), Code::kInvalidArgument);
}

TEST_F(ReadTest, ThreadsGiveTheSameBytes) {
  OpenHalves(Codec::kByteSplitZstd);
  Reopen({.memory_budget_bytes = 4 * kMiB});
  const Region region = Region::Of({{0, 1}, {64, 62}});
  for (const int threads : {1, 2, 3, 8}) {
    EXPECT_EQ(ReadDense("w", region, {.threads = threads}).value(), Expected(region));
  }
  EXPECT_EQ(ReadDense("w", region, {.threads = -1}).status().code(), Code::kInvalidArgument);
}

TEST_F(ReadTest, ProgressEndsAtTheBytesRead) {
  OpenHalves();
  std::vector<PhaseEvent> events;
  const ReadOptions options{
      .on_progress = [&](const PhaseEvent& event) { events.push_back(event); }};
  Bytes out(kTensorBytes);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Host(out));
  const LoadReport report = checkpoint_->Load(request, {}, options).value();
  ASSERT_GE(events.size(), 5u);  // two phases and at least one progress
  EXPECT_EQ(events.front().phase, Phase::kPlanRead);
  EXPECT_EQ(events.back().phase, Phase::kRead);
  EXPECT_EQ(events.back().kind, PhaseEvent::Kind::kEnd);
  EXPECT_EQ(events.back().bytes_done, kTensorBytes);
  EXPECT_EQ(events.back().bytes_total, kTensorBytes);
  ASSERT_THAT(report.phases.phases, SizeIs(2));
  EXPECT_EQ(report.phases.phases[1].bytes, kTensorBytes);
  EXPECT_EQ(report.plan.bytes_read, kTensorBytes);
}

TEST_F(ReadTest, RefusesADestinationInMemoryOfNoDevice) {
  OpenHalves();
  Bytes out(kTensorBytes);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Cuda(out, -2, nullptr));
  const Status status = checkpoint_->Load(request).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.place().tensor, "w");
  EXPECT_NE(status.message().find("device is -2"), std::string::npos) << status.ToString();
}

TEST_F(ReadTest, ScalarAndEmptyTensors) {
  MiniSpec spec;
  spec.tensors.push_back(
      CutTensor("a scalar", DType::kF64, {}, NoiseBytes(4, 8), {Region::Whole({})}));
  spec.tensors.push_back({.name = "empty", .dtype = DType::kF32, .shape = {3, 0}});
  Open(spec);
  Bytes scalar(8);
  ReadRequest request;
  request.Add("a scalar", MutableMemoryView::Host(scalar));
  request.Add("empty", MutableMemoryView::Host(nullptr, 0));
  const auto report = checkpoint_->Load(request);
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(scalar, NoiseBytes(4, 8));
  EXPECT_EQ(report->plan.items, 2u);
  EXPECT_EQ(report->plan.chunks, 1u);
}

TEST_F(ReadTest, RegionsWithoutElementsAreNothing) {
  MiniSpec spec = TwoHalves();
  spec.tensors.push_back({.name = "z empty", .dtype = DType::kF32, .shape = {3, 0}});
  Open(spec);
  ReadRequest request;
  request.Add("w", Box{{64, 0}, {0, 64}}, MutableMemoryView::Host(nullptr, 0));
  request.Add("w", Region({{0, 0}, {64, 64}}, {5, 5}), MutableMemoryView::Host(nullptr, 0));
  request.Add("z empty", Box{{0, 0}, {3, 0}}, MutableMemoryView::Host(nullptr, 0));
  const auto report = checkpoint_->Load(request);
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(report->plan.items, 3u);
  EXPECT_EQ(report->plan.chunks, 0u);
  request.Add("w", Box{{65, 0}, {0, 64}}, MutableMemoryView::Host(nullptr, 0));
  EXPECT_THAT(checkpoint_->Load(request).status(), HasCode(Code::kInvalidArgument));
  request.items.back() = {.tensor = "x", .region = Region(Box{{0}, {0}})};
  EXPECT_THAT(checkpoint_->Load(request).status(), HasCode(Code::kMismatch)) << "it is missing";
}

TEST_F(ReadTest, NothingWantedReadsNothing) {
  OpenHalves();
  const auto report = checkpoint_->Load({}, LoadContract::Partial());
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(storage_->log().reads, IsEmpty());
  EXPECT_EQ(report->plan.amplification, 0);
}

TEST(ReadOnDisk, DirectAndBufferedReadsOfLinksGiveTheSameBytes) {
  const TempDir temp;
  const auto storage = PosixStorage();
  const MiniContainer container = BuildMini(TwoHalves(Codec::kZstd));
  StoreFiles(*storage, temp / "real", container.files);
  ASSERT_TRUE(storage->CreateDirectories(temp / "c").ok());
  for (const auto& [name, bytes] : container.files) {
    ASSERT_EQ(::symlink((temp / ("real/" + name)).c_str(), (temp / ("c/" + name)).c_str()), 0);
  }
  std::vector<Bytes> results;
  for (const bool direct : {false, true}) {
    const auto checkpoint =
        Checkpoint::Open(temp / "c", {.storage = storage, .direct_io = direct}).value();
    Bytes out(kTensorBytes);
    ReadRequest request;
    request.Add("w", MutableMemoryView::Host(out));
    const auto report = checkpoint->Load(request, {}, {.threads = 2});
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    results.push_back(out);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NE(results[0], Bytes(kTensorBytes));
}

// Direct reads are for aligned memory, which that of a caller need not be.
TEST(ReadOnDisk, DirectReadsServeMemoryOfAnyAddress) {
  const TempDir temp;
  const auto storage = PosixStorage();
  const MiniSpec spec = TwoHalves();
  StoreFiles(*storage, temp / "c", BuildMini(spec).files);
  const auto checkpoint =
      Checkpoint::Open(temp / "c", {.storage = storage, .direct_io = true}).value();
  Bytes out(kTensorBytes / 2 + 1);
  ReadRequest request;
  request.Add("w", kTop, MutableMemoryView::Host(std::span(out).subspan(1)));
  const auto report = checkpoint->Load(request);
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(Bytes(out.begin() + 1, out.end()), spec.tensors[0].shards[0].bytes);
}

}  // namespace
}  // namespace sealpoint::testing
