// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PYTHON_SRC_CONTRACT_H_
#define SEALPOINT_PYTHON_SRC_CONTRACT_H_

#include <optional>
#include <string>
#include <tuple>

#include "sealpoint/conversion.h"
#include "sealpoint/read_plan.h"

namespace sealpoint::python {

// What differences between request and checkpoint lead to, as (missing, unexpected, dtype, shape,
// coverage), each "error", "report" or "allow". Both throw InvalidArgument.
using ContractWords = std::tuple<std::string, std::string, std::string, std::string, std::string>;
LoadContract ContractOf(const ContractWords& words);

// "exact" or "nearest".
std::optional<Rounding> RoundingOf(const std::optional<std::string>& convert);

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_CONTRACT_H_
