// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PYTHON_SRC_ATTRIBUTES_H_
#define SEALPOINT_PYTHON_SRC_ATTRIBUTES_H_

#include <nanobind/nanobind.h>

#include "sealpoint/attributes.h"

namespace sealpoint::python {

// Attributes as a dict of str, int, float, bool, and lists of one of these types; checked and
// normalized by attributes_of (python/sealpoint/_arguments.py).
using AttributesDict = nanobind::typed<nanobind::dict, nanobind::str, nanobind::any>;

Attributes AttributesOf(const AttributesDict& values);
AttributesDict DictOf(const Attributes& attributes);

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_ATTRIBUTES_H_
