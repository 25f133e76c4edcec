// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_KERNEL_IMAGE_H_
#define SEALPOINT_LIB_DEVICE_KERNEL_IMAGE_H_

#include "sealpoint/bytes.h"

namespace sealpoint::internal::device {

// kernels.cu, compiled for all architectures; empty in a build without the CUDA Toolkit.
ByteSpan KernelImage();

}  // namespace sealpoint::internal::device

#endif  // SEALPOINT_LIB_DEVICE_KERNEL_IMAGE_H_
