// SPDX-License-Identifier: Apache-2.0
//
// A save of one process.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

#include "python/src/attributes.h"
#include "python/src/engine.h"
#include "python/src/module.h"
#include "python/src/tensor_source.h"
#include "python/src/watch.h"
#include "sealpoint/communicator.h"
#include "sealpoint/saver.h"

namespace sealpoint::python {
namespace {

using StoredCuts = decltype(SaverOptions::stored_cuts);
using Named = nb::typed<nb::dict, nb::str, nb::any>;

// What is saved, and from where. Keeps the arrays in place while it lives.
struct State {
  ArrayReader arrays{ArrayReader::Access::kRead};
  Declaration declaration{};
  std::vector<MemoryView> views{};
  std::vector<ObjectSource> objects{};

  void AddTensors(const Named& tensors, const Encoding& encoding, const nb::dict& attributes) {
    for (const auto& [name, array] : tensors) {
      TensorSource source = SourceOf(arrays, NameOf(name, "tensor's name"), array, encoding);
      if (attributes.contains(name)) {
        source.spec.attributes = AttributesOf(nb::cast<AttributesDict>(attributes[name]));
      }
      static_cast<void>(Value(declaration.Add({.tensor = std::move(source.spec)})));
      views.push_back(std::move(source.view));
    }
  }

  void AddObjects(const Named& values, Codec codec) {
    for (const auto& [key, object] : values) {
      const std::string name = NameOf(key, "object's name");
      objects.push_back(ObjectSourceOf(arrays, name, object));
      Check(declaration.AddObject(
          {.name = name, .media_type = objects.back().media_type, .codec = codec}));
    }
  }

  Sources Bind() const {
    Sources sources(declaration);
    for (std::size_t slot = 0; slot < views.size(); ++slot) {
      Check(sources.Bind(slot, views[slot]));
    }
    for (std::size_t i = 0; i < objects.size(); ++i) {
      Check(sources.BindObject(declaration.objects()[i].name, objects[i].bytes));
    }
    return sources;
  }
};

CommitInfo Save(const EngineHandle& engine, const SaveTarget& target, const Named& tensors,
                const Named& objects, const Encoding& encoding, const SaveOptions& options,
                std::uint64_t blob_size_max_bytes, const StoredCuts& stored_cuts, bool fingerprints,
                const Named& tensor_attributes, nb::handle progress) {
  State state;
  state.AddTensors(tensors, encoding, tensor_attributes);
  state.AddObjects(objects, encoding.codec);
  const std::shared_ptr<Engine> kept = engine.engine;
  Watch watch(progress);
  return Value(watch.Run([&]() -> Result<CommitInfo> {
    const auto comm = SelfCommunicator();
    const auto saver = Saver::Create(*kept, *comm,
                                     {.blob_size_max_bytes = blob_size_max_bytes,
                                      .fingerprints = fingerprints,
                                      .stored_cuts = stored_cuts,
                                      .on_progress = watch.OnPhase()});
    if (!saver.ok()) return saver.error();
    return (*saver)->Save(target, options, state.Bind());
  }));
}

}  // namespace

void BindSave(nb::module_& m) {
  m.def("save", Save, nb::arg("engine"), nb::arg("target"), nb::arg("tensors"), nb::arg("objects"),
        nb::arg("encoding"), nb::arg("options"), nb::arg("blob_size_max_bytes"),
        nb::arg("stored_cuts"), nb::arg("fingerprints"), nb::arg("tensor_attributes"),
        nb::arg("progress").none(), "Saves the state of one process; see sealpoint.save.");
}

}  // namespace sealpoint::python
