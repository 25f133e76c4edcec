// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>
#include <string>
#include <vector>

#include "sealpoint/storage.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/storage/descriptor_path.h"

namespace {

// Paths of what was synced, in order.
std::vector<std::string>& Synced() {
  static std::vector<std::string> synced;
  return synced;
}

}  // namespace

// Replaces the function of the C library in this program.
extern "C" int fsync(int fd) {
  Synced().push_back(sealpoint::testing::PathOf(fd));
  using Function = int (*)(int);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "fsync"));
  return real(fd);
}

namespace sealpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DirectorySync : public ::testing::Test {
 protected:
  DirectorySync() : root_(RealPath(directory_.path())) { Synced().clear(); }

  static std::string RealPath(const std::string& path) {
    char real[PATH_MAX] = {};
    return realpath(path.c_str(), real) != nullptr ? real : path;
  }

  testing::TempDir directory_;
  std::string root_;
};

TEST_F(DirectorySync, SyncsTheParentOfEachLevelItMakes) {
  ASSERT_TRUE(PosixStorage()->CreateDirectories(root_ + "/a/b/c").ok());
  EXPECT_THAT(Synced(), ElementsAre(root_, root_ + "/a", root_ + "/a/b"));
}

TEST_F(DirectorySync, SyncsNothingForLevelsThatWereThere) {
  ASSERT_TRUE(PosixStorage()->CreateDirectories(root_ + "/a").ok());
  Synced().clear();
  ASSERT_TRUE(PosixStorage()->CreateDirectories(root_ + "/a").ok());
  EXPECT_THAT(Synced(), IsEmpty());
}

TEST_F(DirectorySync, SyncsTheParentOfADirectoryItRemoves) {
  ASSERT_TRUE(PosixStorage()->CreateDirectories(root_ + "/a").ok());
  Synced().clear();
  ASSERT_TRUE(PosixStorage()->OpenDirectory(root_).value()->RemoveSubdirectory("a").ok());
  EXPECT_THAT(Synced(), ElementsAre(root_));
}

TEST_F(DirectorySync, SyncsFileAndDirectoryWhenAsked) {
  const auto opened = PosixStorage()->OpenDirectory(root_).value();
  const auto file = opened->CreateExclusive("f", {}).value();
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(opened->Sync().ok());
  EXPECT_THAT(Synced(), ElementsAre(root_ + "/f", root_));
}

}  // namespace
}  // namespace sealpoint
