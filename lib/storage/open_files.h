// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_OPEN_FILES_H_
#define SEALPOINT_LIB_STORAGE_OPEN_FILES_H_

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>

namespace sealpoint::internal::storage {

// Number of files that may stay open for reading: a quarter of the process's limit, and at most
// `most`.
inline std::size_t OpenFilesFor(std::size_t most) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return most;
  return std::clamp<std::size_t>(limit.rlim_cur / 4, 1, most);
}

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_OPEN_FILES_H_
