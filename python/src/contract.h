// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PYTHON_SRC_CONTRACT_H_
#define SEALPOINT_PYTHON_SRC_CONTRACT_H_

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "sealpoint/dtype.h"
#include "sealpoint/read_plan.h"

namespace sealpoint::python {

namespace nb = nanobind;

// LoadContract: what differences between request and checkpoint lead to.
void BindContract(nb::module_& m);

// "exact" or "nearest". Throws InvalidArgument.
std::optional<Rounding> RoundingOf(const std::optional<std::string>& convert);

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_CONTRACT_H_
