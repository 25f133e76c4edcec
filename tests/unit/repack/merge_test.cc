// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <complex>
#include <limits>

#include "tests/unit/repack/repack_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Mode = MergeOptions::Mode;
using Accumulate = MergeOptions::Accumulate;
using Objects = MergeOptions::Objects;

class MergeTest : public RepackTest {
 protected:
  // One tensor in any number of blobs.
  MiniTensor Tensor(const std::string& name, DType dtype, const Bytes& bytes, int cuts = 1) const {
    const std::uint64_t count = bytes.size() / DTypeSizeBytes(dtype);
    std::vector<Region> regions;
    std::vector<int> blobs;
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(cuts); ++i) {
      const std::uint64_t begin = count * i / static_cast<std::uint64_t>(cuts);
      const std::uint64_t end = count * (i + 1) / static_cast<std::uint64_t>(cuts);
      regions.push_back(Slice(begin, end));
      blobs.push_back(static_cast<int>(i));
    }
    return CutTensor(name, dtype, {count}, bytes, regions, blobs);
  }
  // Stores "0", "1", ….
  void Store(const std::vector<MiniTensor>& tensors, std::vector<MiniObject> objects = {}) {
    const auto number = static_cast<std::uint8_t>(sources_.size());
    MiniSpec spec{.attempt = MiniSpec::MakeId(static_cast<std::uint8_t>(0xa0 + number))};
    spec.tensors = tensors;
    spec.objects = std::move(objects);
    sources_.push_back(std::to_string(number));
    StoreFiles(*storage_, sources_.back(), BuildMini(spec).files);
  }
  Result<RepackReport> Merge(MergeOptions options = {}, const std::string& to = "to") const {
    options.repack = Small(options.repack);
    return MergeCheckpoints(sources_, to, options);
  }
  template <typename T>
  std::vector<T> Load(const std::string& tensor, const std::string& path = "to") const {
    const Bytes bytes = LoadWhole(*Open(path), tensor);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  std::vector<std::string> sources_;
};

// More than the memory of a thread, in three layouts. The numbers are such that each order of the
// operations, and each accumulator, gives another sum.
TEST_F(MergeTest, SumsUpInTheChosenDType) {
  constexpr std::size_t kCount = 300000;
  std::vector<std::vector<float>> values(3, std::vector<float>(kCount));
  for (std::size_t i = 0; i < kCount; ++i) {
    values[0][i] = 1.0F + static_cast<float>(i) * 1e-6F;
    values[1][i] = static_cast<float>(i) / 3.0F;
    values[2][i] = -0.7F * static_cast<float>(i);
  }
  values[0][5] = values[1][5] = values[2][5] = -0.0F;
  for (int i = 0; i < 3; ++i) {
    const auto& own = values[static_cast<std::size_t>(i)];
    Store({Tensor("f32", DType::kF32, BytesOf(own), 3 - i),
           Tensor("f64", DType::kF64, BytesOf(std::vector<double>(own.begin(), own.end())))});
  }
  const std::vector<double> weights = {0.5, 0.3, 0.2};
  for (const Accumulate accumulate : {Accumulate::kF32, Accumulate::kF64}) {
    const bool is_double = accumulate == Accumulate::kF64;
    const std::string to = is_double ? "double" : "float";
    const auto merged = Merge({.weights = weights, .accumulate = accumulate}, to);
    ASSERT_TRUE(merged.ok()) << merged.error().ToString();
    EXPECT_EQ(FindDamage(storage_, to), "");
    const auto floats = Load<float>("f32", to);
    const auto doubles = Load<double>("f64", to);
    ASSERT_EQ(floats.size(), kCount);
    std::size_t differ = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      double sum = weights[0] * static_cast<double>(values[0][i]);
      volatile float small = static_cast<float>(weights[0]) * values[0][i];
      for (std::size_t k = 1; k < 3; ++k) {
        sum += weights[k] * static_cast<double>(values[k][i]);
        const volatile float product = static_cast<float>(weights[k]) * values[k][i];
        small = small + product;
      }
      const float expected = is_double ? static_cast<float>(sum) : small;
      ASSERT_EQ(floats[i], expected) << i;
      ASSERT_EQ(doubles[i], sum) << i;
      differ += static_cast<float>(sum) != small ? 1 : 0;
    }
    EXPECT_GT(differ, kCount / 10);
    EXPECT_TRUE(std::signbit(floats[5])) << "a sum that begins with 0 loses it";
  }
  const auto merged = Open("float");
  EXPECT_EQ(merged->step(), 7u);
  EXPECT_EQ(merged->sequence(), 1u);
  const std::string parents = Open("0")->attempt().ToHex() + "," + Open("1")->attempt().ToHex() +
                              "," + Open("2")->attempt().ToHex();
  EXPECT_THAT(merged->provenance(), Contains(Pair("repack.from", parents)));
  EXPECT_THAT(merged->provenance(),
              Contains(Pair("repack.how", "average weights=0.5,0.3,0.2 accumulate=f32")));
}

TEST_F(MergeTest, RoundsToTheDTypeOfTheTensor) {
  const std::vector<std::complex<float>> complex = {{1, 2}, {3, -4}};
  for (const std::uint8_t last : {std::uint8_t{0}, std::uint8_t{1}}) {
    // bf16 1 and 1 + 2^-7: the mean is a tie, which goes to the even one; f16 1 and the next.
    Store({Tensor("bf16", DType::kBf16,
                  BytesOf<std::uint16_t>({static_cast<std::uint16_t>(0x3f80 + last), 0x7f80})),
           Tensor("c64", DType::kComplex64, BytesOf(complex)),
           Tensor("f16", DType::kF16,
                  BytesOf<std::uint16_t>({static_cast<std::uint16_t>(0x3c01 + last)})),
           Tensor("f8", DType::kF8E4M3Fn,
                  BytesOf<std::uint8_t>({static_cast<std::uint8_t>(0x38 + last), 0x7e}))});
  }
  ASSERT_TRUE(Merge().ok());
  EXPECT_THAT(Load<std::uint16_t>("bf16"), ElementsAre(0x3f80, 0x7f80));
  EXPECT_THAT(Load<std::uint16_t>("f16"), ElementsAre(0x3c02));
  EXPECT_THAT(Load<std::uint8_t>("f8"), ElementsAre(0x38, 0x7e));
  EXPECT_EQ(Load<std::complex<float>>("c64"), complex);
  // Weights need not make 1. What f8_e4m3fn has no value for becomes its NaN.
  ASSERT_TRUE(Merge({.weights = {1, 1}}, "sum").ok());
  EXPECT_THAT(Load<std::uint8_t>("f8", "sum"), ElementsAre(0x40, 0x7f));
  EXPECT_EQ(Load<std::complex<float>>("c64", "sum")[1], std::complex<float>(6, -8));
}

// 1 + 2^-11 + 2^-30 is nearer to the greater neighbour in f16, and a tie once it is rounded to f32.
TEST_F(MergeTest, RoundsBelowF32ByWayOfF32) {
  const Bytes one = BytesOf<std::uint16_t>({0x3c00, 0});
  for (int i = 0; i < 2; ++i) {
    Store({Tensor("c32", DType::kComplex32, one), Tensor("f16", DType::kF16, one)});
  }
  const double weight = std::ldexp(1.0, -11) + std::ldexp(1.0, -30);
  ASSERT_TRUE(Merge({.weights = {1, weight}, .accumulate = Accumulate::kF64}).ok());
  EXPECT_EQ(Load<std::uint16_t>("f16")[0], 0x3c00);
  EXPECT_EQ(Load<std::uint16_t>("c32")[0], 0x3c00);
}

TEST_F(MergeTest, RefusesWhatDiffersAndIsNotAveraged) {
  const Bytes one = BytesOf<std::int32_t>({1, 2, 3});
  const Bytes two = BytesOf<std::int32_t>({1, 2, 4});
  struct Row {
    std::vector<MiniTensor> first, second;
    std::vector<MiniObject> first_objects{}, second_objects{};
    std::string name{};  // of what is refused
    bool is_fine_with_first = false;
  };
  const MiniTensor w = Tensor("w", DType::kF32, one);
  const std::vector<Row> rows = {
      {{Tensor("n", DType::kInt32, one), w}, {Tensor("n", DType::kInt32, two), w}, {}, {}, "n"},
      {{Tensor("b", DType::kBool, one), w}, {Tensor("b", DType::kBool, two), w}, {}, {}, "b"},
      {{Tensor("s", DType::kF8E8M0Fnu, one)}, {Tensor("s", DType::kF8E8M0Fnu, two)}, {}, {}, "s"},
      {{w}, {Tensor("w", DType::kInt32, one)}, {}, {}, "w"},
      {{w}, {Tensor("w", DType::kF32, BytesOf<std::int32_t>({1, 2}))}, {}, {}, "w"},
      {{Tensor("v", DType::kF32, one), w}, {w}, {}, {}, "v"},
      {{w}, {w, Tensor("x", DType::kF32, one)}, {}, {}, "x"},
      {{w}, {w}, {{"o", one}}, {{"o", two}}, "o", true},
      {{w}, {w}, {{"o", one, "a/b"}}, {{"o", one, "a/c"}}, "o", true},
      {{w}, {w}, {}, {{"o", two}}, "o", true},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    storage_ = MemoryStorage();
    sources_.clear();
    Store(rows[i].first, rows[i].first_objects);
    Store(rows[i].second, rows[i].second_objects);
    const auto merged = Merge();
    ASSERT_THAT(merged.status(), HasCode(Code::kMismatch)) << i;
    const Place& place = merged.error().place();
    EXPECT_EQ(place.tensor + place.object, rows[i].name) << merged.error().ToString();
    EXPECT_EQ(FileNames(*storage_, "to"), std::vector<std::string>()) << i;
    const auto with_first = Merge({.objects = Objects::kFirst});
    EXPECT_EQ(with_first.ok(), rows[i].is_fine_with_first) << i;
    if (!with_first.ok()) continue;
    const bool has_object = !rows[i].first_objects.empty();
    EXPECT_EQ(Open("to")->object_count(), has_object ? 1u : 0u);
    if (has_object) EXPECT_EQ(Open("to")->ReadObject("o").value(), one);
  }
}

TEST_F(MergeTest, UnitesSetsOfTensors) {
  const Bytes shared = NoiseBytes(1, 700000);
  Bytes other = shared;
  Store({Tensor("expert.0", DType::kF32, NoiseBytes(2, 400)),
         Tensor("shared", DType::kBf16, shared, 3)},
        {{"a", NoiseBytes(5, 10)}, {"same", NoiseBytes(6, 10)}});
  Store({Tensor("expert.1", DType::kF32, NoiseBytes(3, 400)),
         Tensor("shared", DType::kBf16, shared, 2)},
        {{"b", NoiseBytes(7, 10)}, {"same", NoiseBytes(6, 10)}});
  const auto merged = Merge({.mode = Mode::kUnion});
  ASSERT_TRUE(merged.ok()) << merged.error().ToString();
  EXPECT_EQ(FindDamage(storage_, "to"), "");
  auto expected = ContentOf(*Open("0"));
  expected.merge(ContentOf(*Open("1")));
  EXPECT_EQ(ContentOf(*Open("to")), expected);
  EXPECT_TRUE(Merge({.mode = Mode::kUnion}).value().was_committed);
  EXPECT_THAT(Merge({.mode = Mode::kUnion, .weights = {1, 1}}).status(),
              HasCode(Code::kInvalidArgument));
  // In the last byte alone.
  other.back() ^= std::byte{1};
  Store({Tensor("shared", DType::kBf16, other)});
  const auto refused = Merge({.mode = Mode::kUnion}, "other");
  ASSERT_THAT(refused.status(), HasCode(Code::kMismatch));
  EXPECT_EQ(refused.error().place().tensor, "shared");
  EXPECT_EQ(refused.error().place().path, "2");
}

TEST_F(MergeTest, RefusesElementsOfOtherSizes) {
  for (const std::uint32_t size : {4u, 2u}) {
    MiniTensor odd = Tensor("odd", DType::kInt8, Bytes(3));
    odd.dtype = static_cast<DType>(61440);
    odd.element_size = size;
    odd.shards.front().bytes = Bytes(3 * size);
    Store({odd});
  }
  const auto merged = Merge({.mode = Mode::kUnion});
  EXPECT_THAT(merged.status(), HasCode(Code::kMismatch));
  EXPECT_EQ(merged.status().place().path, "1");
  EXPECT_THAT(merged.status().message(), HasSubstr("expected"));
  EXPECT_EQ(FileNames(*storage_, "to"), std::vector<std::string>());
}

TEST_F(MergeTest, RefusesOptionsThatMeanNothing) {
  Store({Tensor("w", DType::kF32, Bytes(4))});
  EXPECT_THAT(Merge({.weights = {1, 1}}).status(), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(Merge({.weights = {std::numeric_limits<double>::infinity()}}).status(),
              HasCode(Code::kInvalidArgument));
  MergeOptions tight{.repack = Small({.threads = 2})};
  --tight.repack.memory_budget_bytes;
  EXPECT_THAT(MergeCheckpoints(sources_, "to", tight).status(), HasCode(Code::kInvalidArgument));
  sources_.clear();
  EXPECT_THAT(Merge().status(), HasCode(Code::kInvalidArgument));
}

}  // namespace
}  // namespace sealpoint::testing
