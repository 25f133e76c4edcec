// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compute.h"

namespace char_lm {

// Computes on the host.
MakeCompute OnHost();

}  // namespace char_lm
