// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sealpoint/content.h"
#include "sealpoint/fingerprint.h"
#include "tests/unit/compare/compare_fixture.h"

namespace sealpoint::testing {
namespace {

class FingerprintsTest : public CompareFixture {
 protected:
  // The same elements in other shards and chunks.
  MiniSpec Spec(const Bytes& bytes, bool is_cut, bool has_fingerprints = true) {
    std::vector<Region> regions = {Region::Whole(kShape)};
    if (is_cut) regions = {Region::Of({{0, 0}, {30, 20}}), Region::Of({{0, 20}, {30, 30}})};
    MiniSpec spec{.has_fingerprints = has_fingerprints};
    spec.tensors.push_back(CutTensor("w", DType::kBf16, kShape, bytes, regions));
    if (is_cut) spec.tensors[0].chunk_size = 8192;
    return spec;
  }

  static inline const Shape kShape = {30, 50};
  const Bytes bytes_ = NoiseBytes(1, 3000);
};

TEST_F(FingerprintsTest, AreThoseOfTheElementsHoweverTheyAreStored) {
  const Fingerprint expected =
      ComputeFingerprint(kShape, 2, Region::Whole(kShape), MemoryView::Host(bytes_)).value();
  for (const bool is_cut : {false, true}) {
    const auto checkpoint = Make(Spec(bytes_, is_cut));
    EXPECT_EQ(checkpoint->FindTensor("w")->fingerprint, expected);
    const ContentFingerprint computed = ComputeContentFingerprint(*checkpoint).value();
    EXPECT_EQ(computed.tensors,
              (std::vector<NamedFingerprint>{{.name = "w", .fingerprint = expected}}));
    EXPECT_EQ(computed, StoredContentFingerprint(*checkpoint).value());
    EXPECT_EQ(CheckFingerprints(*checkpoint).value(), std::vector<Status>());
  }
  const auto without = Make(Spec(bytes_, false, false));
  EXPECT_EQ(without->FindTensor("w")->fingerprint, std::nullopt);
  EXPECT_EQ(StoredContentFingerprint(*without).status().code(), Code::kNotFound);
  EXPECT_EQ(CheckFingerprints(*without).value(), std::vector<Status>());
}

TEST_F(FingerprintsTest, ADamagedTensorHasNone) {
  const auto checkpoint = Make("damaged", Spec(bytes_, false), [](MiniContainer& container) {
    container.blob(0)[200] ^= std::byte{1};
  });
  EXPECT_EQ(ComputeContentFingerprint(*checkpoint).status().code(), Code::kCorrupt);
}

TEST_F(FingerprintsTest, AnotherOneThanTheElementsHaveIsCorrupt) {
  MiniSpec spec = Spec(bytes_, true);
  spec.hooks.fingerprint = [](const std::string&, Fingerprint& part) {
    part += Fingerprint({0, 1});
  };
  const auto violations = CheckFingerprints(*Make(spec)).value();
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].code(), Code::kCorrupt);
  EXPECT_EQ(violations[0].place().rule, "R-FPR-03");
  EXPECT_EQ(violations[0].place().tensor, "w");
}

// What only the payload could tell: the chunks are cut differently.
TEST_F(FingerprintsTest, CompareCheckpointsWithoutTheirPayload) {
  Bytes changed = bytes_;
  changed[100] ^= std::byte{1};
  const auto whole = Make(Spec(bytes_, false));
  const auto cut = Make(Spec(bytes_, true));
  const auto other = Make(Spec(changed, true));
  const CompareReport same = Compare(*whole, *cut).value();
  EXPECT_TRUE(same.is_same());
  EXPECT_EQ(same.payload_bytes_read + same.table_bytes_read, 0u);
  const CompareReport differs = Compare(*whole, *other).value();
  ASSERT_EQ(differs.tensors.size(), 1u);
  EXPECT_EQ(differs.tensors[0].change, ContentChange::kBytes);
  EXPECT_EQ(differs.payload_bytes_read, 0u);
  const CompareReport numeric = Compare(*whole, *other, {.numeric = true}).value();
  EXPECT_EQ(numeric.tensors.at(0).changed_bytes, 2u);
  // Without fingerprints the payload is read.
  const auto without = Make(Spec(bytes_, true, false));
  EXPECT_EQ(Compare(*whole, *without).value().payload_bytes_read, 6000u);
}

}  // namespace
}  // namespace sealpoint::testing
