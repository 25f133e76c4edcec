// SPDX-License-Identifier: Apache-2.0
#include "lib/base/text_arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace sealpoint::internal {
namespace {

using ::testing::ElementsAreArray;

std::vector<std::string> ManyTexts(std::string_view prefix) {
  std::vector<std::string> texts;
  for (int i = 0; i < 5000; ++i) texts.push_back(std::string(prefix) + std::to_string(i));
  texts.insert(texts.begin() + 7, std::string(100000, 'x'));  // more than a block
  return texts;
}

std::vector<std::string_view> KeepAll(TextArena& arena, const std::vector<std::string>& texts) {
  std::vector<std::string_view> kept;
  for (const std::string& text : texts) kept.push_back(arena.Keep(text));
  return kept;
}

TEST(TextArenaTest, KeepsEachTextWhereItIs) {
  TextArena arena;
  const auto texts = ManyTexts("text ");
  const auto kept = KeepAll(arena, texts);
  EXPECT_THAT(kept, ElementsAreArray(texts));
  EXPECT_NE(kept[0].data(), texts[0].data());
  EXPECT_EQ(arena.Keep(""), "");
}

TEST(TextArenaTest, ACopySharesTheTextsAndKeepsItsOwnApart) {
  auto arena = std::make_unique<TextArena>();
  const auto texts = ManyTexts("both ");
  const auto kept = KeepAll(*arena, texts);
  TextArena copy(*arena);
  const auto of_one = ManyTexts("original ");
  const auto of_other = ManyTexts("copy ");
  std::vector<std::string_view> in_one;
  std::vector<std::string_view> in_other;
  for (std::size_t i = 0; i < of_one.size(); ++i) {
    in_one.push_back(arena->Keep(of_one[i]));
    in_other.push_back(copy.Keep(of_other[i]));
  }
  EXPECT_THAT(in_one, ElementsAreArray(of_one));
  EXPECT_THAT(in_other, ElementsAreArray(of_other));
  arena.reset();
  EXPECT_THAT(kept, ElementsAreArray(texts)) << "the copy has them, too";
}

}  // namespace
}  // namespace sealpoint::internal
