// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/storages.h"

#if SEALPOINT_CKPT_S3
#include "sealpoint/s3.h"
#endif

namespace sealpoint::tools {

void RegisterStorages() {
#if SEALPOINT_CKPT_S3
  // Fails only for a scheme that is none.
  static_cast<void>(RegisterS3Storage());
#endif
}

}  // namespace sealpoint::tools
