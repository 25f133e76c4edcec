// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "tests/support/container/encode_manifest.h"
#include "tests/unit/verify/verify_fixture.h"

namespace sealpoint::testing {
namespace {

class AttributeViolations : public VerifyFixture {
 protected:
  static MiniSpec Spec() {
    MiniSpec spec;
    spec.tensors.push_back({.name = "a", .dtype = DType::kF32, .shape = {0}});
    spec.tensors[0].attributes = Attributes::Make({{"units", "K"}}).value();
    return spec;
  }

  // What is found if the manifest has this set.
  VerifyReport CheckWith(const Attributes& set) {
    MiniSpec spec = Spec();
    spec.hooks.manifest_bytes = [set](int, Bytes& bytes) {
      bytes = EncodeManifest({{.name = "a",
                               .dtype = DType::kF32,
                               .element_size = 4,
                               .chunk_size = 4096,
                               .shape = {0},
                               .attributes = set}},
                             {});
    };
    Store(spec);
    return Check(VerifyLevel::kStructure);
  }
};

TEST_F(AttributeViolations, NoneWhereManifestAndIndexAgree) {
  const VerifyReport report = CheckWith(Spec().tensors[0].attributes);
  EXPECT_EQ(report.verdict, Verdict::kCommitted) << report.violations.front().ToString();
  EXPECT_TRUE(report.notes.empty()) << report.notes.front();
}

TEST_F(AttributeViolations, AnIndexWithOtherAttributesIsCorrupt) {
  for (const Attributes& set : {Attributes(), Attributes::Make({{"units", "C"}}).value()}) {
    const VerifyReport report = CheckWith(set);
    ASSERT_EQ(report.violations.size(), 1u);
    EXPECT_EQ(report.violations[0].place().rule, "R-ATT-06");
    EXPECT_EQ(report.violations[0].place().tensor, "a");
    EXPECT_EQ(report.violations[0].place().path, PathOf(container_.blobs.at(0).name));
  }
}

}  // namespace
}  // namespace sealpoint::testing
