// SPDX-License-Identifier: Apache-2.0
//
// Manifests that are good by themselves and say something else than the index (R-BLB-07).
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/container/encode_manifest.h"
#include "tests/unit/verify/verify_fixture.h"

namespace sealpoint::testing {
namespace {

using internal::metadata::ManifestObject;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

struct Parts {
  std::vector<ManifestTensor> tensors;
  std::vector<ManifestObject> objects;
};

// Blob 0: tensor "a" in two shards, empty tensor "b", object "o", empty object "p".
Parts GoodParts() {
  Parts parts;
  parts.tensors.push_back({.name = "a",
                           .dtype = DType::kF32,
                           .element_size = 4,
                           .chunk_size = 4096,
                           .shape = {8},
                           .placement = {},
                           .shards = {{.region = Region::Of({{0}, {3}}), .first_record = 0},
                                      {.region = Region::Of({{3}, {5}}), .first_record = 1}}});
  parts.tensors.push_back({.name = "b",
                           .dtype = DType::kF32,
                           .element_size = 4,
                           .chunk_size = 4096,
                           .shape = {0},
                           .placement = {},
                           .shards = {}});
  parts.objects.push_back(
      {.name = "o", .media_type = "x/y", .size = 10, .chunk_size = 4096, .first_record = 2});
  parts.objects.push_back(
      {.name = "p", .media_type = "x/y", .size = 0, .chunk_size = 4096, .first_record = 0});
  return parts;
}

class ManifestViolations : public VerifyFixture {
 protected:
  static MiniSpec Spec() {
    MiniSpec spec;
    spec.tensors.push_back(CutTensor("a", DType::kF32, {8}, NoiseBytes(1, 32),
                                     {Region::Of({{0}, {3}}), Region::Of({{3}, {5}})}));
    spec.tensors.push_back({.name = "b", .dtype = DType::kF32, .shape = {0}});
    spec.objects.push_back({.name = "o", .bytes = NoiseBytes(2, 10), .media_type = "x/y"});
    spec.objects.push_back({.name = "p", .bytes = {}, .media_type = "x/y"});
    return spec;
  }

  VerifyReport CheckWith(const std::function<void(Parts&)>& change, DType dtype = DType::kF32) {
    Parts parts = GoodParts();
    parts.tensors[0].dtype = dtype;
    change(parts);
    MiniSpec spec = Spec();
    spec.tensors[0].dtype = dtype;
    spec.tensors[0].element_size = 4;
    spec.hooks.manifest_bytes = [&](int, Bytes& bytes) {
      bytes = EncodeManifest(parts.tensors, parts.objects);
    };
    Store(spec);
    return Check(VerifyLevel::kStructure);
  }

  void ExpectDisagreement(const std::function<void(Parts&)>& change, const std::string& name,
                          const std::string& words, DType dtype = DType::kF32) {
    const VerifyReport report = CheckWith(change, dtype);
    ASSERT_FALSE(report.violations.empty());
    EXPECT_EQ(report.verdict, Verdict::kCorrupt);
    bool found = false;
    for (const Status& violation : report.violations) {
      EXPECT_EQ(violation.place().rule, "R-BLB-07") << violation.ToString();
      const std::string& item = is_object_ ? violation.place().object : violation.place().tensor;
      found = found || (item == name && violation.message().find(words) != std::string::npos);
    }
    EXPECT_TRUE(found) << report.violations.front().ToString();
  }
  void ExpectObjectDisagreement(const std::function<void(Parts&)>& change, const std::string& name,
                                const std::string& words) {
    is_object_ = true;
    ExpectDisagreement(change, name, words);
  }

 private:
  bool is_object_ = false;  // whether the violation names an object
};

TEST_F(ManifestViolations, NoneWhereAllAgrees) {
  const VerifyReport report = CheckWith([](Parts&) {});
  EXPECT_EQ(report.verdict, Verdict::kCommitted) << report.violations.front().ToString();
}

TEST_F(ManifestViolations, PlaceIsTheManifest) {
  const VerifyReport report =
      CheckWith([](Parts& parts) { parts.tensors[0].dtype = DType::kInt32; });
  ASSERT_EQ(report.violations.size(), 1u);
  EXPECT_THAT(report.violations[0], Violates(Code::kCorrupt, "R-BLB-07", BlobPath(0),
                                             container_.blobs.at(0).sections.manifest));
}

TEST_F(ManifestViolations, DType) {
  ExpectDisagreement([](Parts& parts) { parts.tensors[0].dtype = DType::kInt32; }, "a", "dtypes");
}

// Only a dtype that is not registered has no size of its own.
TEST_F(ManifestViolations, ElementSize) {
  constexpr auto kUnknown = static_cast<DType>(1000);
  EXPECT_EQ(CheckWith([](Parts&) {}, kUnknown).verdict, Verdict::kCommitted);
  ExpectDisagreement([](Parts& parts) { parts.tensors[0].element_size = 8; }, "a", "dtypes",
                     kUnknown);
}

TEST_F(ManifestViolations, Shape) {
  ExpectDisagreement([](Parts& parts) { parts.tensors[0].shape = {9}; }, "a", "[9]");
}

TEST_F(ManifestViolations, ChunkSize) {
  ExpectDisagreement([](Parts& parts) { parts.tensors[0].chunk_size = 8192; }, "a", "chunk sizes");
}

TEST_F(ManifestViolations, Region) {
  ExpectDisagreement(
      [](Parts& parts) {
        parts.tensors[0].shape = {8};
        parts.tensors[0].shards[0].region = Region::Of({{0}, {2}});
      },
      "a", "regions of the shard at record 0");
}

TEST_F(ManifestViolations, RegionsExchanged) {
  ExpectDisagreement(
      [](Parts& parts) {
        std::swap(parts.tensors[0].shards[0].first_record, parts.tensors[0].shards[1].first_record);
      },
      "a", "regions of the shard at record 1");
}

TEST_F(ManifestViolations, TensorOfAnotherName) {
  ExpectDisagreement([](Parts& parts) { parts.tensors[0].name = "z"; }, "z", "not in the index");
  ExpectDisagreement([](Parts& parts) { parts.tensors[0].name = "z"; }, "a", "lacks the shard");
}

TEST_F(ManifestViolations, ObjectOfAnotherName) {
  ExpectObjectDisagreement([](Parts& parts) { parts.objects[0].name = "z"; }, "z",
                           "not in the index");
}

TEST_F(ManifestViolations, ObjectOfAnotherSize) {
  ExpectObjectDisagreement([](Parts& parts) { parts.objects[0].size = 11; }, "o", "object sizes");
}

TEST_F(ManifestViolations, ChunkSizeOfAnObject) {
  ExpectObjectDisagreement([](Parts& parts) { parts.objects[0].chunk_size = 8192; }, "o",
                           "chunk sizes");
}

TEST_F(ManifestViolations, MediaType) {
  ExpectObjectDisagreement([](Parts& parts) { parts.objects[0].media_type = "q/r"; }, "o",
                           "media types");
}

TEST_F(ManifestViolations, ShardOfAnotherTensor) {
  ExpectObjectDisagreement(
      [](Parts& parts) {
        parts.objects[0].first_record = 0;
        parts.tensors[0].shards[0].first_record = 2;
      },
      "o", "no shard of it at record 0");
}

TEST_F(ManifestViolations, EmptyTensorThatNoManifestNames) {
  ExpectDisagreement([](Parts& parts) { parts.tensors.pop_back(); }, "b", "empty tensor");
}

TEST_F(ManifestViolations, EmptyObjectThatNoManifestNames) {
  ExpectObjectDisagreement([](Parts& parts) { parts.objects.pop_back(); }, "p", "empty object");
}

TEST_F(ManifestViolations, EmptyTensorIsNotMissedWhereAManifestIsUnreadable) {
  Store(Spec());
  container_.blob(0)[container_.blobs.at(0).sections.manifest] ^= std::byte{1};
  StoreAgain();
  const VerifyReport report = Check();
  ASSERT_EQ(report.violations.size(), 1u);
  EXPECT_EQ(report.violations[0].place().rule, "R-BLB-06");
}

TEST_F(ManifestViolations, ManifestThatBreaksARuleOfItsOwn) {
  const VerifyReport report =
      CheckWith([](Parts& parts) { parts.tensors[0].shards[1].first_record = 0; });
  ASSERT_EQ(report.violations.size(), 1u);
  EXPECT_EQ(report.violations[0].place().rule, "R-IDX-20");
  EXPECT_GE(report.violations[0].place().offset, container_.blobs.at(0).sections.manifest);
}

}  // namespace
}  // namespace sealpoint::testing
