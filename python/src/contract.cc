// SPDX-License-Identifier: Apache-2.0
#include "python/src/contract.h"

#include <nanobind/stl/string.h>

#include <array>
#include <string_view>
#include <utility>

#include "python/src/status.h"

namespace sealpoint::python {
namespace {

OnMismatch OnMismatchOf(const std::string& name, const char* what) {
  constexpr std::array<std::pair<std::string_view, OnMismatch>, 3> kNames = {
      {{"error", OnMismatch::kError},
       {"report", OnMismatch::kReport},
       {"allow", OnMismatch::kAllow}}};
  for (const auto& [word, value] : kNames) {
    if (word == name) return value;
  }
  throw StatusError(Status(Code::kInvalidArgument, std::string(what) + " is " + name +
                                                       ", expected error, report or allow"));
}

void MakeContract(LoadContract* self, const std::string& missing, const std::string& unexpected,
                  const std::string& dtype, const std::string& shape, const std::string& coverage) {
  new (self) LoadContract{.missing = OnMismatchOf(missing, "missing"),
                          .unexpected = OnMismatchOf(unexpected, "unexpected"),
                          .dtype = OnMismatchOf(dtype, "dtype"),
                          .shape = OnMismatchOf(shape, "shape"),
                          .coverage = OnMismatchOf(coverage, "coverage")};
}

}  // namespace

void BindContract(nb::module_& m) {
  nb::class_<LoadContract>(m, "LoadContract",
                           "Action for each kind of difference: error, report or allow.")
      .def("__init__", MakeContract, nb::kw_only(), nb::arg("missing") = "error",
           nb::arg("unexpected") = "allow", nb::arg("dtype") = "error", nb::arg("shape") = "error",
           nb::arg("coverage") = "allow");
}

std::optional<Rounding> RoundingOf(const std::optional<std::string>& convert) {
  if (!convert) return std::nullopt;
  if (*convert == "exact") return Rounding::kExact;
  if (*convert == "nearest") return Rounding::kNearestEven;
  throw StatusError(Status(Code::kInvalidArgument,
                           "convert is " + *convert + ", expected None, exact or nearest"));
}

}  // namespace sealpoint::python
