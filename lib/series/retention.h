// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SERIES_RETENTION_H_
#define SEALPOINT_LIB_SERIES_RETENTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/series/deltas.h"
#include "sealpoint/series.h"
#include "sealpoint/storage.h"

// Selects the checkpoints of a series to keep. Pure: no storage, no clock.

namespace sealpoint::internal::series {

// R-SER-14.
Status CheckPolicy(const RetentionPolicy& policy);
// Properties of a committed checkpoint that a policy may use.
struct CheckpointSummary {
  bool is_whole = false;  // its file-level check passed
  std::string damage{};   // if not whole
  std::uint64_t created_unix_ns = 0;
  std::optional<double> metric{};  // absent: never among the best
  bool is_checked = false;         // for silent data corruption
  std::vector<EntryInfo> files{};  // of our names, if the policy bounds bytes
};

// The value of a metric: a complete, finite decimal number. Empty for any other text.
std::optional<double> ParseMetric(std::string_view text);

// True if the policy needs summaries of every checkpoint; otherwise only those of the newest ones
// are needed, until keep_last intact ones are found.
bool NeedsAllSummaries(const RetentionPolicy& policy);

// R-SER-14 and R-FPR-04, of the decisions that were made by these summaries: a metric that none has
// ranks none, and without a checked checkpoint none is kept as such.
Status CheckSomeIsRanked(const RetentionPolicy& policy,
                         const std::vector<CheckpointSummary>& summaries,
                         const std::vector<PruneDecision>& decisions);

// One decision per entry. `summaries` belong to the first entries of the listing, which are the
// committed ones, newest first; all of these, or enough for the policy. `deltas` are all deltas of
// the listing.
std::vector<PruneDecision> DecideRetention(const SeriesListing& listing,
                                           const RetentionPolicy& policy,
                                           const std::vector<CheckpointSummary>& summaries,
                                           const std::vector<SeriesDelta>& deltas = {});

// R-DLT-12: the numbers of the decisions to delete, oldest first, but each behind the deltas that
// need it. Deltas with an unknown base come first.
std::vector<std::size_t> DeletionOrder(const SeriesListing& listing,
                                       const std::vector<PruneDecision>& decisions,
                                       const std::vector<SeriesDelta>& deltas);

}  // namespace sealpoint::internal::series

#endif  // SEALPOINT_LIB_SERIES_RETENTION_H_
