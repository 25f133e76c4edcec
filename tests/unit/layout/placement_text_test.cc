// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "sealpoint/placement.h"

namespace sealpoint {
namespace {

using ::testing::HasSubstr;

PlacementRule Parsed(std::string_view text) {
  const Result<PlacementRule> rule = ParsePlacementRule(text);
  EXPECT_TRUE(rule.ok()) << rule.error().ToString();
  return rule.ok() ? *rule : PlacementRule();
}

std::string ErrorOf(std::string_view text) {
  const Result<PlacementRule> rule = ParsePlacementRule(text);
  EXPECT_FALSE(rule.ok()) << text;
  return rule.ok() ? "" : rule.error().message();
}

TEST(PlacementText, IsReadBackRuleByRule) {
  const Placement placement = {
      Replicate{"data"},
      LocalOnly{"pipeline"},
      Shard{.dim = 1, .axis = "tensor", .rule = SplitRule::kEven, .unit = 128},
      ShardSections{.dim = 0, .axis = "tensor", .sections = {4096, 1024, 1024}},
      StridedShard{.dim = 0, .axis = "data", .split_factor = 2},
      Pad{.dim = 0, .size = 50304},
      ShardFlat{.axes = {"pod", "x", "data"}, .unit = 64}};
  EXPECT_EQ(ParsePlacement(ToStrings(placement)).value(), placement);
}

TEST(PlacementText, OfAPersonMayLeaveOutWhatIsUsual) {
  const PlacementRule shard = Shard{.dim = 0, .axis = "tensor"};
  EXPECT_EQ(Parsed("shard(dim 0, tensor)"), shard);
  EXPECT_EQ(Parsed("  shard ( dim  0,tensor ,ceil_chunk , unit 1 ) "), shard);
  EXPECT_EQ(Parsed("shard_sections(dim 1, t, 2 + 3)"),
            PlacementRule(ShardSections{.dim = 1, .axis = "t", .sections = {2, 3}}));
}

// An axis may be called like a word of the language.
TEST(PlacementText, TakesWordsByTheirPlace) {
  EXPECT_EQ(Parsed("shard(dim 0, even, even)"),
            PlacementRule(Shard{.dim = 0, .axis = "even", .rule = SplitRule::kEven}));
  EXPECT_EQ(Parsed("replicate(unit)"), PlacementRule(Replicate{"unit"}));
}

TEST(PlacementText, RefusesWhatIsNoRuleAndSaysWhy) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("parentheses"));
  EXPECT_THAT(ErrorOf("shard"), HasSubstr("parentheses"));
  EXPECT_THAT(ErrorOf("shard)"), HasSubstr("parentheses"));
  EXPECT_THAT(ErrorOf("shard(dim 0, tensor) x"), HasSubstr("parentheses"));
  EXPECT_THAT(ErrorOf("tensor: shard (dim 0)"), HasSubstr("expected one of replicate, hold_here"));
  EXPECT_THAT(ErrorOf("replicate()"), HasSubstr("axis has no name"));
  EXPECT_THAT(ErrorOf("replicate(a b)"), HasSubstr("found \"a b\", expected the name of an axis"));
  EXPECT_THAT(ErrorOf("replicate(a, b)"), HasSubstr("found \"b\", expected no further"));
  EXPECT_THAT(ErrorOf("shard(0, tensor)"), HasSubstr("found \"0\", expected \"dim\" and a number"));
  EXPECT_THAT(ErrorOf("shard(dom 0, tensor)"), HasSubstr("expected \"dim\" and a number"));
  EXPECT_THAT(ErrorOf("shard(dim, tensor)"), HasSubstr("expected \"dim\" and a number"));
  EXPECT_THAT(ErrorOf("shard(dim0, tensor)"), HasSubstr("expected \"dim\" and a number"));
  EXPECT_THAT(ErrorOf("shard(dim 0, tensor, evenly)"), HasSubstr("expected \"unit\" and a number"));
  EXPECT_THAT(ErrorOf("shard(dim 0, tensor, even, unit 1, 2)"),
              HasSubstr("found \"2\", expected no further"));
  EXPECT_THAT(ErrorOf("pad(dim 0, size 1, 2)"), HasSubstr("found \"2\", expected no further"));
  EXPECT_THAT(ErrorOf("shard_sections(dim 0, a, even, 1 + 2, 3)"),
              HasSubstr("found \"3\", expected no further"));
  EXPECT_THAT(ErrorOf("strided_shard(dim 0, a, split factor 2, 3)"),
              HasSubstr("found \"3\", expected no further"));
  EXPECT_THAT(ErrorOf("strided_shard(dim 0, a)"), HasSubstr("\"split factor\" and a number"));
  EXPECT_THAT(ErrorOf("shard_flat(a, 3)"), HasSubstr("expected \"unit\" and a number"));
}

TEST(PlacementText, TakesNumbersUpToTheEndOfTheirRange) {
  EXPECT_EQ(Parsed("shard(dim 2147483647, a)"),
            PlacementRule(Shard{.dim = 2147483647, .axis = "a"}));
  EXPECT_EQ(Parsed("pad(dim 2147483647, size 18446744073709551615)"),
            PlacementRule(Pad{.dim = 2147483647, .size = 18446744073709551615u}));
}

TEST(PlacementText, RefusesNumbersOutsideOfTheirRange) {
  EXPECT_THAT(ErrorOf("shard(dim 1x, tensor)"), HasSubstr("found \"1x\", expected a number"));
  EXPECT_THAT(ErrorOf("shard(dim -1, tensor)"), HasSubstr("found \"-1\", expected a number"));
  EXPECT_THAT(ErrorOf("shard(dim 2147483648, a)"),
              HasSubstr("dimension is 2147483648, expected at most"));
  EXPECT_THAT(ErrorOf("pad(dim 2147483648, size 1)"),
              HasSubstr("dimension is 2147483648, expected at most"));
  EXPECT_THAT(ErrorOf("pad(dim 0, size 18446744073709551616)"),
              HasSubstr("expected a number of at most 64 bits"));
  EXPECT_THAT(ErrorOf("shard_sections(dim 0, a, even, 1++2)"),
              HasSubstr("found \"\", expected a number"));
}

TEST(PlacementText, RepeatsOnlyTheBeginningOfALongText) {
  EXPECT_LT(ErrorOf(std::string(1 << 20, 'x')).size(), 300u);
  EXPECT_LT(ErrorOf("replicate(" + std::string(1 << 20, '=') + ")").size(), 300u);
}

TEST(PlacementText, NamesTheRuleOfSeveralThatIsWrong) {
  const std::vector<std::string> texts = {"replicate(data)", "shard(tensor)"};
  EXPECT_THAT(ParsePlacement(texts).error().message(), HasSubstr("\"shard(tensor)\""));
}

}  // namespace
}  // namespace sealpoint
