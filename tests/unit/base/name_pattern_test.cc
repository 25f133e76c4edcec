// SPDX-License-Identifier: Apache-2.0
#include "lib/base/name_pattern.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sealpoint::testing {
namespace {

bool Matches(std::string_view pattern, std::string_view name) {
  return internal::NamePattern::Parse(pattern).value().Matches(name);
}

TEST(NamePattern, StandsForItselfWithoutWildcards) {
  EXPECT_TRUE(Matches("a.b[0]", "a.b[0]"));
  EXPECT_FALSE(Matches("a.b", "a.b.c"));
  EXPECT_FALSE(Matches("a.b.c", "a.b"));
  EXPECT_FALSE(Matches("", "a"));
}

TEST(NamePattern, AStarTakesAnythingEvenNothing) {
  EXPECT_TRUE(Matches("*", ""));
  EXPECT_TRUE(Matches("*", "a.b/c"));
  EXPECT_TRUE(Matches("a*", "a"));
  EXPECT_TRUE(Matches("layers.*.w", "layers.1.mlp.w"));
  EXPECT_FALSE(Matches("layers.*.w", "layers.w"));
  EXPECT_TRUE(Matches("*aab", "aaab"));
  EXPECT_TRUE(Matches("a*b*c", "a.b.b.c"));
  EXPECT_FALSE(Matches("a*b*c", "a.c.b"));
  EXPECT_TRUE(Matches("a**", "a"));
}

TEST(NamePattern, AQuestionMarkTakesOneCharacterOfUtf8) {
  EXPECT_TRUE(Matches("a?c", "abc"));
  EXPECT_FALSE(Matches("a?c", "ac"));
  EXPECT_TRUE(Matches("a?c",
                      "a\xc3\xa9"
                      "c"));
  EXPECT_FALSE(Matches("a??c",
                       "a\xc3\xa9"
                       "c"));
  EXPECT_FALSE(Matches("*??", "\xc3\xa9"));
  EXPECT_FALSE(Matches("?", ""));
}

TEST(NamePattern, ABackslashTakesTheMeaningAway) {
  EXPECT_TRUE(Matches("a\\*", "a*"));
  EXPECT_FALSE(Matches("a\\*", "ab"));
  EXPECT_TRUE(Matches("\\?\\\\", "?\\"));
  EXPECT_EQ(internal::NamePattern::Parse("a\\").status().code(), Code::kInvalidArgument);
}

TEST(NamePattern, ManyStarsTakeNoExponentialTime) {
  const std::string name(5000, 'a');
  std::string pattern;
  for (int i = 0; i < 30; ++i) pattern += "a*";
  EXPECT_FALSE(Matches(pattern + "b", name));
}

TEST(NamePattern, KnowsWhatNamesBeginWith) {
  const auto prefix = [](std::string_view pattern) {
    return internal::NamePattern::Parse(pattern).value().prefix();
  };
  EXPECT_EQ(prefix("layers.0.*"), "layers.0.");
  EXPECT_EQ(prefix("a?b"), "a");
  EXPECT_EQ(prefix("a\\*b*c"), "a*b");
  EXPECT_EQ(prefix("abc"), "abc");
}

}  // namespace
}  // namespace sealpoint::testing
