// SPDX-License-Identifier: Apache-2.0
#include "readers/load/selection.h"

#include "tests/unit/load/load_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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
