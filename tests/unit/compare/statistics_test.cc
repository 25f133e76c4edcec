// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "sealpoint/content.h"
#include "tests/unit/compare/compare_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::SizeIs;

// The definition, value by value. `greatest`: that counts as saturated; 0: none does.
ValueStatistics Defined(const std::vector<double>& values, double greatest = 0) {
  ValueStatistics sums{.value_count = values.size()};
  long double total = 0;
  long double squares = 0;
  for (const double value : values) {
    const auto exact = static_cast<long double>(value);
    sums.zero_tail_count = value == 0 ? sums.zero_tail_count + 1 : 0;
    sums.nan_count += std::isnan(value) ? 1u : 0u;
    sums.positive_infinity_count += value == kInf ? 1u : 0u;
    sums.negative_infinity_count += value == -kInf ? 1u : 0u;
    if (!std::isfinite(value)) continue;
    total += exact;
    squares += exact * exact;
    sums.min = std::min(sums.min, value);
    sums.max = std::max(sums.max, value);
    sums.zero_count += value == 0 ? 1u : 0u;
    sums.saturated_count += greatest != 0 && std::abs(value) == greatest ? 1u : 0u;
    if (value != 0) ++sums.exponents[std::max(std::ilogb(value), -1023)];
  }
  const long double mean =
      sums.finite_count() == 0 ? 0 : total / static_cast<long double>(sums.finite_count());
  long double deviations = 0;
  for (const double value : values) {
    const long double deviation = static_cast<long double>(value) - mean;
    if (std::isfinite(value)) deviations += deviation * deviation;
  }
  sums.mean = static_cast<double>(mean);
  sums.squares = static_cast<double>(squares);
  sums.squared_deviations = static_cast<double>(deviations);
  return sums;
}

// Equal, but for the rounding of sums.
void ExpectSame(ValueStatistics found, const ValueStatistics& right, const std::string& what) {
  const double scale = right.l2() / std::sqrt(static_cast<double>(right.value_count));
  EXPECT_NEAR(found.mean, right.mean, 1e-13 * scale) << what;
  EXPECT_NEAR(found.squares, right.squares, 1e-12 * right.squares) << what;
  EXPECT_NEAR(found.squared_deviations, right.squared_deviations, 1e-12 * right.squared_deviations)
      << what;
  found.mean = right.mean;
  found.squares = right.squares;
  found.squared_deviations = right.squared_deviations;
  EXPECT_EQ(found, right) << what;
}

class StatisticsTest : public CompareFixture {
 protected:
  ValueStatistics StatisticsOf(DType dtype, const Bytes& bytes, int threads = 1) {
    const std::uint64_t count = bytes.size() / DTypeSizeBytes(dtype);
    const auto checkpoint = Make(WholeTensor("t", dtype, {count}, bytes));
    return *ComputeStatistics(*checkpoint, {.threads = threads}).value().at(0).values;
  }
};

struct Elements {
  DType dtype;
  std::vector<std::uint64_t> bits;  // of each part: a complex number has two
  std::vector<double> values;
  double greatest = 0;
};

const std::vector<Elements>& EachDType() {
  static const std::vector<Elements> all = {
      {DType::kBool, {0, 1, 2, 0}, {0, 1, 1, 0}},
      {DType::kInt8, {0x80, 0x7f, 0xff, 0}, {-128, 127, -1, 0}},
      {DType::kInt16, {0x8000, 0x7fff, 0, 3}, {-32768, 32767, 0, 3}},
      {DType::kInt32, {0x80000000, 5, 0, 0}, {-0x1p31, 5, 0, 0}},
      {DType::kInt64, {1ull << 62, ~0ull, 0, 0}, {0x1p62, -1, 0, 0}},
      {DType::kUInt8, {0x80, 0xff, 0, 1}, {128, 255, 0, 1}},
      {DType::kUInt16, {0x8000, 0xffff, 0, 0}, {32768, 65535, 0, 0}},
      {DType::kUInt32, {0x80000000, 5, 0, 0}, {0x1p31, 5, 0, 0}},
      {DType::kUInt64, {1ull << 63, 7, 0, 0}, {0x1p63, 7, 0, 0}},
      {DType::kF16,
       {0x3c00, 0x7c00, 0xfc00, 0x7e00, 0x0001, 0xfbff, 0x8000, 0},
       {1, kInf, -kInf, kNan, 0x1p-24, -65504, 0, 0}},
      {DType::kBf16,
       {0x3f80, 0x7f80, 0xff80, 0x7fc1, 0x0001, 0xc000, 0x8000, 0},
       {1, kInf, -kInf, kNan, 0x1p-133, -2, 0, 0}},
      {DType::kF32,
       {0x3f800000, 0x7f800000, 0xff800000, 0x7fc00001, 1, 0xc0400000, 0x80000000, 0},
       {1, kInf, -kInf, kNan, 0x1p-149, -3, 0, 0}},
      {DType::kF64,
       {0x3ff0000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000001, 1,
        0xc008000000000000, 1ull << 63, 0},
       {1, kInf, -kInf, kNan, 0x1p-1074, -3, 0, 0}},
      {DType::kComplex32, {0x3c00, 0xc000, 0x7e00, 0}, {1, -2, kNan, 0}},
      {DType::kComplex64, {0x3f800000, 0xc0000000, 0x7f800000, 0}, {1, -2, kInf, 0}},
      {DType::kComplex128, {0x3ff0000000000000, 0xc000000000000000, 0, 0}, {1, -2, 0, 0}},
      {DType::kF8E4M3Fn, {0x38, 0x7e, 0xfe, 0x7f, 0x01, 0}, {1, 448, -448, kNan, 0x1p-9, 0}, 448},
      {DType::kF8E5M2,
       {0x3c, 0x7b, 0xfb, 0x7c, 0xfc, 0x7d, 0x80},
       {1, 57344, -57344, kInf, -kInf, kNan, 0},
       57344},
      {DType::kF8E4M3Fnuz, {0x40, 0x7f, 0xff, 0x80, 0}, {1, 240, -240, kNan, 0}, 240},
      {DType::kF8E5M2Fnuz, {0x40, 0x7f, 0xff, 0x80, 0}, {1, 57344, -57344, kNan, 0}, 57344},
      {DType::kF8E8M0Fnu, {0x7f, 0xfe, 0xff, 0}, {1, 0x1p127, kNan, 0x1p-127}, 0x1p127},
      {DType::kF4E2M1X2, {0x72, 0xf0, 0x08}, {1, 6, 0, -6, 0, 0}, 6},
  };
  return all;
}

std::size_t PartBytes(DType dtype) {
  const bool is_complex =
      dtype == DType::kComplex32 || dtype == DType::kComplex64 || dtype == DType::kComplex128;
  return DTypeSizeBytes(dtype) / (is_complex ? 2 : 1);
}

// Few values are decoded; of many, small ones are counted and floats are summed in blocks.
TEST_F(StatisticsTest, OfEachDTypeAndAnyNumberOfElements) {
  EXPECT_THAT(EachDType(), SizeIs(RegisteredDTypes().size()));
  for (const Elements& row : EachDType()) {
    Bytes once;
    for (const std::uint64_t bits : row.bits) {
      const auto* const bytes = reinterpret_cast<const std::byte*>(&bits);
      once.insert(once.end(), bytes, bytes + PartBytes(row.dtype));
    }
    for (const std::size_t times : {1u, 22'001u}) {
      Bytes bytes;
      std::vector<double> values;
      for (std::size_t i = 0; i < times; ++i) {
        bytes.insert(bytes.end(), once.begin(), once.end());
        values.insert(values.end(), row.values.begin(), row.values.end());
      }
      ExpectSame(StatisticsOf(row.dtype, bytes), Defined(values, row.greatest),
                 std::string(DTypeName(row.dtype)) + " " + std::to_string(times));
    }
  }
}

std::vector<double> Normal(std::size_t count, double mean, double deviation) {
  std::mt19937_64 random(count);
  std::normal_distribution<double> distribution(mean, deviation);
  std::vector<double> values(count);
  for (double& value : values) value = distribution(random);
  return values;
}

// Around the borders of blocks, with what makes a block another one: values that are not finite,
// zeros, subnormals, a mean far from zero.
TEST_F(StatisticsTest, OfFloatsOfAnyCount) {
  for (const std::size_t count : {1u, 4095u, 4096u, 4097u, 3u * 4096u + 5u}) {
    for (int kind = 0; kind < 6; ++kind) {
      std::vector<double> values = Normal(count, kind == 1 ? 1e6 : 0, kind == 2 ? 1e-40 : 1);
      if (kind == 3) values[count / 2] = kNan;
      if (kind == 4) values[count - 1] = -kInf;
      if (kind == 5) std::fill(values.begin() + static_cast<int>(count / 3), values.end(), 0.0);
      const std::vector<float> floats(values.begin(), values.end());
      const std::string what = std::to_string(count) + " " + std::to_string(kind);
      ExpectSame(StatisticsOf(DType::kF64, BytesOf(values)), Defined(values), "f64 " + what);
      ExpectSame(StatisticsOf(DType::kF32, BytesOf(floats)),
                 Defined(std::vector<double>(floats.begin(), floats.end())), "f32 " + what);
    }
  }
}

// Several pieces, several threads; the last values of one piece and all others are zero.
TEST_F(StatisticsTest, OfManyPiecesDependOnNoThreads) {
  std::vector<float> values(5 << 20);  // 20 MiB
  for (std::size_t i = 0; i < 3 << 20; ++i) values[i] = static_cast<float>(i % 1001) - 400;
  const auto checkpoint = Make([&] {
    MiniTensor tensor = WholeTensor("t", DType::kF32, {values.size()}, BytesOf(values));
    tensor.chunk_size = kMiB;
    return tensor;
  }());
  const ValueStatistics one = *ComputeStatistics(*checkpoint).value().at(0).values;
  EXPECT_EQ(one.zero_tail_count, 2u << 20);
  ExpectSame(one, Defined(std::vector<double>(values.begin(), values.end())), "pieces");
  EXPECT_EQ(*ComputeStatistics(*checkpoint, {.threads = 3}).value().at(0).values, one);
}

TEST_F(StatisticsTest, OfSelectedTensorsByName) {
  MiniSpec spec;
  spec.tensors.push_back(WholeTensor("b", DType::kF32, {}, BytesOf<float>({2})));
  spec.tensors.push_back(WholeTensor("a", DType::kF16, {0, 3}, {}));
  spec.tensors.push_back(WholeTensor("c", DType::kInt8, {2}, NoiseBytes(1, 2)));
  spec.tensors.push_back({.name = "d",
                          .dtype = static_cast<DType>(1000),
                          .shape = {1},
                          .element_size = 4,
                          .shards = {{.region = Region::Whole({1}), .bytes = Bytes(4)}}});
  const auto checkpoint = Make(spec);
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  const auto all = ComputeStatistics(*checkpoint, {.on_progress = [&](const PhaseEvent& event) {
                     done = event.bytes_done;
                     total = event.bytes_total;
                   }}).value();
  ASSERT_THAT(all, SizeIs(4));
  EXPECT_EQ(all[0].name, "a");
  EXPECT_EQ(all[0].shape, (Shape{0, 3}));
  EXPECT_EQ(all[0].values, ValueStatistics());
  EXPECT_EQ(all[1].dtype, DType::kF32);
  EXPECT_EQ(all[1].values->mean, 2);
  EXPECT_EQ(all[1].values->l2(), 2);
  EXPECT_EQ(all[1].values->standard_deviation(), 0);
  EXPECT_FALSE(all[3].values.has_value());  // its values are unknown: nothing is read
  EXPECT_EQ(done, 6u);
  EXPECT_EQ(total, 6u);
  EXPECT_EQ(ComputeStatistics(*checkpoint, {.patterns = {"?", "e*"}}).status().code(),
            Code::kNotFound);
  EXPECT_THAT(ComputeStatistics(*checkpoint, {.patterns = {"b", "c"}}).value(), SizeIs(2));
  EXPECT_EQ(ComputeStatistics(*checkpoint, {.threads = -1}).status().code(),
            Code::kInvalidArgument);
}

TEST_F(StatisticsTest, OfTwoTensorsTogether) {
  const std::vector<double> first = {1, -2, 0, 0};
  const std::vector<double> second = {5, kNan, 7, 0};
  ValueStatistics both = Defined(first);
  both.Add(Defined(second));
  ValueStatistics right = Defined({1, -2, 0, 0, 5, kNan, 7, 0});
  right.zero_tail_count = 3;  // the sum
  ExpectSame(both, right, "both");
  both.Add(ValueStatistics());
  ExpectSame(both, right, "and nothing");
}

TEST_F(StatisticsTest, AreNotThoseOfWhatIsDamagedOrUnreadable) {
  MiniSpec spec;
  spec.tensors.push_back(WholeTensor("t", DType::kF32, {2000}, NoiseBytes(1, 8000)));
  const auto bad = Make("bad", spec, [](MiniContainer& container) {
    container.blob(0)[container.blobs.at(0).records[1].offset] ^= std::byte{1};
  });
  EXPECT_THAT(ComputeStatistics(*bad).status(), IsBadChunk("t", "bad/"));
  const auto good = Make(spec);
  storage_->Fail({.op = StorageOp::kRead, .name = ".blob", .nth = 0, .persists = true});
  EXPECT_EQ(ComputeStatistics(*good, {.threads = 2}).status().code(), Code::kIo);
}

}  // namespace
}  // namespace sealpoint::testing
