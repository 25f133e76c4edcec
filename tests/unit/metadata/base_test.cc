// SPDX-License-Identifier: Apache-2.0
//
// The field of an index for its base (spec/delta.md §1).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "lib/metadata/merge_manifests.h"
#include "tests/unit/metadata/rule_check.h"

namespace sealpoint::internal::metadata {
namespace {

constexpr std::uint64_t kBits = format::kDeltaFeatures;

AttemptId SomeAttempt() {
  AttemptId attempt;
  attempt.bytes.fill(std::byte{7});
  return attempt;
}

Result<Metadata> Decode(const std::optional<BaseRef>& base, std::uint64_t incompat,
                        bool announces_unknown = false) {
  const auto index = std::make_shared<const Bytes>(EncodeIndex({}, {.base = base}, {}).value());
  return Metadata::Decode(MetadataKind::kIndex, index, *index, {},
                          {.unknown = announces_unknown, .incompat = incompat});
}

TEST(BaseRules, ABaseIsRead) {
  const BaseRef base{
      .attempt = SomeAttempt(), .index_digest = ComputeDigest({}), .step = 9, .depth = 64};
  EXPECT_EQ(Decode(base, kBits).value().base(), base);
  EXPECT_EQ(Decode({}, 0).value().base(), std::nullopt);
}

TEST(BaseRules, TheBitAndTheFieldComeTogether) {
  const BaseRef base{.attempt = SomeAttempt()};
  for (const std::uint64_t incompat :
       {kBits, format::kDeltaFeature, kBits ^ format::kDeltaFeature}) {
    EXPECT_THAT(Decode({}, incompat).status(), Corrupt("R-DLT-01")) << incompat;
  }
  EXPECT_THAT(Decode(base, format::kDeltaFeature).status(), Corrupt("R-DLT-01"));
  const Status unknown = Decode(base, 0).status();
  EXPECT_EQ(unknown.code(), Code::kUnsupported);
  EXPECT_EQ(unknown.place().rule, "R-IDX-03");
  EXPECT_EQ(Decode(base, 0, /*announces_unknown=*/true).value().base(), std::nullopt);
}

TEST(BaseRules, DepthIsBounded) {
  for (const std::uint32_t depth : {0U, 65U, ~0U}) {
    EXPECT_THAT(Decode(BaseRef{.attempt = SomeAttempt(), .depth = depth}, kBits).status(),
                Corrupt("R-DLT-02"))
        << depth;
  }
  EXPECT_THAT(Decode(BaseRef{}, kBits).status(), Corrupt("R-DLT-02"));
}

}  // namespace
}  // namespace sealpoint::internal::metadata
