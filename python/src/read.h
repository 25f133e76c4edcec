// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PYTHON_SRC_READ_H_
#define SEALPOINT_PYTHON_SRC_READ_H_

#include <nanobind/nanobind.h>

namespace sealpoint::python {

// Plans and reads of many tensors, which cross from Python once.
void BindRead(nanobind::module_& m);

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_READ_H_
