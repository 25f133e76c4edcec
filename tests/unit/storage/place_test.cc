// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/place.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/container/rule_matchers.h"
#include "tests/unit/storage/storage_fixture.h"

namespace sealpoint::internal::storage {
namespace {

struct PlaceCase {
  std::string a;
  std::string b;
  bool overlap = false;
};

// However they are written, be they there or not.
TEST(PlaceTest, PathsOfAFileSystemAreDirectories) {
  const testing::TempDir root;
  const std::string run = root.path() + "/run";
  std::filesystem::create_directories(run);
  std::filesystem::create_directory_symlink(run, root.path() + "/link");
  for (const auto& [a, b, overlap] :
       {PlaceCase{"run", "run", true}, PlaceCase{"run", "./run//", true},
        PlaceCase{"run", "x/../run", true}, PlaceCase{"link", "run", true},
        PlaceCase{"link/new", "run/new", true}, PlaceCase{"link/new/deep", "run/new", true},
        PlaceCase{"run", "run/new/local", true}, PlaceCase{".", "run", true},
        PlaceCase{"run", "run2", false}, PlaceCase{"run/a", "run/b", false},
        PlaceCase{"new/a", "new/ab", false}}) {
    const std::string one = root.path() + "/" + a;
    const std::string other = root.path() + "/" + b;
    for (const auto& storage : {PosixStorage(), DefaultStorage()}) {
      EXPECT_EQ(Overlap(*storage, one, *storage, other).value(), overlap) << a << " " << b;
      EXPECT_EQ(Overlap(*storage, other, *storage, one).value(), overlap) << b << " " << a;
    }
    EXPECT_EQ(Overlap(*DefaultStorage(), "file://" + one, *PosixStorage(), other).value(), overlap);
  }
}

TEST(PlaceTest, OtherPathsAreTheirText) {
  const auto memory = MemoryStorage();
  const auto other = MemoryStorage();
  for (const auto& [a, b, overlap] :
       {PlaceCase{"s3://b/run", "s3://b/run/", true}, PlaceCase{"s3://b/run", "s3://b", true},
        PlaceCase{"s3://b/run", "s3://b/run2", false}, PlaceCase{"s3://b/run", "s3://c/run", false},
        PlaceCase{"/a/b", "a/b/c", true}, PlaceCase{"a", "b", false}}) {
    EXPECT_EQ(Overlap(*memory, a, *memory, b).value(), overlap) << a << " " << b;
  }
  EXPECT_FALSE(Overlap(*memory, "a", *other, "a").value());
  EXPECT_THAT(CheckApart(*memory, "a", *memory, "a/b"),
              testing::FailsRule(Code::kInvalidArgument, "R-STG-12"));
}

}  // namespace
}  // namespace sealpoint::internal::storage
