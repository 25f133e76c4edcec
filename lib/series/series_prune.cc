// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/series/checked.h"
#include "lib/series/distinct_bytes.h"
#include "lib/series/retention.h"
#include "lib/series/series_removal.h"
#include "sealpoint/series.h"

namespace sealpoint {
namespace {

using internal::series::CheckpointSummary;
using internal::series::DeltaIndexes;
using internal::series::IsGone;
using internal::series::SeriesDelta;

std::optional<double> FindMetric(const internal::metadata::Metadata& index,
                                 const RetentionPolicy& policy) {
  // No key is empty.
  const std::string metric = policy.keep_best ? policy.keep_best->metric : std::string();
  for (const auto& [key, value] : index.provenance()) {
    if (key == metric) return internal::series::ParseMetric(value);
  }
  return std::nullopt;
}

// Damage is a fact; what the storage failed to read is an error.
Result<CheckpointSummary> Summarize(const Storage& storage, const SeriesEntry& entry,
                                    const RetentionPolicy& policy, const Limits& limits,
                                    internal::series::CheckedHistory& history) {
  const auto opened = internal::container::OpenCommitted(storage, entry.path, limits, true);
  CheckpointSummary summaries{.is_whole = opened.ok()};
  if (opened.ok()) {
    summaries.created_unix_ns = opened->index.metadata.created_unix_ns();
    summaries.metric = FindMetric(opened->index.metadata, policy);
    summaries.is_checked = history.Look(entry.step, opened->index.metadata).ok();
  }
  if (policy.max_bytes > 0) {
    auto files = internal::series::ListOurFiles(storage, entry);
    if (!files.ok() && !IsGone(files.error())) return files.error();
    if (files.ok()) summaries.files = std::move(files).value();
  }
  if (opened.ok()) return summaries;
  const Status& error = opened.error();
  const bool is_damage = VerdictOf(error) == Verdict::kCorrupt ||
                         VerdictOf(error) == Verdict::kIncomplete ||
                         error.code() == Code::kUnsupported || IsGone(error);
  if (!is_damage) return error;
  summaries.damage = error.ToString();
  return summaries;
}

// Summaries of the newest checkpoints, as many as the policy needs; newest first.
Result<std::vector<CheckpointSummary>> SummarizeNewest(const Storage& storage,
                                                       const SeriesListing& listing,
                                                       const RetentionPolicy& policy,
                                                       const Limits& limits) {
  std::vector<CheckpointSummary> summaries;
  std::vector<AttemptId> whole;
  internal::series::CheckedHistory history;
  const bool all = internal::series::NeedsAllSummaries(policy) || !listing.forks.empty();
  for (const SeriesEntry& entry : listing.entries) {
    const bool is_enough = !all && whole.size() >= policy.keep_last;
    if (entry.verdict != Verdict::kCommitted || is_enough) break;
    SEALPOINT_ASSIGN_OR_RETURN(summaries.emplace_back(),
                               Summarize(storage, entry, policy, limits, history));
    const bool is_copy = std::find(whole.begin(), whole.end(), entry.attempt) != whole.end();
    if (summaries.back().is_whole && !is_copy) whole.push_back(entry.attempt);
  }
  return summaries;
}

struct Decided {
  std::vector<PruneDecision> decisions;
  std::vector<std::size_t> order;  // of the deletions
};

Result<Decided> Decide(const Series& series, const Storage& storage, const RetentionPolicy& policy,
                       const Limits& limits, DeltaIndexes& indexes) {
  SEALPOINT_RETURN_IF_ERROR(internal::series::CheckPolicy(policy));
  SEALPOINT_ASSIGN_OR_RETURN(const SeriesListing listing, series.List());
  for (const SeriesEntry& entry : listing.entries) {
    if (entry.verdict == Verdict::kUnreadable) return entry.problem;
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<CheckpointSummary> summaries,
                             SummarizeNewest(storage, listing, policy, limits));
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<SeriesDelta> deltas, indexes.Find(listing.entries));
  std::vector<PruneDecision> decisions =
      internal::series::DecideRetention(listing, policy, summaries, deltas);
  SEALPOINT_RETURN_IF_ERROR(
      internal::series::CheckSomeIsRanked(policy, summaries, decisions).AtPath(series.path()));
  std::vector<std::size_t> order = internal::series::DeletionOrder(listing, decisions, deltas);
  return Decided{.decisions = std::move(decisions), .order = std::move(order)};
}

// R-SER-11, once for all that is deleted: all of it is older than the newest whole one.
Status SyncANewerOne(const Storage& storage, const std::vector<PruneDecision>& decisions,
                     const Limits& limits) {
  std::vector<SeriesEntry> newer;
  for (const PruneDecision& decision : decisions) {
    if (!decision.keep) break;
    newer.push_back(decision.entry);
  }
  // What is deleted is under none of these names: copies stay together.
  return internal::series::MakeSureOfANewerOne(storage, newer.begin(), newer.end(), AttemptId{},
                                               limits)
      .AtRule("R-SER-11");
}

// What deletions free: of a file that several directories of the series share, nothing before the
// last of them.
class FreedBytes {
 public:
  FreedBytes(const Storage& storage, const std::vector<PruneDecision>& decisions) {
    for (const PruneDecision& decision : decisions) {
      auto files = internal::series::ListOurFiles(storage, decision.entry);
      // One that cannot be listed, a link, say: as if it shared nothing.
      const std::vector<EntryInfo> one = {{.size_bytes = decision.entry.size_bytes}};
      files_.push_back(files.ok() ? std::move(files).value() : one);
      static_cast<void>(bytes_.Add(files_.back()));
    }
  }
  std::uint64_t OfDeleting(std::size_t decision) { return bytes_.Remove(files_[decision]); }

 private:
  internal::series::DistinctBytes bytes_;
  std::vector<std::vector<EntryInfo>> files_;
};

// Stops at the first error.
Status DeleteDecided(const Storage& storage, const std::string& path, const Limits& limits,
                     const std::vector<std::size_t>& order, DeltaIndexes& indexes, FreedBytes freed,
                     PruneReport& report) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto series, storage.OpenDirectory(path));
  SEALPOINT_RETURN_IF_ERROR(SyncANewerOne(storage, report.decisions, limits));
  for (const std::size_t i : order) {
    PruneDecision* const decision = &report.decisions[i];
    const Status deleted =
        internal::series::DeleteCommitted(storage, *series, decision->entry, indexes);
    if (IsGone(deleted)) {
      decision->reasons.emplace_back("another process removed it meanwhile");
      continue;
    }
    SEALPOINT_RETURN_IF_ERROR(deleted);
    decision->is_deleted = true;
    report.bytes_freed += freed.OfDeleting(i);
  }
  return {};
}

}  // namespace

PruneReport Series::Prune(const RetentionPolicy& policy, const PruneOptions& options) const {
  PruneReport report;
  DeltaIndexes indexes(*storage_, options.limits);
  auto decided = Decide(*this, *storage_, policy, options.limits, indexes);
  report.status = decided.status();
  if (!decided.ok()) return report;
  report.decisions = std::move(decided->decisions);
  if (decided->order.empty()) return report;
  FreedBytes freed(*storage_, report.decisions);
  if (!options.dry_run) {
    report.status = DeleteDecided(*storage_, path_, options.limits, decided->order, indexes,
                                  std::move(freed), report);
    return report;
  }
  for (const std::size_t i : decided->order) report.bytes_freed += freed.OfDeleting(i);
  return report;
}

}  // namespace sealpoint
