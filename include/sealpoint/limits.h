// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIMITS_H_
#define SEALPOINT_LIMITS_H_

#include <cstdint>

#include "sealpoint/bytes.h"

namespace sealpoint {

// Limits that a reader (and the writer, before it commits) enforces before it allocates; exceeding
// one is LimitExceeded. The defaults are those of spec/limits.md; callers may raise them.
struct Limits {
  std::uint64_t index_size_max_bytes = 1 * kGiB;
  std::uint64_t manifest_size_max_bytes = 1 * kGiB;
  std::uint64_t tensor_count_max = std::uint64_t{1} << 22;
  std::uint64_t object_count_max = std::uint64_t{1} << 20;
  std::uint64_t blob_count_max = std::uint64_t{1} << 20;
  std::uint64_t shard_count_max = std::uint64_t{1} << 26;
  // Records of all blobs together. Checking the index needs one bit for each.
  std::uint64_t record_count_max = std::uint64_t{1} << 28;
  // Shards in one box list, and corners in its tiling check (2^ndim per box).
  std::uint64_t box_list_shard_count_max = std::uint64_t{1} << 16;
  std::uint64_t tiling_corner_count_max = std::uint64_t{1} << 20;
  // Corners per shard, so that the work remains linear in the size of the index. 6 divided
  // dimensions and runs of 11 boxes need 704.
  std::uint64_t tiling_corners_per_shard_max = std::uint64_t{1} << 10;
  std::uint64_t blob_size_max_bytes = std::uint64_t{1} << 50;
  friend bool operator==(const Limits&, const Limits&) = default;
};

// Multiplies each limit by `factor`, saturating at 64 bits. For trusted checkpoints that were
// written with raised limits.
inline Limits RaisedLimits(std::uint64_t factor) {
  Limits limits;
  for (const auto limit :
       {&Limits::index_size_max_bytes, &Limits::manifest_size_max_bytes, &Limits::tensor_count_max,
        &Limits::object_count_max, &Limits::blob_count_max, &Limits::shard_count_max,
        &Limits::record_count_max, &Limits::box_list_shard_count_max,
        &Limits::tiling_corner_count_max, &Limits::tiling_corners_per_shard_max,
        &Limits::blob_size_max_bytes}) {
    const std::uint64_t highest = ~std::uint64_t{0};
    const bool fits = factor == 0 || limits.*limit <= highest / factor;
    limits.*limit = fits ? limits.*limit * factor : highest;
  }
  return limits;
}

// Fixed by the format; cannot be raised.
inline constexpr std::uint32_t kNdimMax = 32;
inline constexpr std::uint64_t kNameSizeMaxBytes = 1024;
inline constexpr std::uint64_t kMediaTypeSizeMaxBytes = 255;
inline constexpr std::uint64_t kProvenanceValueSizeMaxBytes = 64 * kKiB;
inline constexpr std::uint64_t kChunkSizeMinBytes = 4 * kKiB;
inline constexpr std::uint64_t kChunkSizeMaxBytes = 128 * kMiB;
// Maximum size of a chunk with a codec. A reader can only decode it as a whole.
inline constexpr std::uint64_t kCodedChunkSizeMaxBytes = 16 * kMiB;
inline constexpr std::uint64_t kChunkSizeDefaultBytes = 4 * kMiB;

}  // namespace sealpoint

#endif  // SEALPOINT_LIMITS_H_
