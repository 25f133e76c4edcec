// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_PATH_H_
#define SEALPOINT_LIB_STORAGE_PATH_H_

#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/status.h"

namespace sealpoint::internal {

// InvalidArgument unless `name` is one path component: not empty, not "." or "..", without '/' and
// NUL. The error's path is `directory` plus the name.
Status CheckName(std::string_view directory, std::string_view name);

// InvalidArgument if `path` is empty or has a NUL byte, at which the system would cut it.
Status CheckPath(std::string_view path);

// The directory that holds the last component: "a/b" -> "a", "a" -> ".", "/a" -> "/", "/" -> "/".
// Trailing slashes do not count. Precondition: not empty.
std::string ParentPath(std::string_view path);

// The last component, without slashes: "a/b/" -> "b". Empty for "/".
std::string_view LastComponent(std::string_view path);

// The path and all paths above it, outermost first: "/a/b" -> "/a", "/a/b". Empty for "/".
std::vector<std::string> PathPrefixes(std::string_view path);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_STORAGE_PATH_H_
