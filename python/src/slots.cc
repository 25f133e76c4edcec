// SPDX-License-Identifier: Apache-2.0
#include "python/src/slots.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "python/src/arrays.h"

namespace sealpoint::python {
namespace {

using Numbers = std::vector<std::uint64_t>;

void MakeRegion(Region* self, Numbers offset, Numbers extent,
                std::optional<std::pair<std::uint64_t, std::uint64_t>> run) {
  new (self) Region(Box{.offset = std::move(offset), .extent = std::move(extent)});
  if (run) self->run = {.begin = run->first, .end = run->second};
}

void MakeSlot(Slot* self, nb::handle name, const std::string& dtype, Shape shape,
              const Region* region, const MutableMemoryView* memory) {
  Slot slot{.name = NameOf(name, "tensor's name"), .shape = std::move(shape)};
  slot.dtype = DTypeNamed(dtype, slot.name).dtype;
  if (region != nullptr) slot.region = *region;
  if (memory != nullptr) {
    slot.view = *memory;
    slot.view->dtype = slot.dtype;
  }
  new (self) Slot(std::move(slot));
}

}  // namespace

void BindSlots(nb::module_& m) {
  nb::class_<Region>(m, "Region", "A box of a tensor, or a run of its row-major elements.")
      .def("__init__", MakeRegion, nb::arg("offset"), nb::arg("extent"),
           nb::arg("run") = nb::none(), "In elements; ``run``: [begin, end), or None for all.");
  nb::class_<Slot>(m, "Slot", "A part of a tensor that one rank holds, and its memory.")
      .def("__init__", MakeSlot, nb::arg("name"), nb::arg("dtype"), nb::arg("shape"),
           nb::arg("region") = nb::none(), nb::arg("memory") = nb::none(),
           nb::sig("def __init__(self, name: str, dtype: str, shape: "
                   "collections.abc.Sequence[int], region: Region | None = None, memory: "
                   "MemoryView | None = None) -> None"),
           "``shape``: of the whole tensor; ``region``: None for all of it.")
      .def_ro("name", &Slot::name)
      .def_prop_ro("dtype", [](const Slot& slot) { return std::string(DTypeName(slot.dtype)); })
      .def_prop_ro(
          "shape", [](const Slot& slot) { return nb::tuple(nb::cast(slot.shape)); },
          nb::sig("def shape(self) -> tuple[int, ...]"));
}

}  // namespace sealpoint::python
