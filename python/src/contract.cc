// SPDX-License-Identifier: Apache-2.0
#include "python/src/contract.h"

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

}  // namespace

LoadContract ContractOf(const ContractWords& words) {
  return {.missing = OnMismatchOf(std::get<0>(words), "missing"),
          .unexpected = OnMismatchOf(std::get<1>(words), "unexpected"),
          .dtype = OnMismatchOf(std::get<2>(words), "dtype"),
          .shape = OnMismatchOf(std::get<3>(words), "shape"),
          .coverage = OnMismatchOf(std::get<4>(words), "coverage")};
}

std::optional<Rounding> RoundingOf(const std::optional<std::string>& convert) {
  if (!convert) return std::nullopt;
  if (*convert == "exact") return Rounding::kExact;
  if (*convert == "nearest") return Rounding::kNearestEven;
  throw StatusError(Status(Code::kInvalidArgument,
                           "convert is " + *convert + ", expected None, exact or nearest"));
}

}  // namespace sealpoint::python
