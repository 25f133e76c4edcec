// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_DIGEST_H_
#define SEALPOINT_DIGEST_H_

#include <cstdint>

#include "sealpoint/bytes.h"
#include "sealpoint/export.h"
#include "sealpoint/id.h"

namespace sealpoint {

// Digest algorithms. The values are frozen in the file format (spec/registries.md). Digests detect
// corruption but not tampering (SECURITY.md).
enum class DigestAlgorithm : std::uint16_t {
  kXxh3_128 = 1,
};

// Computes XXH3-128 with seed 0, at memory speed. The digest is in canonical byte order.
// Thread-safe.
SEALPOINT_EXPORT Digest ComputeDigest(ByteSpan bytes);

}  // namespace sealpoint

#endif  // SEALPOINT_DIGEST_H_
