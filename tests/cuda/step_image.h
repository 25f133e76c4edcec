// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_CUDA_STEP_IMAGE_H_
#define SEALPOINT_TESTS_CUDA_STEP_IMAGE_H_

#include "sealpoint/bytes.h"

namespace sealpoint::testing {

// step_kernel.cu, compiled for all architectures.
ByteSpan StepImage();

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CUDA_STEP_IMAGE_H_
