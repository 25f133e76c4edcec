// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PYTHON_SRC_BORROWED_H_
#define SEALPOINT_PYTHON_SRC_BORROWED_H_

#include <nanobind/nanobind.h>

#include <cstddef>

#include "sealpoint/bytes.h"

namespace sealpoint::python {

namespace nb = nanobind;

// The bytes that an object of Python lends, while this is.
class Borrowed {
 public:
  Borrowed(nb::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) nb::raise_python_error();
  }
  ~Borrowed() { PyBuffer_Release(&buffer_); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  MutableByteSpan bytes() const {
    return {static_cast<std::byte*>(buffer_.buf), static_cast<std::size_t>(buffer_.len)};
  }

 private:
  Py_buffer buffer_{};
};

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_BORROWED_H_
