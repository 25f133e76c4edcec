// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_PROCESS_TEMP_DIR_H_
#define SEALPOINT_TESTS_SUPPORT_PROCESS_TEMP_DIR_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace sealpoint::testing {

// A new directory below GoogleTest's, removed with its contents at the end of the scope.
class TempDir {
 public:
  TempDir() : path_(::testing::TempDir()) {
    if (path_.back() != '/') path_.push_back('/');
    path_.append("sealpoint-XXXXXX");
    if (::mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "cannot make " << path_;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_PROCESS_TEMP_DIR_H_
