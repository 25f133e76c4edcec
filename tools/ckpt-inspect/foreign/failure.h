// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_FAILURE_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_FAILURE_H_

#include <fmt/format.h>

#include <string>
#include <utility>

#include "sealpoint/status.h"

namespace sealpoint::tools {

// What is thrown by the readers of other formats, and caught where a path is opened: files nest
// values, and an error deep in them is one of the whole.
struct Failure {
  Status status;
};

template <typename... Args>
[[noreturn]] void Fail(Code code, const std::string& path, fmt::format_string<Args...> format,
                       Args&&... args) {
  throw Failure{Status(code, fmt::format(format, std::forward<Args>(args)...)).AtPath(path)};
}

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_FAILURE_H_
