// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_HOST_MAPPING_H_
#define SEALPOINT_LIB_DEVICE_HOST_MAPPING_H_

#include <cstdint>

#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::device {

// Unit of sizes of staging memory; the smallest page size of Linux.
inline constexpr std::uint64_t kPageBytes = 4096;

// Page size of this system: kPageBytes, or 64 KiB on many aarch64 hosts. Thread-safe.
std::uint64_t SystemPageBytes();

// Anonymous memory for staging: aligned to pages, to huge pages from their size on; backed by huge
// pages where offered; every page present; absent in forked children. `size_bytes` is a positive
// multiple of 4096, at most 2^63. Errors: Io (no memory).
Result<MutableByteSpan> MapHostMemory(std::uint64_t size_bytes);

// Gives back exactly what MapHostMemory returned.
void UnmapHostMemory(MutableByteSpan bytes);

}  // namespace sealpoint::internal::device

#endif  // SEALPOINT_LIB_DEVICE_HOST_MAPPING_H_
