// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/path.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sealpoint/storage.h"

namespace sealpoint::internal {
namespace {

using std::string_view_literals::operator""sv;

TEST(Path, JoinsWithOneSlash) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a//", "b"), "a/b");
  EXPECT_EQ(JoinPath("/", "b"), "/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
}

TEST(Path, FindsTheParent) {
  EXPECT_EQ(ParentPath("a/b"), "a");
  EXPECT_EQ(ParentPath("a//b//"), "a");
  EXPECT_EQ(ParentPath("a"), ".");
  EXPECT_EQ(ParentPath("/a"), "/");
  EXPECT_EQ(ParentPath("//a/"), "/");
  EXPECT_EQ(ParentPath("/"), "/");
}

TEST(Path, FindsTheLastComponent) {
  EXPECT_EQ(LastComponent("a/b//"), "b");
  EXPECT_EQ(LastComponent("a"), "a");
  EXPECT_EQ(LastComponent("//"), "");
}

TEST(Path, ListsThePathsAbove) {
  EXPECT_EQ(PathPrefixes("/a//b/"), (std::vector<std::string>{"/a", "/a//b"}));
  EXPECT_EQ(PathPrefixes("a/b"), (std::vector<std::string>{"a", "a/b"}));
  EXPECT_TRUE(PathPrefixes("/").empty());
}

TEST(Path, NameIsOneComponent) {
  for (const auto good : {"a"sv, ".a"sv, "..."sv, "a b"sv}) {
    EXPECT_TRUE(CheckName("d", good).ok()) << good;
  }
  for (const auto bad : {""sv, "."sv, ".."sv, "a/b"sv, "/a"sv, "a/"sv, "a\0b"sv}) {
    EXPECT_EQ(CheckName("d", bad).code(), Code::kInvalidArgument) << bad;
  }
}

TEST(Path, PathIsNotEmptyAndHasNoNul) {
  EXPECT_TRUE(CheckPath("/").ok());
  EXPECT_EQ(CheckPath("").code(), Code::kInvalidArgument);
  EXPECT_EQ(CheckPath("a\0b"sv).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace sealpoint::internal
