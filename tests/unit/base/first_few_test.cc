// SPDX-License-Identifier: Apache-2.0
#include "lib/base/first_few.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sealpoint::internal {
namespace {

using ::testing::ElementsAre;

TEST(FirstFewTest, KeepsTheFirstInWhicheverOrderTheyCome) {
  FirstFew<std::string> up(3);
  FirstFew<std::string> down(3);
  for (char c = 'a'; c <= 'z'; ++c) {
    up.Add(std::string(1, c));
    down.Add(std::string(1, static_cast<char>('z' - (c - 'a'))));
  }
  EXPECT_THAT(up.kept(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(down.kept(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(up.more(), 23u);
  EXPECT_EQ(up.count(), 26u);
  EXPECT_EQ(down.count(), 26u);
}

TEST(FirstFewTest, FewAreAllKept) {
  FirstFew<std::string> names(3);
  EXPECT_THAT(names.kept(), ElementsAre());
  names.Add("b");
  names.Add("a");
  EXPECT_THAT(names.kept(), ElementsAre("a", "b"));
  EXPECT_EQ(names.count(), 2u);
}

}  // namespace
}  // namespace sealpoint::internal
