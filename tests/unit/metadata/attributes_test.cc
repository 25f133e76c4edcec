// SPDX-License-Identifier: Apache-2.0
//
// The fields of tensors and of an index for their attributes (spec/attributes.md §2).
#include "sealpoint/attributes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/unit/metadata/rule_check.h"

namespace sealpoint::internal::metadata {
namespace {

using testing::HostileMetadata;

std::string Set(std::size_t size = 13) {
  return Attributes::Make({{"a", std::string(size - 12, 'x')}}).value().encoded();
}

// An index of tensors without elements.
HostileMetadata WithAttributes(const std::optional<std::string>& of_tensor, int tensors = 1) {
  HostileMetadata index;
  for (int i = 0; i < tensors; ++i) {
    index.tensors.push_back(
        {.name = "t" + std::to_string(100 + i), .shape = {0}, .attributes = of_tensor});
  }
  return index;
}

Result<Metadata> DecodeWith(const HostileMetadata& index,
                            const AnnouncedFields& announced = {.attributes = true}) {
  const auto owner = std::make_shared<const Bytes>(testing::EncodeHostileIndex(index));
  return Metadata::Decode(MetadataKind::kIndex, owner, *owner, {}, announced);
}

TEST(AttributeFields, AreReadIfTheBitIsSet) {
  HostileMetadata index = WithAttributes(Set());
  index.attributes = Set(20);
  const auto decoded = DecodeWith(index);
  ASSERT_TRUE(decoded.ok()) << decoded.error().ToString();
  EXPECT_EQ(decoded->tensor(0).attributes(), Set());
  EXPECT_EQ(decoded->attributes(), Set(20));
  EXPECT_EQ(DecodeWith(WithAttributes({})).value().tensor(0).attributes(), "");
  EXPECT_EQ(DecodeWith(WithAttributes({})).value().attributes(), "");
}

TEST(AttributeFields, AFieldHasFromOneByteToItsLimit) {
  EXPECT_TRUE(DecodeWith(WithAttributes(Set(kAttributesSizeMaxBytes))).ok());
  std::string larger = Set(kAttributesSizeMaxBytes) + Set(13);
  for (const std::string& set : {std::string(), larger}) {
    EXPECT_THAT(DecodeWith(WithAttributes(set)).status(), Corrupt("R-ATT-01"));
    HostileMetadata index = WithAttributes({});
    index.attributes = set;
    EXPECT_THAT(DecodeWith(index).status(), Corrupt("R-ATT-01"));
  }
  // All together.
  HostileMetadata all = WithAttributes(Set(kAttributesSizeMaxBytes), 64);
  EXPECT_TRUE(DecodeWith(all).ok());
  all.attributes = Set();
  EXPECT_THAT(DecodeWith(all).status(), Corrupt("R-ATT-01"));
}

TEST(AttributeFields, ErrorsNameTensorAndOffset) {
  const std::string set = Set() + "?";
  const HostileMetadata index = WithAttributes(set);
  const Bytes bytes = testing::EncodeHostileIndex(index);
  const Status status = DecodeWith(index).status();
  EXPECT_THAT(status, Corrupt("R-ATT-02"));
  EXPECT_EQ(status.place().tensor, "t100");
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_EQ(status.place().offset, text.find(set) + Set().size());
}

TEST(AttributeFields, WithoutTheBitTheyAreUnknown) {
  HostileMetadata index = WithAttributes({});
  index.attributes = "?";
  for (const HostileMetadata& each : {WithAttributes("?"), index}) {
    EXPECT_THAT(DecodeWith(each, {}).status(), Breaks(Code::kUnsupported, "R-IDX-03"));
    EXPECT_THAT(DecodeWith(each, {.fingerprints = true}).status(),
                Breaks(Code::kUnsupported, "R-IDX-03"));
    const auto skipped = DecodeWith(each, {.unknown = true});
    ASSERT_TRUE(skipped.ok()) << skipped.error().ToString();
    EXPECT_EQ(skipped->attributes(), "");
    EXPECT_EQ(skipped->tensor(0).attributes(), "");
  }
}

// They have smaller ids than the fields of attributes.
TEST(AttributeFields, TheBitAnnouncesNoOtherField) {
  HostileMetadata with_fingerprint = WithAttributes(Set());
  with_fingerprint.tensors[0].fingerprint = {0, 0};
  HostileMetadata with_base = WithAttributes(Set());
  with_base.base = testing::HostileBase{.attempt = {1}};
  for (const HostileMetadata& each : {with_fingerprint, with_base}) {
    EXPECT_THAT(DecodeWith(each).status(), Breaks(Code::kUnsupported, "R-IDX-03"));
  }
}

}  // namespace
}  // namespace sealpoint::internal::metadata
