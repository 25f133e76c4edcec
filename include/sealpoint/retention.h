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

// The newest checkpoint of each period (an hour, a day; counted from 1970-01-01 00:00 UTC), for the
// newest `count` periods that have one.
struct KeepPerPeriod {
  std::chrono::seconds period{0};  // at least a second
  std::uint32_t count = 0;         // at least 1
  friend bool operator==(const KeepPerPeriod&, const KeepPerPeriod&) = default;
};

enum class BestMetric : std::uint8_t { kLeast, kGreatest };

// The `count` checkpoints with the best value of a provenance entry (SaveOptions::provenance), such
// as {"metric.loss", "1.25"}. The value is a decimal number as C++ and JSON write it. A checkpoint
// without the entry, or whose value is not a finite number, is never among the best. Among equal
// values the newer checkpoints are better.
struct KeepBest {
  std::string metric{};  // begins with "metric."
  BestMetric best = BestMetric::kLeast;
  std::uint32_t count = 1;  // at least 1
  friend bool operator==(const KeepBest&, const KeepBest&) = default;
};

// Which committed checkpoints of a series stay (spec/series.md §7): each that at least one of these
// keeps, and each with a KEEP file. Only whole ones (marker, index, and the length of each blob are
// right) count towards a number; a copy counts with what it is a copy of. Value type.
struct RetentionPolicy {
  // The newest this many, and whatever is newer than the last of them. At least 2: with 1 the last
  // good checkpoint would go as soon as there is a new one that nobody has read yet.
  std::uint32_t keep_last = 2;
  // Those whose step is a multiple of this; 0: none.
  std::uint64_t keep_every_n_steps = 0;
  // By the time of their creation, which their index holds; newer and older is still said by the
  // sequence. Each entry keeps checkpoints of its own.
  std::vector<KeepPerPeriod> keep_per_period{};
  std::optional<KeepBest> keep_best{};
  // Whole ones made at most this long before the newest whole one was, by the same time; 0: none.
  std::chrono::seconds keep_within{0};
  // What stays holds at most so many bytes: files that several checkpoints share by hard links
  // count once. Of what the rules above keep, the newest stay that fit; without such a rule, of all
  // whole ones. It takes nothing from the newest `keep_last`, nor what is pinned, however large
  // they are. Attempts that were never committed are not counted. 0: no bound.
  std::uint64_t max_bytes = 0;
  friend bool operator==(const RetentionPolicy&, const RetentionPolicy&) = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_RETENTION_H_
