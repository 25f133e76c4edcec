// SPDX-License-Identifier: Apache-2.0
#include "lib/series/deltas.h"

#include <memory>
#include <optional>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/series/series_scan.h"
#include "lib/storage/path.h"

namespace sealpoint::internal::series {
namespace {

// Zero if its marker has gone or was replaced since.
Result<AttemptId> ReadBase(const Storage& storage, const SeriesEntry& entry, const Limits& limits) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto directory,
                             container::OpenCheckpointDirectory(storage, entry.path));
  SEALPOINT_ASSIGN_OR_RETURN(const container::MarkerFile marker, container::ReadMarker(*directory));
  SEALPOINT_RETURN_IF_ERROR(container::CheckCommitted(entry.path, marker.marker));
  if (marker.marker.attempt != entry.attempt) return AttemptId();
  SEALPOINT_ASSIGN_OR_RETURN(const container::IndexFile index,
                             container::ReadIndex(*directory, marker.marker, limits));
  return index.metadata.base().value_or(BaseRef{}).attempt;
}

bool IsDamage(const Status& error) {
  return error.code() == Code::kCorrupt || error.code() == Code::kIncomplete ||
         error.code() == Code::kUnsupported;
}

// A deletion takes the marker first: what is missing behind it is damage only if that is there.
Result<bool> IsDeleted(const Storage& storage, const SeriesEntry& entry) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto series,
                             storage.OpenDirectory(storage::ParentPath(entry.path)));
  return IsMarkerGone(*series, entry);
}

}  // namespace

Result<std::vector<SeriesDelta>> DeltaIndexes::Find(const std::vector<SeriesEntry>& entries) {
  std::vector<SeriesDelta> deltas;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const SeriesEntry& entry = entries[i];
    if (entry.verdict != Verdict::kCommitted || !entry.is_delta) continue;
    auto known = bases_.find(entry.attempt);
    if (known == bases_.end()) {
      const Result<AttemptId> base = ReadBase(storage_, entry, limits_);
      if (IsGone(base.status()) || (base.ok() && base->is_zero())) continue;
      if (!base.ok()) {
        if (!IsDamage(base.error())) return base.error();
        SEALPOINT_ASSIGN_OR_RETURN(const bool is_deleted, IsDeleted(storage_, entry));
        if (!is_deleted) deltas.push_back({.entry = i});
        continue;
      }
      known = bases_.emplace(entry.attempt, *base).first;
    }
    deltas.push_back({.entry = i, .base = known->second});
  }
  return deltas;
}

std::string WhyNeeded(const std::vector<SeriesEntry>& entries, const SeriesDelta& delta,
                      const SeriesEntry& base) {
  const SeriesEntry& entry = entries[delta.entry];
  if (entry.attempt == base.attempt) return "";
  if (delta.base == base.attempt) return StrCat("the base of ", entry.name);
  if (!delta.base.is_zero() || !base.is_base) return "";
  return StrCat("perhaps the base of ", entry.name, ", whose index is damaged");
}

std::string WhyMayBeNeeded(const SeriesEntry& other, const SeriesEntry& base) {
  const bool is_known =
      other.verdict == Verdict::kCommitted || other.verdict == Verdict::kUncommitted;
  return is_known || !base.is_base
             ? ""
             : StrCat("perhaps the base of ", other.name, ", whose marker is unknown");
}

Status CheckIsNotNeeded(const std::vector<SeriesEntry>& entries,
                        const std::vector<SeriesDelta>& deltas, const SeriesEntry& base) {
  std::string why;
  for (const SeriesDelta& delta : deltas) {
    if (why.empty()) why = WhyNeeded(entries, delta, base);
  }
  for (const SeriesEntry& other : entries) {
    if (why.empty()) why = WhyMayBeNeeded(other, base);
  }
  if (why.empty()) return {};
  return RuleError(Code::kInvalidArgument, "R-DLT-11", "not deleted: it is ", why)
      .AtPath(base.path);
}

}  // namespace sealpoint::internal::series
