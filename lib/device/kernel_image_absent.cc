// SPDX-License-Identifier: Apache-2.0
#include "lib/device/kernel_image.h"

namespace sealpoint::internal::device {

ByteSpan KernelImage() { return {}; }

}  // namespace sealpoint::internal::device
