// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_FAILURE_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_FAILURE_H_

#include <string>

#include "lib/base/errors.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::foreign {

// Thrown by the readers of foreign formats, and caught where a path is opened: files nest values,
// and an error deep inside is an error of the whole file. It never leaves this folder.
struct Failure {
  Status status;
};

template <typename... Parts>
[[noreturn]] void Fail(Code code, const std::string& path, const Parts&... parts) {
  throw Failure{MakeError(code, parts...).AtPath(path)};
}

[[noreturn]] inline void FailAt(Code code, const std::string& path, const std::string& tensor,
                                const std::string& message) {
  throw Failure{Status(code, message).AtPath(path).AtTensor(tensor)};
}

// Throws the error of a result.
template <typename T>
T Take(Result<T> result) {
  if (!result.ok()) throw Failure{std::move(result).error()};
  return std::move(result).value();
}

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_FAILURE_H_
