// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/fingerprint.h"

#include <nanobind/nanobind.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/src/arrays.h"
#include "python/src/checkpoint_handle.h"
#include "python/src/gil.h"
#include "python/src/module.h"
#include "python/src/slots.h"
#include "python/src/status.h"
#include "python/src/tensor_source.h"
#include "python/src/watch.h"
#include "sealpoint/content.h"

namespace sealpoint::python {
namespace {

// The fingerprint of the part of a tensor that a rank holds.
struct PartFingerprint {
  std::string region{};  // equal for equal regions
  std::uint64_t element_count = 0;
  Fingerprint fingerprint{};
};

Result<PartFingerprint> FingerprintOfSlot(const Slot& slot) {
  PartFingerprint part;
  if (!slot.view) return part;  // an empty tensor
  const Region region = slot.region.value_or(Region::Whole(slot.shape));
  part.region = region.ToString();
  part.element_count = region.element_count();
  auto fingerprint = ComputeFingerprint(slot.shape, DTypeSizeBytes(slot.dtype), region, *slot.view);
  if (!fingerprint) return Status(fingerprint.error()).AtTensor(slot.name);
  part.fingerprint = *fingerprint;
  return part;
}

std::vector<PartFingerprint> FingerprintsOfSlots(const Slots& slots) {
  std::vector<const Slot*> all;
  for (const nb::handle slot : slots) all.push_back(&nb::cast<const Slot&>(slot));
  std::vector<PartFingerprint> parts;
  const GilRelease released;
  for (const Slot* const slot : all) parts.push_back(Value(FingerprintOfSlot(*slot)));
  return parts;
}

// `shape` and `offset` of the box that the array holds; the whole tensor if they are absent.
Fingerprint FingerprintOfArray(nb::handle array, const std::optional<Shape>& shape,
                               const std::optional<std::vector<std::uint64_t>>& offset) {
  ArrayReader arrays(ArrayReader::Access::kRead);
  const TensorSource source = SourceOf(arrays, "array", array, {});
  const GilRelease released;
  const Shape whole = shape.value_or(source.extent);
  const Region region =
      Region::Of({.offset = offset.value_or(std::vector<std::uint64_t>(source.extent.size())),
                  .extent = source.extent});
  return Value(ComputeFingerprint(whole, DTypeSizeBytes(source.spec.dtype), region, source.view));
}

std::vector<std::pair<std::string, Fingerprint>> FingerprintsOfContent(
    CheckpointHandle& handle, const std::vector<std::string>& patterns) {
  const auto checkpoint = handle.Get();
  Watch watch{nb::none()};
  const ContentFingerprint content = Value(watch.Run([&] {
    return ComputeContentFingerprint(*checkpoint,
                                     {.patterns = patterns, .on_progress = watch.OnPhase()});
  }));
  std::vector<std::pair<std::string, Fingerprint>> all;
  for (const auto& [name, fingerprint] : content.tensors) all.emplace_back(name, fingerprint);
  return all;
}

}  // namespace

void BindFingerprint(nb::module_& m) {
  nb::class_<Fingerprint>(
      m, "Fingerprint",
      "Sixteen bytes that depend on the elements of a tensor and on their indices. The "
      "fingerprints "
      "of disjoint parts add up to the fingerprint of the tensor. Not a protection against "
      "tampering.")
      .def(
          "__init__",
          [](Fingerprint* self, const std::string& text) {
            new (self)
                Fingerprint(text.empty() ? Fingerprint() : Value(Fingerprint::FromString(text)));
          },
          nb::arg("text") = "",
          "``text``: as ``str`` returns it, \"spf1:\" and 32 hexadecimal digits. Default: the "
          "fingerprint of no elements.")
      .def(nb::self + nb::self)
      .def(nb::self - nb::self)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__",
           [](const Fingerprint& self) {
             return std::hash<std::uint64_t>()(self.values()[0] ^ self.values()[1]);
           })
      .def("__str__", &Fingerprint::ToString)
      .def("__repr__",
           [](const Fingerprint& self) { return "Fingerprint('" + self.ToString() + "')"; })
      .def(
          "__reduce__",
          [](const Fingerprint& self) {
            return nb::make_tuple(nb::type<Fingerprint>(), nb::make_tuple(self.ToString()));
          },
          nb::sig("def __reduce__(self) -> tuple[type[Fingerprint], tuple[str]]"));
  nb::class_<PartFingerprint>(m, "PartFingerprint", "The fingerprint of a part of a tensor.")
      .def_ro("region", &PartFingerprint::region)
      .def_ro("element_count", &PartFingerprint::element_count)
      .def_ro("fingerprint", &PartFingerprint::fingerprint);
  m.def("array_fingerprint", FingerprintOfArray, nb::arg("array"), nb::arg("shape").none(),
        nb::arg("offset").none(), "See sealpoint.fingerprint.of_array.");
  m.def("content_fingerprints", FingerprintsOfContent, nb::arg("checkpoint"), nb::arg("patterns"),
        "Reads and verifies the tensors.");
  m.def("part_fingerprints", FingerprintsOfSlots, nb::arg("slots"),
        "One per slot, in the same order.");
}

}  // namespace sealpoint::python
