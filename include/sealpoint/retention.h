// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_RETENTION_H_
#define SEALPOINT_RETENTION_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sealpoint/export.h"

namespace sealpoint {

// Keeps the newest checkpoint of each period (for example an hour or a day, counted from 1970-01-01
// 00:00 UTC), for the newest `count` periods that have a checkpoint.
struct KeepPerPeriod {
  std::chrono::seconds period{0};  // at least one second
  std::uint32_t count = 0;         // at least 1
  friend bool operator==(const KeepPerPeriod&, const KeepPerPeriod&) = default;
};

enum class BestMetric : std::uint8_t { kLeast, kGreatest };

// Keeps the `count` checkpoints with the best value of a provenance entry
// (SaveOptions::provenance), such as {"metric.loss", "1.25"}. The value is a decimal number in C++
// and JSON syntax. Checkpoints without the entry, or with a value that is not finite, never count
// as best. Among equal values newer checkpoints are better.
struct KeepBest {
  std::string metric{};  // must begin with "metric."
  BestMetric best = BestMetric::kLeast;
  std::uint32_t count = 1;  // at least 1
  friend bool operator==(const KeepBest&, const KeepBest&) = default;
};

// Rules that select the committed checkpoints of a series to keep (spec/series.md §7). A checkpoint
// is kept if at least one rule keeps it or if it has a KEEP file. Only intact checkpoints (marker,
// index and all blob lengths are correct) count towards a number; a copy counts together with its
// original. A value type.
struct RetentionPolicy {
  // Keep this many newest checkpoints, and all newer than the last of them. At least 2: with 1, the
  // last good checkpoint would be deleted as soon as a new, still unread one exists.
  std::uint32_t keep_last = 2;
  // Keep checkpoints with a step that is a multiple of this; 0: none.
  std::uint64_t keep_every_n_steps = 0;
  // Periods use the creation time stored in the index; the order of checkpoints still follows the
  // sequence. Each entry keeps its own checkpoints.
  std::vector<KeepPerPeriod> keep_per_period{};
  std::optional<KeepBest> keep_best{};
  // Keep intact checkpoints created at most this long before the newest intact one; 0: none.
  std::chrono::seconds keep_within{0};
  // Maximum total size of the kept checkpoints in bytes; 0: no limit. Files shared by hard links
  // count once. Of the checkpoints kept by the rules above (without such rules: of all intact
  // ones), the newest that fit are kept. The newest `keep_last` and pinned checkpoints are always
  // kept, regardless of their size. Uncommitted attempts are not counted.
  std::uint64_t max_bytes = 0;
  friend bool operator==(const RetentionPolicy&, const RetentionPolicy&) = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_RETENTION_H_
