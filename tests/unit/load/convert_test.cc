// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>

#include "tests/unit/load/load_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <typename T>
Bytes BytesOf(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// "w" of shape [3, 700], f32, whose element (r, c) is 1000 r + c: chunks of 1024 elements, which
// begin in the middle of rows.
constexpr std::uint64_t kValueColumns = 700;
const Shape kValueShape = {3, kValueColumns};

std::vector<float> Values() {
  std::vector<float> values;
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < kValueColumns; ++column) {
      values.push_back(static_cast<float>(1000 * row + column));
    }
  }
  return values;
}

class ConvertTest : public LoadFixture {
 protected:
  void OpenValues(const std::vector<float>& values = Values(), Codec codec = Codec::kNone) {
    MiniSpec spec;
    spec.tensors.push_back(
        CutTensor("w", DType::kF32, kValueShape, BytesOf(values), {Region::Whole(kValueShape)}));
    spec.tensors.back().codec = codec;
    Open(spec);
  }
  void OpenScalar(DType dtype, const Bytes& bytes) {
    MiniSpec spec;
    spec.tensors.push_back(CutTensor("s", dtype, {}, bytes, {Region::Whole({})}));
    Open(spec);
  }

  template <typename T>
  Result<LoadReport> Load(const std::string& tensor, std::optional<Region> region,
                          std::vector<T>& out, const Conversion& conversion,
                          std::vector<std::int64_t> strides = {}) {
    auto memory = MutableMemoryView::Host(out, std::move(strides)).WithDType(conversion.to);
    // The first elements of `out`, if it has more than the region.
    if (memory.is_dense() && region) memory.size_bytes = region->element_count() * sizeof(T);
    return LoadItem({.tensor = tensor,
                     .region = std::move(region),
                     .destination = std::move(memory),
                     .convert = conversion});
  }
  Result<LoadReport> LoadItem(ReadItem item, const LoadContract& contract = {}) {
    ReadRequest request;
    request.items.push_back(std::move(item));
    return checkpoint_->Load(request, contract);
  }
};

TEST_F(ConvertTest, BoxIntoStridedMemory) {
  OpenValues();
  // Columns outermost, rows backwards; memory of 8 bytes for elements of 2.
  std::vector<std::int16_t> out(4 * 12, 7);
  ReadRequest request;
  request.Add("w", Box{{0, 320}, {3, 4}},
              MutableMemoryView::Host(out, {-8, 24}, 16));  // rows 2, 1, 0
  request.items.back().convert = Conversion{DType::kInt16};
  ASSERT_TRUE(checkpoint_->Load(request).ok());
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 4; ++column) {
      const std::size_t at = 8 + 12 * column - 4 * row;
      EXPECT_EQ(out[at], 1000 * row + 320 + column);
      EXPECT_EQ(out[at + 1], 7);
    }
  }
}

TEST_F(ConvertTest, MemoryThatIsStridedAsTheStoredElementsLie) {
  OpenValues();
  // Both sides 4 bytes apart, but elements of 2 bytes.
  std::vector<std::int16_t> out(2 * 5, 7);
  ASSERT_TRUE(Load("w", Region::Of({{1, 10}, {1, 5}}), out, {DType::kInt16}, {4, 4}).ok());
  EXPECT_THAT(out, ElementsAre(1010, 7, 1011, 7, 1012, 7, 1013, 7, 1014, 7));
}

TEST_F(ConvertTest, RunOfABox) {
  OpenValues();
  std::vector<std::int64_t> out(5);
  const Region run{{{0, 698}, {3, 2}}, {1, 6}};
  ASSERT_TRUE(Load("w", run, out, {DType::kInt64}).ok());
  EXPECT_THAT(out, ElementsAre(699, 1698, 1699, 2698, 2699));
}

TEST_F(ConvertTest, NothingIsRoundedUnlessAsked) {
  std::vector<float> values = Values();
  values[1500] = 0.1f;
  OpenValues(values);
  std::vector<std::uint16_t> out(3 * kValueColumns);
  const Region part = Region::Of({{2, 50}, {1, 100}});
  const Status error = Load("w", part, out, {DType::kBf16}).error();
  EXPECT_EQ(error.code(), Code::kMismatch);
  ASSERT_TRUE(Load("w", part, out, {DType::kBf16, Rounding::kNearestEven}).ok());
  EXPECT_EQ(out[50], 0x3dcd);
}

TEST_F(ConvertTest, WhatHasNoCounterpartIsNamed) {
  std::vector<float> values = Values();
  values[2 * kValueColumns + 3] = 65536;
  OpenValues(values);
  std::vector<std::uint16_t> out(3 * kValueColumns);
  const Status error = Load("w", {}, out, {DType::kUInt16}).error();
  EXPECT_EQ(error.code(), Code::kMismatch);
  EXPECT_EQ(error.message(),
            "element [2, 3] of region [0:3, 0:700]: the f32 value 65536 has no u16 counterpart");
  EXPECT_EQ(error.place().tensor, "w");
  EXPECT_EQ(error.place().path, BlobPath(0));
  const std::uint64_t first = container_.blobs.at(0).records[0].offset;
  EXPECT_EQ(error.place().offset, first + 4 * (2 * kValueColumns + 3));
}

TEST_F(ConvertTest, ElementsThatAreNotWantedMayHaveNoCounterpart) {
  std::vector<float> values = Values();
  values[4] = -1;
  OpenValues(values);
  std::vector<std::uint16_t> out(4);
  EXPECT_TRUE(Load("w", Region::Of({{0, 0}, {1, 4}}), out, {DType::kUInt16}).ok());
}

TEST_F(ConvertTest, OneElementIsNotReadInPlace) {
  OpenScalar(DType::kF32, BytesOf<float>({3.0f}));
  std::vector<std::int32_t> out(1);
  ASSERT_TRUE(Load("s", {}, out, {DType::kInt32}).ok());
  EXPECT_EQ(out[0], 3);
}

TEST_F(ConvertTest, ToTheStoredDTypeIsACopy) {
  OpenScalar(DType::kBool, {std::byte{5}});
  std::vector<std::uint8_t> out(1);
  ASSERT_TRUE(Load("s", {}, out, {DType::kBool}).ok());
  EXPECT_EQ(out[0], 5);
}

TEST_F(ConvertTest, DTypesThatDoNotConvertAreRefusedBeforeAnyByteIsRead) {
  OpenScalar(DType::kBool, {std::byte{1}});
  std::vector<float> out(1);
  const Status error = Load("s", {}, out, {DType::kF32}).error();
  EXPECT_EQ(error.code(), Code::kMismatch);
  EXPECT_THAT(error.message(), HasSubstr("stored as bool, which does not convert to f32"));
  EXPECT_THAT(storage_->log().reads, IsEmpty());
}

TEST_F(ConvertTest, StridesAreCheckedByTheWantedDType) {
  OpenValues();
  std::vector<double> out(10);
  const Region row = Region::Of({{0, 0}, {1, 5}});
  EXPECT_EQ(Load("w", row, out, {DType::kF64}, {4, 4}).error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(Load("w", row, out, {DType::kF64}, {4, 8}).ok());
  EXPECT_TRUE(Load("w", row, out, {DType::kInt16}, {2, 2}).ok());
}

TEST_F(ConvertTest, BeliefAboutTheStoredDTypeIsCheckedAllTheSame) {
  OpenValues();
  std::vector<double> out(3 * kValueColumns);
  ReadItem item{.tensor = "w",
                .destination = MutableMemoryView::Host(out),
                .dtype = DType::kBf16,
                .convert = Conversion{DType::kF64}};
  EXPECT_EQ(LoadItem(item).error().code(), Code::kMismatch);
  const LoadReport report = LoadItem(item, {.dtype = OnMismatch::kReport}).value();
  EXPECT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(out[kValueColumns + 1], 1001.0);
}

TEST_F(ConvertTest, TwoItemsMayWantAnElementInTwoDTypes) {
  OpenValues();
  std::vector<double> wide(2);
  std::vector<float> same(2);
  std::vector<std::uint16_t> integer(2);
  const Box box{{1, 0}, {1, 2}};
  ReadRequest request;
  request.Add("w", box, MutableMemoryView::Host(wide));
  request.items.back().convert = Conversion{DType::kF64};
  request.Add("w", box, MutableMemoryView::Host(same));
  request.Add("w", box, MutableMemoryView::Host(integer));
  request.items.back().convert = Conversion{DType::kUInt16};
  const LoadReport report = checkpoint_->Load(request).value();
  EXPECT_EQ(report.plan.chunks, 1u);
  EXPECT_THAT(wide, ElementsAre(1000.0, 1001.0));
  EXPECT_THAT(same, ElementsAre(1000.0f, 1001.0f));
  EXPECT_THAT(integer, ElementsAre(1000, 1001));
}

}  // namespace
}  // namespace sealpoint::testing
