// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_DIGEST_H_
#define SEALPOINT_DIGEST_H_

#include <cstdint>

#include "sealpoint/bytes.h"
#include "sealpoint/export.h"
#include "sealpoint/id.h"

namespace sealpoint {

// Digest algorithms. Values are frozen in the file format (spec/registries.md). A checksum detects
// corruption, not tampering (SECURITY.md).
enum class DigestAlgorithm : std::uint16_t {
  kXxh3_128 = 1,
};

// XXH3-128 with seed 0 in canonical byte order, at memory speed. Thread-safe.
SEALPOINT_EXPORT Digest ComputeDigest(ByteSpan bytes);

}  // namespace sealpoint

#endif  // SEALPOINT_DIGEST_H_
