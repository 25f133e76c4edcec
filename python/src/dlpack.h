// SPDX-License-Identifier: Apache-2.0
//
// Arrays of DLPack, taken from objects with __dlpack__, as its Python specification has it.
#ifndef SEALPOINT_PYTHON_SRC_DLPACK_H_
#define SEALPOINT_PYTHON_SRC_DLPACK_H_

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>

namespace sealpoint::python {

namespace nb = nanobind;

// What the capsule of an object has, until it is destroyed. With the GIL.
class DlpackArray {
 public:
  // Asks for version 1, and for what came before it if the object knows no other. Throws what
  // __dlpack__ raises (nb::python_error), or that it returned something else.
  explicit DlpackArray(nb::handle object);

  const nb::dlpack::dltensor& tensor() const { return *tensor_; }
  // Whether the bytes may be written, and what is written is seen by the object. An array without a
  // version cannot say so.
  bool is_writable() const { return is_versioned_ && flags_ == 0; }
  bool is_versioned() const { return is_versioned_; }

 private:
  const nb::dlpack::dltensor* tensor_ = nullptr;
  bool is_versioned_ = false;
  std::uint64_t flags_ = 0;
  std::shared_ptr<void> owner_{};
};

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_DLPACK_H_
