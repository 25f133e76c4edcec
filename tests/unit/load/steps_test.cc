// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <random>

#include "tests/unit/load/load_fixture.h"

// Items with steps, against a walk over all elements.

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;
using SliceList = std::vector<sealpoint::Slice>;

constexpr std::uint32_t kStepsElementSize = 4;
const Shape kStepsShape = {23, 9, 40};

// The elements of these positions, row-major.
Bytes Selected(const Bytes& bytes, const SliceList& slices) {
  Bytes expected;
  std::vector<std::uint64_t> at;
  const auto walk = [&](const auto& self, std::size_t d, std::uint64_t element) -> void {
    if (d == slices.size()) {
      const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(element * kStepsElementSize);
      expected.insert(expected.end(), first, first + kStepsElementSize);
      return;
    }
    for (std::uint64_t i = slices[d].start; i < slices[d].stop; i += slices[d].step) {
      self(self, d + 1, element * kStepsShape[d] + i);
    }
  };
  walk(walk, 0, 0);
  return expected;
}

class StepsTest : public LoadFixture {
 protected:
  // In two boxes and a run, of which each has several chunks.
  void OpenParts(Codec codec = Codec::kNone) {
    bytes_ = NoiseBytes(11, std::uint64_t{23} * 9 * 40 * kStepsElementSize);
    const Box left{{0, 0, 0}, {23, 4, 40}};
    const Box right{{0, 4, 0}, {23, 5, 40}};
    MiniSpec spec;
    spec.tensors.push_back(CutTensor("w", DType::kUInt32, kStepsShape, bytes_,
                                     {Region::Of(left), {right, {0, 1500}}, {right, {1500, 4600}}},
                                     {0, 1, 0}));
    spec.tensors.back().codec = codec;
    Open(spec);
  }
  Result<LoadReport> Load(const SliceList& slices, Bytes& out, const LoadContract& contract = {}) {
    ReadRequest request;
    request.AddSlices("w", slices, MutableMemoryView::Host(out));
    return checkpoint_->Load(request, contract);
  }
  std::string ErrorOf(const ReadItem& item, const LoadContract& contract = {}) {
    const auto plan = checkpoint_->Plan({.items = {item}}, contract);
    return plan.ok() ? "" : plan.error().ToString();
  }

  Bytes bytes_;
};

TEST_F(StepsTest, DeliverTheSelectedElements) {
  std::mt19937 numbers(5);  // NOLINT(cert-msc51-cpp): the same cases in each run
  for (const Codec codec : {Codec::kNone, Codec::kZstd}) {
    SetUp();
    memory_ = MemoryStorage();
    storage_ = std::make_shared<ReadingStorage>(memory_);
    OpenParts(codec);
    for (int i = 0; i < 300; ++i) {
      SliceList slices;
      for (const std::uint64_t extent : kStepsShape) {
        const std::uint64_t start = numbers() % extent;
        slices.push_back({start, start + 1 + numbers() % (extent - start), 1 + numbers() % 12});
      }
      const Bytes expected = Selected(bytes_, slices);
      Bytes out(expected.size());
      const auto report = Load(slices, out);
      ASSERT_TRUE(report.ok()) << report.error().ToString();
      ASSERT_EQ(out, expected);
      ASSERT_EQ(report->plan.bytes_requested, expected.size());
    }
  }
}

TEST_F(StepsTest, FillStridedMemory) {
  OpenParts();
  const SliceList slices = {{1, 23, 5}, {2, 9, 3}, {0, 40, 7}};
  Bytes out(std::size_t{5} * 3 * 6 * 2 * kStepsElementSize, std::byte{0x5a});
  ReadRequest request;  // the last dimension first, and a gap behind each element
  request.AddSlices("w", slices, MutableMemoryView::Host(out, {3 * 8, 8, 5 * 3 * 8}));
  ASSERT_TRUE(checkpoint_->Load(request).ok());
  Bytes dense;
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 6; ++k) {
        const auto at = out.begin() + static_cast<std::ptrdiff_t>((k * 15 + i * 3 + j) * 8);
        dense.insert(dense.end(), at, at + kStepsElementSize);
        EXPECT_EQ(*(at + kStepsElementSize), std::byte{0x5a});
      }
    }
  }
  EXPECT_EQ(dense, Selected(bytes_, slices));
}

// Rows of 4 chunks: every third row.
TEST_F(StepsTest, ReadOnlyTheChunksWithSelectedElements) {
  const Shape shape = {9, 4096};
  const Bytes bytes = NoiseBytes(3, std::uint64_t{9} * 4096 * 4);
  MiniSpec spec;
  spec.tensors.push_back(CutTensor("w", DType::kUInt32, shape, bytes, {Region::Whole(shape)}));
  Open(spec);
  Bytes out(std::size_t{3} * 4096 * 4);
  ASSERT_TRUE(Load({{0, 9, 3}, {0, 4096, 1}}, out).ok());
  EXPECT_EQ(storage_->log().reads.size(), 2u + 3);  // tables, and a range per row
  ReadRequest request;
  request.AddSlices("w", {{1, 9, 3}, {100, 4096, 2048}}, MutableMemoryView::PlanOnly());
  const PlanSummary summary = checkpoint_->Plan(request)->Summary();
  EXPECT_EQ(summary.chunks, 6u);
  EXPECT_EQ(summary.bytes_read, 6u * 4096);
  EXPECT_EQ(summary.bytes_requested, 6u * 4);
  EXPECT_THAT(summary.ToString(), HasSubstr("24 B requested, 24.6 kB read (x 1024"));
}

TEST_F(StepsTest, ConvertedElementsAreNamedByTheirPosition) {
  std::vector<float> values(1000, 1.5f);
  values[710] = 1e30f;
  Bytes bytes(4000);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  MiniSpec spec;
  spec.tensors.push_back(CutTensor("w", DType::kF32, {100, 10}, bytes, {Region::Whole({100, 10})}));
  Open(spec);
  std::vector<std::uint16_t> out(std::size_t{50} * 3);
  ReadRequest request;
  request.AddSlices("w", {{1, 100, 2}, {0, 10, 5}}, {});
  request.items.back().convert = Conversion{DType::kF16};
  request.items.back().destination =
      MutableMemoryView::Host(std::span(out).first(100)).WithDType(DType::kF16);
  const auto report = checkpoint_->Load(request);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().ToString(), HasSubstr("element [71, 0] of region [1:100, 0:6]"));
}

TEST_F(StepsTest, AreCheckedBeforeAnythingIsRead) {
  OpenParts();
  const auto item = [](std::vector<std::uint64_t> steps) {
    return ReadItem{
        .tensor = "w", .steps = std::move(steps), .destination = MutableMemoryView::PlanOnly()};
  };
  EXPECT_THAT(ErrorOf(item({1, 0, 1})), HasSubstr("the step of dimension 1 is 0"));
  EXPECT_THAT(ErrorOf(item({2, 2})), HasSubstr("2 steps given, expected 3"));
  EXPECT_EQ(ErrorOf(item({~std::uint64_t{0}, 1, 1})), "");
  ReadItem run = item({1, 1, 2});
  run.region = Region{Box{{0, 0, 0}, {23, 9, 40}}, {3, 50}};
  EXPECT_THAT(ErrorOf(run), HasSubstr("steps need a whole box"));
  LoadContract covers;
  covers.coverage = OnMismatch::kReport;
  EXPECT_THAT(ErrorOf(item({1, 1, 2}), covers), HasSubstr("coverage cannot be checked"));
  Bytes small(12);
  EXPECT_FALSE(Load({{0, 23, 5}, {0, 1, 1}, {0, 1, 1}}, small).ok());
  EXPECT_FALSE(Load({{0, 24, 5}, {0, 1, 1}, {0, 1, 1}}, small).ok());
  EXPECT_TRUE(Load({{5, 5, 2}, {0, 1, 1}, {0, 1, 1}}, small).ok());
  EXPECT_LE(storage_->log().reads.size(), 4u) << "more than the tables of two blobs";
}

}  // namespace
}  // namespace sealpoint::testing
