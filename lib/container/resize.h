// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_CONTAINER_RESIZE_H_
#define SEALPOINT_LIB_CONTAINER_RESIZE_H_

#include <cstdint>

#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::container {

// Resizes to a length requested by a file or a caller. Errors: Io if out of memory; the bytes are
// then unchanged.
Status ResizeBytes(Bytes& bytes, std::uint64_t size);

}  // namespace sealpoint::internal::container

#endif  // SEALPOINT_LIB_CONTAINER_RESIZE_H_
