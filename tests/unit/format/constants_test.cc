// SPDX-License-Identifier: Apache-2.0
#include "lib/format/constants.h"

#include <gtest/gtest.h>

#include <string>

namespace sealpoint::internal::format {
namespace {

constexpr std::string_view kHex = "000102030405060708090a0b0c0d0e0f";

Id128 Id() { return Id128::FromHex(kHex).value(); }

std::string Named(std::string_view suffix) { return std::string(kHex).append(suffix); }

TEST(Names, AreTheIdAndASuffix) {
  EXPECT_EQ(IndexName(AttemptId(Id())), Named(".index"));
  EXPECT_EQ(BlobName(BlobId(Id())), Named(".blob"));
  EXPECT_EQ(UnpublishedMarkerName(Id()), Named(".commit"));
  EXPECT_EQ(ProbeName(Id()), Named(".probe"));
}

TEST(ParseName, ReadsBackWhatTheWriterNames) {
  const auto expect = [](const std::string& name, NameKind kind) {
    const ParsedName parsed = ParseName(name);
    EXPECT_EQ(parsed.kind, kind) << name;
    EXPECT_EQ(parsed.id, Id()) << name;
  };
  expect(IndexName(AttemptId(Id())), NameKind::kIndex);
  expect(BlobName(BlobId(Id())), NameKind::kBlob);
  expect(UnpublishedMarkerName(Id()), NameKind::kUnpublishedMarker);
  expect(ProbeName(Id()), NameKind::kProbe);
}

TEST(ParseName, KnowsTheFixedNames) {
  EXPECT_EQ(ParseName("COMMIT").kind, NameKind::kMarker);
  EXPECT_EQ(ParseName("KEEP").kind, NameKind::kKeep);
}

TEST(ParseName, LetsAProbeCarryATail) {
  EXPECT_EQ(ParseName(Named(".probe.7-node-a")).kind, NameKind::kProbe);
  EXPECT_EQ(ParseName(Named(".probe-09az.")).kind, NameKind::kProbe);
}

TEST(ParseName, TakesAProbeTailOfOtherCharactersAsForeign) {
  for (const std::string_view tail : {".probe/x", ".probe_1", ".probeA", ".probe "}) {
    EXPECT_EQ(ParseName(Named(tail)).kind, NameKind::kForeign) << tail;
  }
}

TEST(ParseName, KeepsEveryShortEndingForLaterKindsOfFiles) {
  for (const std::string_view ending : {".parity", ".s", ".prob", ".0-9", ".abcdefghij-01234"}) {
    EXPECT_EQ(ParseName(Named(ending)).kind, NameKind::kReserved) << ending;
    EXPECT_EQ(ParseName(Named(ending)).id, Id());
  }
  for (const std::string_view ending : {".abcdefghij-012345", ".Parity", ".a.b", ".a_b", "-ab"}) {
    EXPECT_EQ(ParseName(Named(ending)).kind, NameKind::kForeign) << ending;
  }
}

TEST(ParseName, TakesAnUpperCaseDigitAsForeign) {
  EXPECT_EQ(ParseName("000102030405060708090A0b0c0d0e0f.blob").kind, NameKind::kForeign);
}

TEST(ParseName, TakesAnotherNumberOfDigitsAsForeign) {
  EXPECT_EQ(ParseName("000102030405060708090a0b0c0d0e0.blob").kind, NameKind::kForeign);
  EXPECT_EQ(ParseName("000102030405060708090a0b0c0d0e0f0.blob").kind, NameKind::kForeign);
}

TEST(ParseName, TakesEveryOtherNameAsForeign) {
  for (const std::string_view name :
       {"", "commit", "COMMIT ", "COMMIT.tmp", "keep", "README", ".nfs0001", ".", "..", ".blob"}) {
    EXPECT_EQ(ParseName(name).kind, NameKind::kForeign) << name;
  }
  for (const std::string_view suffix : {"", ".", ".blob.tmp", ".Blob", "blob", ".index~"}) {
    const ParsedName parsed = ParseName(Named(suffix));
    EXPECT_EQ(parsed.kind, NameKind::kForeign) << suffix;
    EXPECT_TRUE(parsed.id.is_zero()) << suffix;
  }
}

TEST(ParseName, TakesANulByteAsForeign) {
  EXPECT_EQ(ParseName(std::string("COMMIT\0", 7)).kind, NameKind::kForeign);
  EXPECT_EQ(ParseName(Named(std::string_view(".blob\0", 6))).kind, NameKind::kForeign);
}

TEST(ShardAlignment, IsAPageFromTheLargeShardSizeOn) {
  EXPECT_EQ(ShardAlignment(1), 64u);
  EXPECT_EQ(ShardAlignment(65535), 64u);
  EXPECT_EQ(ShardAlignment(65536), 4096u);
}

}  // namespace
}  // namespace sealpoint::internal::format
