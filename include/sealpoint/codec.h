// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_CODEC_H_
#define SEALPOINT_CODEC_H_

#include <cstdint>
#include <string_view>

#include "sealpoint/export.h"

namespace sealpoint {

// Reversible transforms of a chunk. Values are frozen in the file format (spec/registries.md).
enum class Codec : std::uint16_t {
  kNone = 0,
  kZstd = 1,
  // Bytes of equal significance are brought together (all first bytes of the elements, then all
  // second bytes, …), then zstd. Level 1 is a preset made for floating-point data, faster and
  // smaller on it than the other levels.
  kByteSplitZstd = 2,
};

// "none", "zstd", "bytesplit+zstd"; "unknown" for any other value.
SEALPOINT_EXPORT std::string_view CodecName(Codec codec);

}  // namespace sealpoint

#endif  // SEALPOINT_CODEC_H_
