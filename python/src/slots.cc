// SPDX-License-Identifier: Apache-2.0
#include "python/src/slots.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

// True if none is empty and no two overlap.
bool AreApart(const std::vector<Slot>& slots) {
  std::vector<std::pair<const std::byte*, std::size_t>> spans;
  spans.reserve(slots.size());
  for (const Slot& slot : slots) spans.emplace_back(slot.view->data, slot.view->size_bytes);
  std::ranges::sort(spans);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const auto [begin, size] = spans[i];
    if (begin == nullptr || size == 0) return false;
    if (i + 1 < spans.size() && begin + size > spans[i + 1].first) return false;
  }
  return true;
}

// The slots of whole, dense tensors in host memory; None if a tensor is empty, has no registered
// dtype, or shares memory with another.
nb::object DenseSlots(const nb::list& names, const nb::list& dtypes, const nb::list& shapes,
                      const nb::bytes& addresses) {
  const std::size_t count = nb::len(names);
  if (nb::len(dtypes) != count || nb::len(shapes) != count ||
      addresses.size() != count * sizeof(std::byte*)) {
    ThrowInvalid("expected a dtype, a shape and an address for each name", "");
  }
  std::vector<Slot> slots(count);
  nb::handle last;  // names of dtypes are few objects
  DTypeInfo dtype{};
  for (std::size_t i = 0; i < count; ++i) {
    Slot& slot = slots[i];
    slot.name = NameOf(names[i], "tensor's name");
    const nb::object named = dtypes[i];
    if (named.is_none()) return nb::none();
    if (!named.is(last)) dtype = DTypeNamed(NameOf(named, "dtype"), slot.name);
    last = named;
    slot.dtype = dtype.dtype;
    slot.shape = nb::cast<Shape>(shapes[i]);
    MutableMemoryView& view = slot.view.emplace(MutableMemoryView{.dtype = dtype.dtype});
    std::memcpy(&view.data, addresses.c_str() + i * sizeof(view.data), sizeof(view.data));
    view.size_bytes = dtype.size_bytes;
    for (const std::uint64_t extent : slot.shape) view.size_bytes *= extent;
  }
  if (!AreApart(slots)) return nb::none();
  nb::list made;
  for (Slot& slot : slots) made.append(nb::cast(std::move(slot)));
  return made;
}

}  // namespace

void BindSlots(nb::module_& m) {
  nb::class_<Region>(m, "Region", "A box of a tensor, or a run of its row-major elements.")
      .def("__init__", MakeRegion, nb::arg("offset"), nb::arg("extent"),
           nb::arg("run") = nb::none(),
           "All numbers in elements; ``run``: [begin, end), or None for the whole box.");
  nb::class_<Slot>(m, "Slot", "A part of a tensor held by one rank, and its memory.")
      .def("__init__", MakeSlot, nb::arg("name"), nb::arg("dtype"), nb::arg("shape"),
           nb::arg("region") = nb::none(), nb::arg("memory") = nb::none(),
           nb::sig("def __init__(self, name: str, dtype: str, shape: "
                   "collections.abc.Sequence[int], region: Region | None = None, memory: "
                   "MemoryView | None = None) -> None"),
           "``shape``: shape of the whole tensor; ``region``: None for the whole tensor.")
      .def_ro("name", &Slot::name)
      .def_prop_ro("dtype", [](const Slot& slot) { return std::string(DTypeName(slot.dtype)); })
      .def_prop_ro(
          "shape", [](const Slot& slot) { return nb::tuple(nb::cast(slot.shape)); },
          nb::sig("def shape(self) -> tuple[int, ...]"));
  m.def("dense_slots", DenseSlots, nb::arg("names"), nb::arg("dtypes"), nb::arg("shapes"),
        nb::arg("addresses"),
        nb::sig("def dense_slots(names: list[str], dtypes: list[str | None], shapes: "
                "list[collections.abc.Sequence[int]], addresses: bytes) -> list[Slot] | None"),
        "Slots of whole, dense tensors in host memory, or None if one is empty or two overlap. "
        "``addresses``: 8 bytes per tensor.");
}

}  // namespace sealpoint::python
