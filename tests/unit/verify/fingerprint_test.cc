// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "tests/support/container/encode_manifest.h"
#include "tests/unit/verify/verify_fixture.h"

namespace sealpoint::testing {
namespace {

class FingerprintViolations : public VerifyFixture {
 protected:
  // "a" in two blobs, "b" without elements.
  static MiniSpec Spec() {
    MiniSpec spec{.has_fingerprints = true};
    spec.tensors.push_back(CutTensor("a", DType::kF32, {8}, NoiseBytes(1, 32),
                                     {Region::Of({{0}, {3}}), Region::Of({{3}, {5}})}, {0, 1}));
    spec.tensors.push_back({.name = "b", .dtype = DType::kF32, .shape = {0}});
    return spec;
  }

  static void Add(const std::string& tensor, Fingerprint& fingerprint) {
    if (tensor == "a") fingerprint += Fingerprint({1, 0});
  }
};

TEST_F(FingerprintViolations, NoneWhereTheManifestsAddUp) {
  Store(Spec());
  const VerifyReport report = Check();
  EXPECT_EQ(report.verdict, Verdict::kCommitted) << report.violations.front().ToString();
  EXPECT_TRUE(report.notes.empty()) << report.notes.front();
}

TEST_F(FingerprintViolations, AnIndexWithAnotherSumIsCorrupt) {
  MiniSpec spec = Spec();
  spec.hooks.stored_fingerprint = Add;
  Store(spec);
  const VerifyReport report = Check(VerifyLevel::kStructure);
  ASSERT_EQ(report.violations.size(), 1u);
  EXPECT_THAT(report.violations[0],
              Violates(Code::kCorrupt, "R-FPR-02", PathOf(container_.index_name), 0));
  EXPECT_EQ(report.violations[0].place().tensor, "a");
}

TEST_F(FingerprintViolations, ATensorHasNoneIfOneOfItsBlobsHasNone) {
  MiniSpec spec = Spec();
  spec.hooks.blob_header = [](int blob, internal::format::FileHeader& header) {
    if (blob == 1) header.features = {};
  };
  Store(spec);
  EXPECT_EQ(Check().verdict, Verdict::kCommitted);
}

TEST_F(FingerprintViolations, SumsAreOfTensorsWithAllTheirShards) {
  MiniSpec spec = Spec();
  spec.hooks.manifest_bytes = [](int blob, Bytes& bytes) {
    if (blob != 1) return;
    bytes = EncodeManifest({{.name = "other",
                             .dtype = DType::kF32,
                             .element_size = 4,
                             .chunk_size = 4096,
                             .shape = {8},
                             .shards = {{.region = Region::Of({{3}, {5}})}}}},
                           {});
  };
  Store(spec);
  const VerifyReport report = Check(VerifyLevel::kStructure);
  EXPECT_EQ(report.verdict, Verdict::kCorrupt);
  for (const Status& violation : report.violations) EXPECT_EQ(violation.place().rule, "R-BLB-07");
}

TEST_F(FingerprintViolations, TheBitIsInTheIndexIfABlobHasIt) {
  MiniSpec spec = Spec();
  spec.hooks.index_header = [](internal::format::FileHeader& header) { header.features = {}; };
  spec.hooks.marker = [](internal::format::Marker& marker) { marker.features = {}; };
  Store(spec);
  EXPECT_EQ(Check().verdict, Verdict::kUnsupported);  // the index has a field without its bit
}

}  // namespace
}  // namespace sealpoint::testing
