// SPDX-License-Identifier: Apache-2.0
#include "python/src/engine.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "python/src/gil.h"
#include "python/src/module.h"
#include "python/src/status.h"

namespace sealpoint::python {
namespace {

// Raises what check of sealpoint/_arguments.py says of them.
template <typename... Arguments>
void CheckArguments(Arguments&&... arguments) {
  nb::module_::import_("sealpoint._arguments").attr("check")(std::forward<Arguments>(arguments)...);
}

int ThreadsOf(nb::handle threads) {
  return threads.is_none() ? kThreadsAuto : nb::cast<int>(threads);
}

}  // namespace

void BindEngine(nb::module_& m) {
  nb::class_<EngineHandle>(
      m, "Engine",
      "Staging memory and threads shared by the saves of one process. Thread-safe.\n\n"
      "Examples:\n"
      "    >>> import sealpoint\n"
      "    >>> engine = sealpoint.Engine(memory_budget_bytes=64 << 20)\n"
      "    >>> sealpoint.save({'w': b'12'}, 'checkpoint', engine=engine).step is None\n"
      "    True\n")
      .def(
          "__init__",
          [](EngineHandle* self, nb::handle memory_budget_bytes,
             nb::handle staging_buffer_size_bytes, nb::handle io_thread_count,
             nb::handle direct_io) {
            CheckArguments(nb::arg("memory_budget_bytes") = memory_budget_bytes,
                           nb::arg("staging_buffer_size_bytes") = staging_buffer_size_bytes,
                           nb::arg("io_thread_count") = io_thread_count,
                           nb::arg("direct_io") = direct_io);
            new (self) EngineHandle{Value(Engine::Create(
                {.memory_budget_bytes = nb::cast<std::uint64_t>(memory_budget_bytes),
                 .staging_buffer_size_bytes = nb::cast<std::uint64_t>(staging_buffer_size_bytes),
                 .io_thread_count = ThreadsOf(io_thread_count),
                 .direct_io = nb::cast<bool>(direct_io)}))};
          },
          nb::arg("memory_budget_bytes").none() = EngineOptions().memory_budget_bytes,
          nb::arg("staging_buffer_size_bytes").none() = EngineOptions().staging_buffer_size_bytes,
          nb::arg("io_thread_count").none() = nb::none(),
          nb::arg("direct_io").none() = EngineOptions().direct_io,
          nb::sig("def __init__(self, memory_budget_bytes: int = ..., staging_buffer_size_bytes: "
                  "int = ..., io_thread_count: int | None = ..., direct_io: bool = ...) -> None"))
      .def(
          "map_memory", [](const EngineHandle& self) { Check(self.engine->MapMemory()); },
          nb::call_guard<GilRelease>(),
          "Maps all of the memory now, so that the first save is as fast as later ones.")
      .def(
          "map_memory_in_background",
          [](const EngineHandle& self, nb::handle size_bytes) {
            CheckArguments(nb::arg("size_bytes") = size_bytes);
            const auto bytes = nb::cast<std::uint64_t>(size_bytes);
            const GilRelease released;
            Check(self.engine->MapMemoryInBackground(bytes));
          },
          nb::arg("size_bytes").none(),
          nb::sig("def map_memory_in_background(self, size_bytes: int) -> None"),
          "Starts to map memory for a save of ``size_bytes`` of tensors, and returns.")
      .def_prop_ro("mapped_bytes",
                   [](const EngineHandle& self) { return self.engine->stats().mapped_bytes; })
      .def("__repr__", [](const EngineHandle& self) {
        return "<sealpoint.Engine: " + std::to_string(self.engine->stats().mapped_bytes) +
               " bytes of memory mapped>";
      });
}

}  // namespace sealpoint::python
