// SPDX-License-Identifier: Apache-2.0
//
// How errors of the library become exceptions of Python, and back.
#ifndef SEALPOINT_PYTHON_SRC_STATUS_H_
#define SEALPOINT_PYTHON_SRC_STATUS_H_

#include <nanobind/nanobind.h>

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "sealpoint/status.h"

namespace sealpoint::python {

namespace nb = nanobind;

// Thrown by the functions of the module; Python sees the class of sealpoint/_errors.py that belongs
// to the code. May be thrown without the GIL.
class StatusError : public std::exception {
 public:
  explicit StatusError(Status status) : status_(std::move(status)) {}
  const Status& status() const { return status_; }
  const char* what() const noexcept override { return status_.message().c_str(); }

 private:
  Status status_;
};

inline void Check(Status status) {
  if (!status.ok()) throw StatusError(std::move(status));
}

template <typename T>
T Value(Result<T> result) {
  if (!result.ok()) throw StatusError(std::move(result).error());
  return std::move(result).value();
}

// The rest needs the GIL.

// A str; bytes that are not UTF-8 become surrogates, as in Python's own paths.
nb::str Text(std::string_view text);
// The bytes of a str that Text made; of anything else those of its str().
std::string TextOf(nb::handle object);
// The bytes of what path_of of sealpoint/_arguments.py makes of a path, whatever they are.
std::string PathOf(nb::handle path);

// The exception that belongs to an error, not raised.
nb::object ErrorOf(const Status& status);
// The error that an exception stands for: that of a sealpoint.Error; of any other one Cancelled,
// with its type and text, since it comes from code that the library has called.
Status StatusOf(nb::handle exception);

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_STATUS_H_
