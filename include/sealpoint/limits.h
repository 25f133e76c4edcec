// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIMITS_H_
#define SEALPOINT_LIMITS_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "sealpoint/bytes.h"
#include "sealpoint/export.h"

namespace sealpoint {

// Limits on the parts of a checkpoint. A reader enforces the limits before it allocates memory, and
// a writer enforces them before it commits. A checkpoint that exceeds a limit is refused with
// LimitExceeded. The defaults are defined in spec/limits.md; callers may raise the limits.
struct Limits {
  std::uint64_t index_size_max_bytes = 1 * kGiB;
  std::uint64_t manifest_size_max_bytes = 1 * kGiB;
  std::uint64_t tensor_count_max = std::uint64_t{1} << 22;
  std::uint64_t object_count_max = std::uint64_t{1} << 20;
  std::uint64_t blob_count_max = std::uint64_t{1} << 20;
  std::uint64_t shard_count_max = std::uint64_t{1} << 26;
  // Total number of records in all blobs. A check of the index needs one bit of memory per record.
  std::uint64_t record_count_max = std::uint64_t{1} << 28;
  // Number of shards in one box list.
  std::uint64_t box_list_shard_count_max = std::uint64_t{1} << 16;
  // Number of corners in the tiling check of one box list (2^ndim corners per box).
  std::uint64_t tiling_corner_count_max = std::uint64_t{1} << 20;
  // Number of corners per shard in the tiling check. This limit keeps the work of the tiling check
  // linear in the size of the index.
  std::uint64_t tiling_corners_per_shard_max = std::uint64_t{1} << 10;
  std::uint64_t blob_size_max_bytes = std::uint64_t{1} << 50;
  friend bool operator==(const Limits&, const Limits&) = default;
};

// Returns the default limits, each multiplied by `factor` and capped at 2^64 - 1. Use raised limits
// for trusted checkpoints that were written with raised limits.
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

// Limits that the format fixes; callers cannot raise them.
inline constexpr std::uint32_t kNdimMax = 32;
inline constexpr std::uint64_t kNameSizeMaxBytes = 1024;
inline constexpr std::uint64_t kMediaTypeSizeMaxBytes = 255;
inline constexpr std::uint64_t kProvenanceValueSizeMaxBytes = 64 * kKiB;
inline constexpr std::uint64_t kChunkSizeMinBytes = 4 * kKiB;
inline constexpr std::uint64_t kChunkSizeMaxBytes = 128 * kMiB;
// Maximum size of a chunk with a codec. This limit is smaller than kChunkSizeMaxBytes, because a
// reader can decode a chunk only as a whole.
inline constexpr std::uint64_t kCodedChunkSizeMaxBytes = 16 * kMiB;
inline constexpr std::uint64_t kChunkSizeDefaultBytes = 4 * kMiB;

// Maximum value of a thread option. Larger and negative values are InvalidArgument.
inline constexpr int kThreadsMax = 1024;

// Default of all thread options: the library chooses the number of threads. The comment of each
// option documents the chosen number. For loads, the library divides the number of CPUs available
// to this process (its affinity mask) by the number of ranks that share these CPUs. A load uses at
// most 16 threads, and at most one thread per 4 MiB to read. A collective call counts the ranks on
// the same host that have the same affinity mask. Other calls use the number of ranks per host that
// the job's launcher sets in the environment (Open MPI, MPICH, Slurm, torchrun). Such calls assume
// one rank if the environment has no such number. They also assume one rank if the affinity mask is
// so small that each rank can have its own CPUs.
//
// This value is 0 in C and None in Python.
inline constexpr int kThreadsAuto = 0;

// A deadline that never passes. With this deadline, the program hangs if storage or another rank
// hangs. Every other deadline must be above zero. This value is SEALPOINT_FOREVER in C and None in
// Python.
inline constexpr std::chrono::milliseconds kForever = std::chrono::milliseconds::max();

// Default deadline for one collective call. The first rank that finishes writing waits until the
// last rank has finished. Half an hour is enough even if one rank writes 64 GiB at 40 MB/s while
// another rank has nothing to write.
inline constexpr std::chrono::milliseconds kDefaultDeadline = std::chrono::minutes(30);

// Default deadline for a complete background save (SaverOptions::background_deadline) and for a
// promotion. This deadline is longer than the usual interval between two checkpoints.
inline constexpr std::chrono::milliseconds kDefaultBackgroundDeadline = std::chrono::hours(2);

// Maximum part of a gap that counts toward the deadlines of a background save. A gap is the time
// between two calls that advance the save (Poll, Wait, calls to the saver). If a program trains for
// an hour between two calls, only one minute of this hour counts.
inline constexpr std::chrono::milliseconds kPollGapMax = std::chrono::minutes(1);

// A deadline for work that advances only when the program polls. A value type with the thread
// safety of an int.
class PolledDeadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit PolledDeadline(std::chrono::milliseconds limit, Clock::time_point now = Clock::now())
      : limit_(limit), last_poll_(now) {}

  // Adds the time since the last poll, but at most kPollGapMax. Returns true once the sum has
  // reached the limit. If the limit is kForever, never returns true.
  bool IsOver(Clock::time_point now = Clock::now()) {
    counted_ += std::clamp<Clock::duration>(now - last_poll_, Clock::duration(0), kPollGapMax);
    last_poll_ = now;
    const auto counted = std::chrono::duration_cast<std::chrono::milliseconds>(counted_);
    return counted >= limit_;
  }
  // Restarts the clock, so that the time since the last poll is not counted.
  void Resume(Clock::time_point now = Clock::now()) { last_poll_ = now; }
  std::chrono::milliseconds limit() const { return limit_; }

 private:
  std::chrono::milliseconds limit_;
  Clock::time_point last_poll_;
  Clock::duration counted_{0};
};

}  // namespace sealpoint

#endif  // SEALPOINT_LIMITS_H_
