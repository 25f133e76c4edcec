// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_STORAGE_DESCRIPTOR_PATH_H_
#define SEALPOINT_TESTS_SUPPORT_STORAGE_DESCRIPTOR_PATH_H_

#include <unistd.h>

#include <climits>
#include <string>

namespace sealpoint::testing {

// The current name of the open file `fd`, or "" if it has none.
inline std::string PathOf(int fd) {
  char path[PATH_MAX] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  return readlink(link.c_str(), path, sizeof(path) - 1) > 0 ? path : "";
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_STORAGE_DESCRIPTOR_PATH_H_
