// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "sealpoint/content.h"
#include "tests/unit/compare/compare_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::SizeIs;

class ContentDigestTest : public CompareFixture {
 protected:
  // More than a block of 64 KiB, a scalar, an empty tensor, two objects.
  static MiniSpec Spec(const std::vector<Region>& cut = {Region::Whole({300, 100})},
                       const std::vector<int>& blobs = {}) {
    MiniSpec spec;
    spec.tensors.push_back(WholeTensor("empty", DType::kBf16, {0}, {}));
    spec.tensors.push_back(
        CutTensor("grid", DType::kF32, {300, 100}, NoiseBytes(1, 120'000), cut, blobs));
    spec.tensors.push_back(WholeTensor("scalar", DType::kF64, {}, NoiseBytes(2, 8)));
    spec.objects.push_back({.name = "large", .bytes = NoiseBytes(3, 70'000)});
    spec.objects.push_back({.name = "none", .bytes = {}});
    return spec;
  }
  ContentDigest Of(const MiniSpec& spec, const ContentOptions& options = {}) {
    return ComputeContentDigest(*Make(spec), options).value();
  }
};

// spec/content-digest.md.
TEST_F(ContentDigestTest, IsThatOfTheText) {
  EXPECT_EQ(Of({}).ToString(), "spc1:06ebc9fc4a767416e24d7fa45ae26d8f");
  MiniSpec tensor;
  tensor.tensors.push_back(WholeTensor("w", DType::kF32, {2}, BytesOf<float>({1, 2})));
  EXPECT_EQ(Of(tensor).ToString(), "spc1:731e8096e04fdb63b93c7ac60d0e3854");
  MiniSpec object;
  const ByteSpan text = AsBytes("abc");
  object.objects.push_back(
      {.name = "rng", .bytes = Bytes(text.begin(), text.end()), .media_type = "text/plain"});
  EXPECT_EQ(Of(object).ToString(), "spc1:1ad62563f04c7e5005eee6ef20a128b6");
}

TEST_F(ContentDigestTest, DependsOnNoLayout) {
  const ContentDigest right = Of(Spec());
  EXPECT_EQ(right.raw_bytes, 190'008u);
  EXPECT_THAT(right.tensors, SizeIs(3));
  EXPECT_EQ(right.tensors[1].name, "grid");
  EXPECT_EQ(right.objects[1].name, "none");
  const Box upper{.offset = {0, 0}, .extent = {150, 100}};
  std::vector<MiniSpec> others = {
      Spec({Region::Of({{0, 0}, {300, 30}}), Region::Of({{0, 30}, {300, 70}})}, {0, 1}),
      Spec({Region{upper, {0, 777}}, Region{upper, {777, 15'000}},
            Region::Of({{150, 0}, {150, 100}})},
           {1, 0, 2}),
  };
  for (const Codec codec : {Codec::kZstd, Codec::kByteSplitZstd}) {
    others.push_back(Spec());
    others.back().tensors[1].codec = codec;
    others.back().tensors[1].chunk_size = 32'768;
  }
  others.push_back(Spec());
  others.back().mesh = {{"data", 2}};
  others.back().tensors[1].placement = {"shard(dim 0, data)"};
  others.back().provenance = {{"who", "me"}};
  others.back().step = 9;
  for (const MiniSpec& other : others) {
    EXPECT_EQ(Of(other), right);
    EXPECT_EQ(Of(other, {.threads = 3}), right);
  }
}

TEST_F(ContentDigestTest, IsAnotherForAllElse) {
  const std::vector<std::function<void(MiniSpec&)>> changes = {
      [](MiniSpec&) {},
      [](MiniSpec& spec) { spec.tensors[1].name = "grie"; },
      [](MiniSpec& spec) { spec.tensors[1].dtype = DType::kInt32; },
      [](MiniSpec& spec) { spec.tensors[0].shape = {0, 0}; },
      [](MiniSpec& spec) { spec.tensors[0].shape = {0, 1}; },
      [](MiniSpec& spec) { spec.tensors[1].shards[0].bytes[0] ^= std::byte{1}; },
      [](MiniSpec& spec) { spec.tensors[1].shards[0].bytes[119'999] ^= std::byte{1}; },
      [](MiniSpec& spec) { spec.tensors[2].shards[0].bytes[0] ^= std::byte{1}; },
      [](MiniSpec& spec) { spec.tensors.pop_back(); },
      [](MiniSpec& spec) { spec.objects[0].bytes[69'999] ^= std::byte{1}; },
      [](MiniSpec& spec) { spec.objects[0].bytes.pop_back(); },
      [](MiniSpec& spec) { spec.objects[0].media_type = "x/y"; },
      [](MiniSpec& spec) { spec.objects[1].name = "nine"; },
      [](MiniSpec& spec) { spec.objects.pop_back(); },
  };
  std::set<std::string> all;
  for (const auto& change : changes) {
    MiniSpec spec = Spec();
    change(spec);
    all.insert(Of(spec).ToString());
  }
  EXPECT_THAT(all, SizeIs(changes.size()));
}

TEST_F(ContentDigestTest, OfSelectedTensorsHasNoObject) {
  std::uint64_t done = 0;
  const ContentDigest some =
      Of(Spec(), {.patterns = {"grid"}, .on_progress = [&](const PhaseEvent& event) {
                    done = event.bytes_done;
                    EXPECT_EQ(event.bytes_total, 120'000u);
                  }});
  EXPECT_EQ(done, 120'000u);
  MiniSpec alone = Spec();
  alone.objects.clear();
  alone.tensors = {alone.tensors[1]};
  EXPECT_EQ(some, Of(alone));
  const auto checkpoint = Make(Spec());
  EXPECT_EQ(ComputeContentDigest(*checkpoint, {.patterns = {"x"}}).status().code(),
            Code::kNotFound);
  EXPECT_EQ(ComputeContentDigest(*checkpoint, {.threads = -1}).status().code(),
            Code::kInvalidArgument);
}

TEST_F(ContentDigestTest, CanBeEndedWhileObjectsAreRead) {
  const auto checkpoint = Make(Spec());
  const auto end_after_tensors = [](const PhaseEvent& event) {
    EXPECT_EQ(event.bytes_total, 190'008u);
    if (event.bytes_done > 120'008) throw std::runtime_error("enough");
  };
  EXPECT_EQ(ComputeContentDigest(*checkpoint, {.on_progress = end_after_tensors}).status().code(),
            Code::kCancelled);
}

TEST_F(ContentDigestTest, IsNotThatOfWhatIsDamagedOrUnreadable) {
  for (const auto& [record, name] : {std::pair(0u, "grid"), std::pair(31u, "")}) {
    const auto bad = Make("bad" + std::to_string(record), Spec(), [&](MiniContainer& container) {
      container.blob(0)[container.blobs.at(0).records.at(record).offset] ^= std::byte{1};
    });
    const Status error = ComputeContentDigest(*bad).status();
    EXPECT_THAT(error, IsBadChunk(name, "bad"));
    EXPECT_EQ(error.place().object, record == 0 ? "" : "large");
  }
  const auto good = Make(Spec());
  int failures = 0;
  for (int nth = 1;; ++nth) {
    storage_->Heal();
    storage_->Fail({.op = StorageOp::kRead, .name = ".blob", .nth = nth});
    const std::uint64_t before = storage_->fault_count();
    const Status status = ComputeContentDigest(*good).status();
    if (storage_->fault_count() == before) break;
    ++failures;
    EXPECT_EQ(status.code(), Code::kIo);
  }
  EXPECT_GE(failures, 3);
}

}  // namespace
}  // namespace sealpoint::testing
