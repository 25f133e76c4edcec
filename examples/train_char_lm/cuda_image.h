// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sealpoint/bytes.h"

namespace char_lm {

// device_kernels.cu, compiled for all architectures.
sealpoint::ByteSpan CudaImage();

}  // namespace char_lm
