// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/path.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sealpoint/storage.h"

namespace sealpoint::internal::storage {
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
  EXPECT_EQ(ParentPath("s3://b/c//d/"), "s3://b/c");
  EXPECT_EQ(ParentPath("s3://b//c"), "s3://b");
  EXPECT_EQ(ParentPath("s3://b/"), "s3://b");
  EXPECT_EQ(ParentPath("file:///c"), "file://");
}

TEST(Path, FindsTheLastComponent) {
  EXPECT_EQ(LastComponent("a/b//"), "b");
  EXPECT_EQ(LastComponent("a"), "a");
  EXPECT_EQ(LastComponent("//"), "");
  EXPECT_EQ(LastComponent("s3://b"), "");
  EXPECT_EQ(LastComponent("s3://b/c/"), "c");
}

TEST(Path, ListsThePathsAbove) {
  EXPECT_EQ(PathPrefixes("/a//b/"), (std::vector<std::string>{"/a", "/a//b"}));
  EXPECT_EQ(PathPrefixes("a/b"), (std::vector<std::string>{"a", "a/b"}));
  EXPECT_TRUE(PathPrefixes("/").empty());
  EXPECT_EQ(PathPrefixes("s3://b/c"), std::vector<std::string>{"s3://b/c"});
  EXPECT_TRUE(PathPrefixes("s3://b/").empty());
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

TEST(PathTest, OfAUriIsRefusedByItsScheme) {
  for (const std::string_view path : {"s3://bucket/a", "gs://b", "S3+x-1.0://", "file:///tmp/a"}) {
    const Status refused = CheckPath(path);
    EXPECT_EQ(refused.code(), Code::kUnsupported) << path;
    EXPECT_EQ(refused.place().path, path);
    EXPECT_EQ(ParentPath(path).substr(0, path.find("://") + 3),
              path.substr(0, path.find("://") + 3));
    EXPECT_EQ(CheckPath(ParentPath(path)).code(), Code::kUnsupported) << ParentPath(path);
  }
  EXPECT_EQ(CheckPath("s3://bucket/a").message(),
            "s3:// is not supported, expected a path of a mounted file system");
  for (const std::string_view path :
       {"./s3://bucket", "s3:/bucket", "s3:", "a/s3://b", "://a", "3s://a", "a b://c", "/a://b"}) {
    EXPECT_TRUE(CheckPath(path).ok()) << path;
  }
}

}  // namespace
}  // namespace sealpoint::internal::storage
