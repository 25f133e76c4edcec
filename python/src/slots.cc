// SPDX-License-Identifier: Apache-2.0
#include "python/src/slots.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "python/src/arrays.h"
#include "python/src/status.h"

namespace sealpoint::python {
namespace {

// Item `i` of a tuple of `count`; borrowed.
nb::handle ItemOf(nb::handle tuple, Py_ssize_t count, Py_ssize_t i) {
  if (!PyTuple_Check(tuple.ptr()) || PyTuple_Size(tuple.ptr()) != count) {
    throw nb::type_error(("expected a tuple of " + std::to_string(count)).c_str());
  }
  return PyTuple_GetItem(tuple.ptr(), i);
}

template <typename Number>
std::vector<Number> NumbersOf(nb::handle sequence) {
  std::vector<Number> numbers;
  for (const nb::handle number : sequence) numbers.push_back(nb::cast<Number>(number));
  return numbers;
}

Region RegionOf(nb::handle part) {
  const nb::handle run = ItemOf(part, 3, 2);
  Region region = Region::Of({.offset = NumbersOf<std::uint64_t>(ItemOf(part, 3, 0)),
                              .extent = NumbersOf<std::uint64_t>(ItemOf(part, 3, 1))});
  if (!run.is_none()) {
    region.run = {.begin = nb::cast<std::uint64_t>(ItemOf(run, 2, 0)),
                  .end = nb::cast<std::uint64_t>(ItemOf(run, 2, 1))};
  }
  return region;
}

MutableMemoryView MemoryOf(nb::handle memory, DType dtype) {
  MutableMemoryView view{
      .data = reinterpret_cast<std::byte*>(nb::cast<std::uintptr_t>(ItemOf(memory, 5, 0))),
      .size_bytes = nb::cast<std::size_t>(ItemOf(memory, 5, 1)),
      .dtype = dtype};
  const nb::handle strides = ItemOf(memory, 5, 2);
  if (!strides.is_none()) view.strides_bytes = NumbersOf<std::int64_t>(strides);
  if (const int device = nb::cast<int>(ItemOf(memory, 5, 3)); device >= 0) {
    view.device = device;
    view.stream = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(ItemOf(memory, 5, 4)));
  }
  return view;
}

}  // namespace

Slot SlotOf(nb::handle item) {
  Slot slot{.name = NameOf(ItemOf(item, 5, 0), "tensor's name")};
  const std::string dtype = NameOf(ItemOf(item, 5, 1), "dtype's name");
  const auto known = FindDType(dtype);
  if (!known) ThrowInvalid("dtype " + dtype + " is not registered", slot.name);
  slot.dtype = known->dtype;
  slot.shape = NumbersOf<std::uint64_t>(ItemOf(item, 5, 2));
  if (const nb::handle part = ItemOf(item, 5, 3); !part.is_none()) slot.region = RegionOf(part);
  if (const nb::handle memory = ItemOf(item, 5, 4); !memory.is_none()) {
    slot.view = MemoryOf(memory, slot.dtype);
  }
  return slot;
}

}  // namespace sealpoint::python
