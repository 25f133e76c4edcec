// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "compute.h"
#include "sealpoint/status.h"

namespace char_lm {

// False in a build without the CUDA Toolkit.
bool HasCuda();

// Computes on a CUDA device: rank r uses number r modulo their count. The driver is looked for at
// run time. What is made belongs to the thread that calls this, and ends the process where a call
// of the driver fails, as MPI does. Errors: Device (no driver, no device, one without kernels),
// Unsupported (not HasCuda).
sealpoint::Result<MakeCompute> OnCuda(std::size_t rank);

}  // namespace char_lm
