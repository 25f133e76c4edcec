// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/content.h"
#include "tests/unit/compare/another_checkpoint.h"
#include "tests/unit/compare/compare_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

MiniTensor& Find(MiniSpec& spec, std::string_view name) {
  for (MiniTensor& tensor : spec.tensors) {
    if (tensor.name == name) return tensor;
  }
  std::abort();
}

class CompareTest : public CompareFixture {
 protected:
  // 3000 f32 in three chunks, 2-D of bf16, a scalar, an empty one, one of an unknown dtype.
  static MiniSpec Spec() {
    MiniSpec spec;
    spec.tensors.push_back(WholeTensor("empty", DType::kF32, {0, 2}, {}));
    spec.tensors.push_back(WholeTensor("grid", DType::kBf16, {64, 64}, NoiseBytes(2, 8192)));
    spec.tensors.push_back(WholeTensor("scalar", DType::kF64, {}, BytesOf<double>({0.5})));
    spec.tensors.push_back({.name = "unknown",
                            .dtype = static_cast<DType>(1000),
                            .shape = {3},
                            .element_size = 4,
                            .shards = {{.region = Region::Whole({3}), .bytes = Bytes(12)}}});
    std::vector<float> values(3000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 8 - 100;
    spec.tensors.push_back(WholeTensor("w", DType::kF32, {3000}, BytesOf(values)));
    spec.objects.push_back({.name = "none", .bytes = {}});
    spec.objects.push_back({.name = "rng", .bytes = NoiseBytes(3, 10'000)});
    return spec;
  }
  CompareReport CompareWith(const std::function<void(MiniSpec&)>& change,
                            const CompareOptions& options = {}) {
    MiniSpec spec = Spec();
    change(spec);
    return Compare(*Make(Spec()), *Make(spec), options).value();
  }
};

TEST_F(CompareTest, EqualOnesAreSameWithoutPayload) {
  const CompareReport report = CompareWith([](MiniSpec& spec) {
    spec.attempt = MiniSpec::MakeId(1);
    Find(spec, "w").codec = Codec::kZstd;
    spec.objects[1].codec = Codec::kZstd;
  });
  EXPECT_TRUE(report.is_same());
  EXPECT_EQ(report.equal_tensor_count, 5u);
  EXPECT_EQ(report.equal_object_count, 2u);
  EXPECT_THAT(report.tensors, IsEmpty());
  EXPECT_EQ(report.payload_bytes_read, 0u);
  EXPECT_GT(report.table_bytes_read, 0u);
}

struct Change {
  std::string name;
  ContentChange change;
  std::function<void(MiniSpec&)> make;
  std::uint64_t changed_bytes = 0;  // without reading payload: of whole chunks
};

TEST_F(CompareTest, EachChangeIsNamed) {
  const std::vector<Change> changes = {
      {"w", ContentChange::kRemoved, [](MiniSpec& spec) { spec.tensors.pop_back(); }},
      {"w", ContentChange::kDType, [](MiniSpec& s) { Find(s, "w").dtype = DType::kInt32; }},
      {"unknown", ContentChange::kDType,
       [](MiniSpec& spec) {
         Find(spec, "unknown").element_size = 2;
         Find(spec, "unknown").shards[0].bytes.resize(6);
       }},
      {"empty", ContentChange::kShape, [](MiniSpec& s) { Find(s, "empty").shape = {2, 0}; }},
      {"w", ContentChange::kBytes,
       [](MiniSpec& spec) { Find(spec, "w").shards[0].bytes[5000] ^= std::byte{1}; }, 4096},
      {"w", ContentChange::kBytes,
       [](MiniSpec& spec) { Find(spec, "w").shards[0].bytes.back() ^= std::byte{1}; },
       12000 - 8192},
      {"scalar", ContentChange::kBytes,
       [](MiniSpec& spec) { Find(spec, "scalar").shards[0].bytes[0] ^= std::byte{1}; }, 8},
      {"unknown", ContentChange::kBytes,
       [](MiniSpec& spec) { Find(spec, "unknown").shards[0].bytes[0] ^= std::byte{1}; }, 12},
  };
  for (const Change& one : changes) {
    const CompareReport report = CompareWith(one.make);
    EXPECT_FALSE(report.is_same());
    ASSERT_THAT(report.tensors, SizeIs(1)) << one.name;
    const TensorDifference& difference = report.tensors[0];
    EXPECT_EQ(difference.name, one.name);
    EXPECT_EQ(difference.second_name, one.change == ContentChange::kRemoved ? "" : one.name);
    EXPECT_EQ(difference.change, one.change) << one.name;
    EXPECT_EQ(difference.changed_bytes, one.changed_bytes);
    EXPECT_FALSE(difference.numeric.has_value());
    EXPECT_EQ(report.equal_tensor_count, 4u);
    EXPECT_EQ(report.payload_bytes_read, 0u);
  }
}

TEST_F(CompareTest, WhatOnlyTheSecondHasComesLast) {
  const CompareReport report = CompareWith([](MiniSpec& spec) {
    spec.tensors.push_back(WholeTensor("a", DType::kInt8, {1}, Bytes(1)));
    Find(spec, "w").shards[0].bytes[0] ^= std::byte{1};
  });
  ASSERT_THAT(report.tensors, SizeIs(2));
  EXPECT_EQ(report.tensors[0].name, "w");
  EXPECT_EQ(report.tensors[1].name, "");
  EXPECT_EQ(report.tensors[1].second_name, "a");
  EXPECT_EQ(report.tensors[1].change, ContentChange::kAdded);
}

TEST_F(CompareTest, PlacementIsListedAndNoDifference) {
  const CompareReport report =
      CompareWith([](MiniSpec& spec) { Find(spec, "w").placement = {"shard(dim 0, data)"}; });
  EXPECT_TRUE(report.is_same());
  ASSERT_THAT(report.tensors, SizeIs(1));
  EXPECT_TRUE(report.tensors[0].placement_differs);
  EXPECT_EQ(report.tensors[0].change, ContentChange::kNone);
  EXPECT_EQ(report.equal_tensor_count, 5u);
}

TEST_F(CompareTest, ObjectsAreComparedToo) {
  const auto expect = [&](ContentChange change, const std::function<void(MiniSpec&)>& make) {
    const CompareReport report = CompareWith(make);
    EXPECT_FALSE(report.is_same());
    EXPECT_EQ(report.objects.size(), 1u);
    if (!report.objects.empty()) {
      EXPECT_EQ(report.objects[0], (ObjectDifference{.name = "rng", .change = change}));
    }
  };
  expect(ContentChange::kRemoved, [](MiniSpec& spec) { spec.objects.pop_back(); });
  expect(ContentChange::kMediaType, [](MiniSpec& spec) { spec.objects[1].media_type = "x/y"; });
  expect(ContentChange::kBytes, [](MiniSpec& spec) { spec.objects[1].bytes.pop_back(); });
  expect(ContentChange::kBytes, [](MiniSpec& s) { s.objects[1].bytes[9999] ^= std::byte{1}; });
  expect(ContentChange::kBytes, [](MiniSpec& spec) {
    spec.objects[1].chunk_size = 8192;
    spec.objects[1].bytes[1] ^= std::byte{1};
  });
  const CompareReport cut = CompareWith([](MiniSpec& s) { s.objects[1].chunk_size = 8192; });
  EXPECT_TRUE(cut.is_same());
  EXPECT_EQ(cut.payload_bytes_read, 20'000u);
  MiniSpec fewer = Spec();
  fewer.objects.clear();
  EXPECT_EQ(Compare(*Make(fewer), *Make(Spec()))->objects.at(1).change, ContentChange::kAdded);
}

// Where cuts differ payload is compared, element by element.
TEST_F(CompareTest, PayloadIsComparedWhereCutsDiffer) {
  for (const bool is_changed : {false, true}) {
    const auto recut = [&](MiniSpec& spec) {
      MiniTensor& grid = Find(spec, "grid");
      if (is_changed) grid.shards[0].bytes[2 * (64 * 40 + 7)] ^= std::byte{1};
      grid = CutTensor("grid", DType::kBf16, {64, 64}, grid.shards[0].bytes,
                       {Region::Of({{0, 0}, {64, 16}}), Region::Of({{0, 16}, {64, 48}})});
      Find(spec, "w").chunk_size = 8192;
    };
    std::uint64_t total = 0;
    const CompareReport report = CompareWith(
        recut,
        {.threads = 2, .on_progress = [&](const PhaseEvent& event) { total = event.bytes_total; }});
    EXPECT_EQ(report.is_same(), !is_changed);
    EXPECT_EQ(report.payload_bytes_read, 2u * (8192 + 12000));
    EXPECT_EQ(total, 8192u + 12000u);
    if (is_changed) EXPECT_EQ(report.tensors.at(0).changed_bytes, 2u);
  }
}

// Shards that are alike, beside two that are not.
TEST_F(CompareTest, ShardsThatAreAlikeAreNotRead) {
  const auto make = [&](std::uint64_t cut) {
    return Make(CutTensor("t", DType::kUInt8, {9000}, NoiseBytes(1, 9000),
                          {Region::Of({{0}, {5000}}), Region::Of({{5000}, {cut}}),
                           Region::Of({{5000 + cut}, {4000 - cut}})}));
  };
  const CompareReport report = Compare(*make(1000), *make(1500)).value();
  EXPECT_TRUE(report.is_same());
  EXPECT_EQ(report.payload_bytes_read, 2u * 4000);
}

// Elements of two tensors, and what the numbers say of them.
struct Pair {
  DType dtype;
  Bytes first;
  Bytes second;
  NumericDifference right;
};

TEST_F(CompareTest, NumbersAreThoseOfTheirDefinition) {
  const auto bits = [](std::vector<std::uint16_t> all) { return BytesOf(all); };
  const std::vector<Pair> pairs = {
      {DType::kF32,
       BytesOf<float>({3, 4, 0, 0}),
       BytesOf<float>({3, 1, 4, 0}),
       {4, 2, 4, 5, 1, (9 + 4) / (5 * std::sqrt(26.0)), 0, 0}},
      // Finite on both sides: 1 and 2 alone.
      {DType::kF64,
       BytesOf<double>({1, kNan, kInf, 2, 5}),
       BytesOf<double>({kNan, kNan, -kInf, 3, kInf}),
       {5, 4, 1, 1, 0.5, 1, 1, 1}},
      {DType::kF16, bits({0, 0}), bits({0x3c00, 0}), {2, 1, 1, 1, kInf, kNan, 0, 0}},
      // -0 and 0 are other bytes and the same number.
      {DType::kBf16, bits({0x0000}), bits({0x8000}), {1, 1, 0, 0, 0, kNan, 0, 0}},
      {DType::kComplex64,
       BytesOf<float>({3, 0, 1, 1}),
       BytesOf<float>({0, 4, 1, 1}),
       {2, 1, 4, 5, 5 / std::sqrt(11.0), 2 / std::sqrt(11.0 * 18), 0, 0}},
      {DType::kF4E2M1X2,
       Bytes{std::byte{0x20}},
       Bytes{std::byte{0x22}},
       {1, 1, 1, 1, 1, 1 / std::sqrt(2.0), 0, 0}},
      {DType::kInt8,
       Bytes{std::byte{0x80}},
       Bytes{std::byte{0x7f}},
       {1, 1, 255, 255, 255.0 / 128, -1, 0, 0}},
  };
  for (const Pair& pair : pairs) {
    const Shape shape = {pair.first.size() / DTypeSizeBytes(pair.dtype)};
    const CompareReport report =
        Compare(*Make(WholeTensor("t", pair.dtype, shape, pair.first)),
                *Make(WholeTensor("t", pair.dtype, shape, pair.second)), {.numeric = true})
            .value();
    const std::string name(DTypeName(pair.dtype));
    ASSERT_THAT(report.tensors, SizeIs(1)) << name;
    EXPECT_EQ(report.payload_bytes_read, 2 * pair.first.size());
    NumericDifference found = report.tensors[0].numeric.value();
    EXPECT_EQ(report.tensors[0].changed_bytes, found.changed_count * DTypeSizeBytes(pair.dtype));
    EXPECT_DOUBLE_EQ(found.l2, pair.right.l2) << name;
    EXPECT_DOUBLE_EQ(found.relative_l2, pair.right.relative_l2) << name;
    EXPECT_EQ(std::isnan(found.cosine), std::isnan(pair.right.cosine)) << name;
    if (!std::isnan(found.cosine)) EXPECT_DOUBLE_EQ(found.cosine, pair.right.cosine) << name;
    found.l2 = pair.right.l2;
    found.relative_l2 = pair.right.relative_l2;
    found.cosine = 1;
    NumericDifference right = pair.right;
    right.cosine = 1;
    EXPECT_EQ(found, right) << name;
  }
}

// Chunks whose digests are equal are not read, and count in what is of the whole tensor.
TEST_F(CompareTest, NumbersAreOfTheChunksThatDiffer) {
  const CompareReport report = CompareWith(
      [](MiniSpec& spec) {
        Find(spec, "w").shards[0].bytes[5000] ^= std::byte{1};
        Find(spec, "unknown").shards[0].bytes[5] ^= std::byte{1};
      },
      {.numeric = true});
  ASSERT_THAT(report.tensors, SizeIs(2));
  EXPECT_FALSE(report.tensors[0].numeric.has_value());  // nobody knows its values
  EXPECT_EQ(report.tensors[0].changed_bytes, 4u);
  EXPECT_EQ(report.tensors[1].numeric->read_count, 1024u);
  EXPECT_EQ(report.tensors[1].numeric->changed_count, 1u);
  EXPECT_EQ(report.payload_bytes_read, 2u * (4096 + 12));
}

TEST_F(CompareTest, NamesMayHaveChanged) {
  const auto model = [](std::string_view name) { return "model." + std::string(name); };
  const auto rename = [&](MiniSpec& spec) {
    for (MiniTensor& tensor : spec.tensors) tensor.name = model(tensor.name);
    Find(spec, "model.w").shards[0].bytes[0] ^= std::byte{1};
  };
  const CompareReport report = CompareWith(rename, {.rename = model});
  ASSERT_THAT(report.tensors, SizeIs(1));
  EXPECT_EQ(report.tensors[0].name, "w");
  EXPECT_EQ(report.tensors[0].second_name, "model.w");
  const auto one = Make(Spec());
  const Status error =
      Compare(*one, *one, {.rename = [](std::string_view) { return std::string("w"); }}).status();
  EXPECT_EQ(error.code(), Code::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("two tensors of the first checkpoint are named w"));
  EXPECT_EQ(error.place().tensor, "grid");
  EXPECT_EQ(Compare(*one, *one, {.threads = -1}).status().code(), Code::kInvalidArgument);
}

// A pattern selects by the names of either checkpoint, and no objects.
TEST_F(CompareTest, PatternsSelectTensors) {
  const auto change = [](MiniSpec& spec) {
    Find(spec, "w").shards[0].bytes[0] ^= std::byte{1};
    spec.tensors.push_back(WholeTensor("a", DType::kInt8, {1}, Bytes(1)));
    std::erase_if(spec.tensors, [](const MiniTensor& tensor) { return tensor.name == "scalar"; });
    spec.objects.pop_back();
  };
  const auto names = [&](const std::vector<std::string>& patterns) {
    std::vector<std::string> found;
    const CompareReport report = CompareWith(change, {.patterns = patterns});
    EXPECT_EQ(report.objects.size(), patterns.empty() ? 1u : 0u);
    for (const TensorDifference& one : report.tensors) found.push_back(one.name + one.second_name);
    return found;
  };
  EXPECT_THAT(names({}), ElementsAre("scalar", "ww", "a"));
  EXPECT_THAT(names({"g*", "empty"}), IsEmpty());
  EXPECT_THAT(names({"w"}), ElementsAre("ww"));
  EXPECT_THAT(names({"?", "scalar"}), ElementsAre("scalar", "ww", "a"));
  EXPECT_EQ(CompareWith(change, {.patterns = {"g*"}}).equal_tensor_count, 1u);
  const auto one = Make(Spec());
  EXPECT_EQ(Compare(*one, *one, {.patterns = {"w", "x"}}).status().code(), Code::kNotFound);
  EXPECT_EQ(Compare(*one, *one, {.patterns = {"\\"}}).status().code(), Code::kInvalidArgument);
}

TEST_F(CompareTest, DigestsAloneLeaveOtherCutsUnknown) {
  const auto recut = [](MiniSpec& spec) {
    Find(spec, "w").chunk_size = 8192;
    Find(spec, "grid").shards[0].bytes[0] ^= std::byte{1};
    spec.objects[1].chunk_size = 8192;
  };
  const CompareReport report = CompareWith(recut, {.digests_only = true});
  EXPECT_FALSE(report.is_same());
  EXPECT_EQ(report.payload_bytes_read, 0u);
  ASSERT_THAT(report.tensors, SizeIs(2));
  EXPECT_EQ(report.tensors[0].change, ContentChange::kBytes);
  EXPECT_EQ(report.tensors[1].change, ContentChange::kUnknown);
  ASSERT_THAT(report.objects, SizeIs(1));
  EXPECT_EQ(report.objects[0].change, ContentChange::kUnknown);
  const auto one = Make(Spec());
  EXPECT_EQ(Compare(*one, *one, {.numeric = true, .digests_only = true}).status().code(),
            Code::kInvalidArgument);
}

TEST_F(CompareTest, OnlyOpenedOnesAreCompared) {
  const auto opened = Make(Spec());
  const AnotherCheckpoint another;
  for (const Status& error :
       {Compare(*opened, another).status(), Compare(another, *opened).status()}) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("unsupported class of Checkpoint"));
  }
}

// Damage to what is read is an error that names it; other damage is not noticed.
TEST_F(CompareTest, NothingDamagedOrUnreadableIsCompared) {
  const auto damage = [](int blob, std::size_t record) {
    return [blob, record](MiniContainer& container) {
      container.blob(blob)[container.blobs.at(blob).records.at(record).offset] ^= std::byte{1};
    };
  };
  MiniSpec spec;
  spec.tensors.push_back(WholeTensor("t", DType::kF32, {2000}, NoiseBytes(1, 8000)));
  spec.objects.push_back({.name = "o", .bytes = NoiseBytes(2, 100), .blob = 1});
  const auto payload = Make("payload", spec, damage(0, 1));
  const auto object = Make("object", spec, damage(1, 0));
  const auto good = Make("good", spec);
  EXPECT_TRUE(Compare(*good, *payload)->is_same());
  spec.tensors[0].chunk_size = 8192;
  spec.objects[0].chunk_size = 8192;
  const auto recut = Make("recut", spec);
  EXPECT_THAT(Compare(*recut, *payload).status(), IsBadChunk("t", "payload/"));
  EXPECT_EQ(Compare(*object, *recut).status().place().object, "o");
  EXPECT_EQ(Compare(*recut, *object).status().code(), Code::kCorrupt);
  // By number of the read of tables, or of payload as well, until nothing fails any more.
  for (const bool is_recut : {false, true}) {
    int failures = 0;
    for (int nth = 1;; ++nth) {
      storage_->Heal();
      const auto first = Checkpoint::Open("good", {.storage = storage_}).value();
      const auto second =
          Checkpoint::Open(is_recut ? "recut" : "good", {.storage = storage_}).value();
      storage_->Fail({.op = StorageOp::kRead, .name = ".blob", .nth = nth});
      const std::uint64_t before = storage_->fault_count();
      const Status status = Compare(*first, *second).status();
      if (storage_->fault_count() == before) break;
      ++failures;
      EXPECT_EQ(status.code(), Code::kIo);
      EXPECT_NE(status.place().tensor + status.place().object, "");
    }
    EXPECT_GE(failures, 4);
  }
}

}  // namespace
}  // namespace sealpoint::testing
