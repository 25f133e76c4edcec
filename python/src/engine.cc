// SPDX-License-Identifier: Apache-2.0
#include "python/src/engine.h"

#include <nanobind/nanobind.h>

#include "python/src/gil.h"
#include "python/src/module.h"
#include "python/src/status.h"

namespace sealpoint::python {

void BindEngine(nb::module_& m) {
  nb::class_<EngineHandle>(m, "Engine",
                           "Staging memory and threads that saves of one process share.")
      .def(
          "__init__",
          [](EngineHandle* self, std::uint64_t memory_budget_bytes,
             std::uint64_t staging_buffer_size_bytes, int io_thread_count, bool direct_io) {
            new (self) EngineHandle{
                Value(Engine::Create({.memory_budget_bytes = memory_budget_bytes,
                                      .staging_buffer_size_bytes = staging_buffer_size_bytes,
                                      .io_thread_count = io_thread_count,
                                      .direct_io = direct_io}))};
          },
          nb::arg("memory_budget_bytes") = EngineOptions().memory_budget_bytes,
          nb::arg("staging_buffer_size_bytes") = EngineOptions().staging_buffer_size_bytes,
          nb::arg("io_thread_count") = EngineOptions().io_thread_count,
          nb::arg("direct_io") = EngineOptions().direct_io)
      .def(
          "map_memory", [](const EngineHandle& self) { Check(self.engine->MapMemory()); },
          nb::call_guard<GilRelease>(),
          "Maps all of the memory now, so that the first save is as fast as the later ones.")
      .def_prop_ro("mapped_bytes",
                   [](const EngineHandle& self) { return self.engine->stats().mapped_bytes; });
}

}  // namespace sealpoint::python
