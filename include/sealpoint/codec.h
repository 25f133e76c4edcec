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
  // Groups the bytes of elements by significance (all first bytes, then all second bytes, …) and
  // applies zstd. Level 1 is a preset for floating-point data: faster and smaller than other
  // levels.
  kByteSplitZstd = 2,
};

// "none", "zstd", "bytesplit+zstd"; "unknown" for any other value.
SEALPOINT_EXPORT std::string_view CodecName(Codec codec);

}  // namespace sealpoint

#endif  // SEALPOINT_CODEC_H_
