// SPDX-License-Identifier: Apache-2.0
//
// The program ckpt, within the interpreter: it reads and writes the storages that Python registers.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <signal.h>

#include <optional>
#include <string>
#include <vector>

#include "python/src/gil.h"
#include "python/src/module.h"
#include "tools/ckpt/program.h"
#include "tools/common/json.h"

namespace sealpoint::python {
namespace {

namespace nb = nanobind;

// A signal ends the process at once, as it does any program; the interpreter would only note it.
class DefaultSignal {
 public:
  explicit DefaultSignal(int number) : number_(number) {
    struct sigaction action{};
    action.sa_handler = SIG_DFL;
    (void)sigaction(number_, &action, &before_);
  }
  ~DefaultSignal() { (void)sigaction(number_, &before_, nullptr); }
  DefaultSignal(const DefaultSignal&) = delete;
  DefaultSignal& operator=(const DefaultSignal&) = delete;

 private:
  const int number_;
  struct sigaction before_{};
};

std::optional<int> RunCommand(const nb::list& words) {
  std::vector<const char*> argv;
  for (const nb::handle word : words) argv.push_back(nb::cast<nb::bytes>(word).c_str());
  const GilRelease released;
  const DefaultSignal interrupt(SIGINT);
  const DefaultSignal pipe(SIGPIPE);
  const auto status = tools::RunProgram(argv);
  return status ? std::optional(static_cast<int>(*status)) : std::nullopt;
}

}  // namespace

void BindCommand(nb::module_& m) {
  m.attr("json_version") = tools::kJsonVersion;
  m.def("run_command", RunCommand, nb::arg("words"),
        nb::sig("def run_command(words: list[bytes]) -> int | None"),
        "Runs ckpt and closes standard output. Returns the exit status, or None for a command of "
        "this package.");
}

}  // namespace sealpoint::python
