// SPDX-License-Identifier: Apache-2.0
//
// Parts of tensors that one rank holds, as Python hands them over.
#ifndef SEALPOINT_PYTHON_SRC_SLOTS_H_
#define SEALPOINT_PYTHON_SRC_SLOTS_H_

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "sealpoint/dtype.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"

namespace sealpoint::python {

namespace nb = nanobind;

// The class Slot of the module. Memory that Python borrows from a tensor; the tensor must live.
struct Slot {
  std::string name{};
  DType dtype = DType::kNone;
  Shape shape{};                            // of the whole tensor
  std::optional<Region> region{};           // absent: all of it
  std::optional<MutableMemoryView> view{};  // absent: an empty tensor has none
};
using Slots = nb::typed<nb::list, Slot>;

// Region and Slot.
void BindSlots(nb::module_& m);

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_SLOTS_H_
