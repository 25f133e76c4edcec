// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_REPORT_NEW_FILE_H_
#define SEALPOINT_TOOLS_CKPT_REPORT_NEW_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "sealpoint/status.h"

// Files of the tools, which are no part of a checkpoint; on a file system or in an object store.

namespace sealpoint::tools {

// "run/x.html" is {"run", "x.html"}, and "x.html" {".", "x.html"}.
std::pair<std::string, std::string> SplitPath(std::string_view path);

// Whether a file of this name is there, which ReplaceFile may take away. Errors: InvalidArgument
// (it is not a regular file, or the path ends in a slash), NotFound (the directory), Io (also if
// nothing can be made in the directory).
Result<bool> CheckPlace(const std::string& path);

// Makes a new file. It is written under another name first: under its own it is whole or not there,
// and after success durable. After an error nothing is left. Errors: AlreadyExists, NotFound (the
// directory), NoSpace, Io.
Status MakeFile(const std::string& path, std::string_view content);

// As MakeFile, in place of an older file of that name. Errors: InvalidArgument if what is there is
// not a regular file.
Status ReplaceFile(const std::string& path, std::string_view content);

// At most the first `size_max` bytes. Errors: NotFound, Io.
Result<std::string> ReadBegin(const std::string& path, std::uint64_t size_max);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_REPORT_NEW_FILE_H_
