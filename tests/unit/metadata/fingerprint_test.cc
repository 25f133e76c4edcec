// SPDX-License-Identifier: Apache-2.0
//
// The field of a tensor for its fingerprint (spec/fingerprint.md §2).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "tests/unit/metadata/rule_check.h"

namespace sealpoint::internal::metadata {
namespace {

using testing::HostileMetadata;

constexpr std::uint64_t kModulus = Fingerprint::kModulus;

HostileMetadata WithFingerprint(const std::array<std::uint64_t, 2>& of_a,
                                const std::array<std::uint64_t, 2>& of_empty = {}) {
  HostileMetadata manifest;
  manifest.tensors.push_back({.name = "a",
                              .shape = {8},
                              .boxes = testing::HostileBoxes{.boxes = {0, 8}, .runs = {}},
                              .shards = {{}},
                              .fingerprint = of_a});
  manifest.tensors.push_back({.name = "empty", .shape = {0}, .fingerprint = of_empty});
  return manifest;
}

Result<Metadata> Decode(const HostileMetadata& manifest, const AnnouncedFields& announced) {
  const auto owner = std::make_shared<const Bytes>(testing::EncodeHostileManifest(manifest));
  return Metadata::DecodeManifest(owner, *owner, {.record_count = 1, .shard_count = 1}, {},
                                  announced);
}

TEST(FingerprintRules, AValueBelowTheModulusIsRead) {
  const auto decoded = Decode(WithFingerprint({kModulus - 1, 5}), {.fingerprints = true});
  ASSERT_TRUE(decoded.ok()) << decoded.error().ToString();
  EXPECT_EQ(decoded->tensor(0).fingerprint(), Fingerprint({kModulus - 1, 5}));
  EXPECT_EQ(decoded->tensor(1).fingerprint(), Fingerprint());
  HostileMetadata without = WithFingerprint({});
  without.tensors[0].fingerprint.reset();
  EXPECT_EQ(Decode(without, {.fingerprints = true}).value().tensor(0).fingerprint(), std::nullopt);
}

TEST(FingerprintRules, AValueThatIsNotReducedIsCorrupt) {
  for (const auto& values :
       {std::array{kModulus, std::uint64_t{0}}, std::array{std::uint64_t{0}, kModulus},
        std::array{~std::uint64_t{0}, std::uint64_t{0}}}) {
    EXPECT_THAT(Decode(WithFingerprint(values), {.fingerprints = true}).status(),
                Corrupt("R-FPR-01"));
  }
  const auto decoded = Decode(WithFingerprint({}, {0, 1}), {.fingerprints = true});
  EXPECT_THAT(decoded.status(), Corrupt("R-FPR-01"));
  EXPECT_EQ(decoded.status().place().tensor, "empty");
}

TEST(FingerprintRules, WithoutItsBitItIsAnUnknownField) {
  const HostileMetadata manifest = WithFingerprint({kModulus, 0});
  EXPECT_THAT(Decode(manifest, {}).status(), Breaks(Code::kUnsupported, "R-IDX-03"));
  const auto skipped = Decode(manifest, {.unknown = true});
  ASSERT_TRUE(skipped.ok()) << skipped.error().ToString();
  EXPECT_EQ(skipped->tensor(0).fingerprint(), std::nullopt);
}

}  // namespace
}  // namespace sealpoint::internal::metadata
