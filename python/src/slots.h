// SPDX-License-Identifier: Apache-2.0
//
// Parts of tensors that one rank holds, as Python hands them over: one tuple each.
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

struct Slot {
  std::string name{};
  DType dtype = DType::kNone;
  Shape shape{};                            // of the whole tensor
  std::optional<Region> region{};           // absent: all of it
  std::optional<MutableMemoryView> view{};  // absent: an empty tensor has none
};

// Of (name: str, dtype: str, shape: tuple, part, memory): `part` is None (the whole tensor) or
// (offset: tuple, extent: tuple, run: (begin, end) or None), in elements; `memory` is None or
// (address: int, size_bytes: int, strides_bytes: tuple or None, device: int or -1, stream: int).
// Throws InvalidArgument.
Slot SlotOf(nb::handle item);

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_SLOTS_H_
