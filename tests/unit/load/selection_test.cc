// SPDX-License-Identifier: Apache-2.0
#include "readers/load/selection.h"

#include "tests/unit/load/load_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

class SelectionTest : public LoadFixture {
 protected:
  void SetUp() override {
    MiniSpec spec;
    for (const char* name :
         {"a", "layers", "layers.0.b", "layers.0.w", "layers.1.w", "layers.10.w", "layerz", "z*"}) {
      spec.tensors.push_back({.name = name, .shape = {0}});
    }
    Open(spec);
  }
  static std::vector<std::string> NamesOf(const std::vector<TensorInfo>& tensors) {
    std::vector<std::string> names;
    for (const TensorInfo& tensor : tensors) names.push_back(tensor.name);
    return names;
  }
  std::vector<std::string> Match(const std::vector<std::string>& patterns) {
    return NamesOf(checkpoint_->MatchTensors(patterns).value());
  }
};

TEST_F(SelectionTest, ByPrefix) {
  const auto with = [&](std::string_view prefix) {
    return NamesOf(checkpoint_->TensorsWithPrefix(prefix));
  };
  EXPECT_THAT(with("layers.0."), ElementsAre("layers.0.b", "layers.0.w"));
  EXPECT_THAT(with("layers.1"), ElementsAre("layers.1.w", "layers.10.w"));
  EXPECT_THAT(with("z"), ElementsAre("z*"));
  EXPECT_THAT(with("b"), IsEmpty());
  EXPECT_THAT(with("~"), IsEmpty());
  EXPECT_EQ(with("").size(), 8u);
}

TEST_F(SelectionTest, ByPatterns) {
  EXPECT_THAT(Match({"layers.*.w"}), ElementsAre("layers.0.w", "layers.1.w", "layers.10.w"));
  EXPECT_THAT(Match({"layers.?.w"}), ElementsAre("layers.0.w", "layers.1.w"));
  EXPECT_THAT(Match({"layers"}), ElementsAre("layers"));
  EXPECT_THAT(Match({"z\\*"}), ElementsAre("z*"));
  EXPECT_THAT(Match({}), IsEmpty());
}

TEST_F(SelectionTest, TensorsThatSeveralPatternsMatchComeOnceAndInOrder) {
  EXPECT_THAT(Match({"layers.1*", "a", "*.w"}),
              ElementsAre("a", "layers.0.w", "layers.1.w", "layers.10.w"));
}

TEST_F(SelectionTest, APatternThatMatchesNothingIsAnError) {
  const Status error = checkpoint_->MatchTensors({"a", "layers.*.v"}).status();
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_EQ(error.place().tensor, "layers.*.v");
  EXPECT_EQ(checkpoint_->MatchTensors({""}).status().code(), Code::kNotFound);
  EXPECT_EQ(checkpoint_->MatchTensors({"a\\"}).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace sealpoint::testing
