// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_PATH_H_
#define SEALPOINT_LIB_STORAGE_PATH_H_

#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/status.h"

namespace sealpoint::internal::storage {

// InvalidArgument unless `name` is one path component: not empty, not "." or "..", without '/' and
// NUL. The error's path is `directory` plus the name.
Status CheckName(std::string_view directory, std::string_view name);

// "s3" of "s3://bucket/a"; empty if `path` does not begin with the scheme of a URI and "://".
std::string_view SchemeOf(std::string_view path);

// "s3://bucket" of "s3://bucket/a"; empty if SchemeOf is. It is the root of all paths below it,
// like "/" in a file system.
std::string_view AuthorityOf(std::string_view path);

// Checks a path of a mounted file system: InvalidArgument if it is empty or has a NUL byte, where
// the system would truncate it; Unsupported if it has a scheme (SchemeOf).
Status CheckPath(std::string_view path);

// The directory that holds the last component: "a/b" -> "a", "a" -> ".", "/a" -> "/", "/" -> "/".
// Trailing slashes do not count. "s3://b/a" -> "s3://b" -> "s3://b". Precondition: not empty.
std::string ParentPath(std::string_view path);

// The last component, without slashes: "a/b/" -> "b". Empty for "/" and "s3://b".
std::string_view LastComponent(std::string_view path);

// The path and all paths above it, outermost first: "/a/b" -> "/a", "/a/b". Empty for "/", and
// for "s3://b".
std::vector<std::string> PathPrefixes(std::string_view path);

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_PATH_H_
