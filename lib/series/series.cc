// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/series.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/series/checked.h"
#include "lib/series/series_scan.h"
#include "lib/storage/path.h"

namespace sealpoint {
namespace {

using internal::series::NeverNotFound;

bool IsCommitted(const SeriesEntry& entry) { return entry.verdict == Verdict::kCommitted; }

// Fills in what a listing of markers leaves out.
Status AddDetails(const Directory& directory, const std::string& series, SeriesEntry& entry) {
  const internal::series::DirectoryLook look =
      internal::series::LookInside(directory, series, entry.name);
  if (look.entry.verdict == Verdict::kUnreadable) return look.entry.problem;
  const bool is_same = look.entry.attempt == entry.attempt && IsCommitted(look.entry);
  if (!is_same) return Status(Code::kNotFound, "the checkpoint was deleted meanwhile");
  entry.size_bytes = look.entry.size_bytes;
  entry.is_kept = look.entry.is_kept;
  entry.is_base = look.entry.is_base;
  return {};
}

// Also finds out whether the checkpoint is checked for silent data corruption.
Status OpenAndCheck(const Storage& storage, const std::string& series, const Limits& limits,
                    internal::series::CheckedHistory& history, SeriesEntry& entry,
                    Status& checked) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto opened,
                             internal::container::OpenCommitted(storage, entry.path, limits, true));
  checked = history.Look(entry.step, opened.index.metadata);
  return AddDetails(*opened.directory, series, entry);
}

void PassOver(SeriesEntry entry, const Status& problem, ResumePoint& point) {
  entry.verdict = VerdictOf(problem);
  entry.problem = problem;
  point.skipped.push_back(std::move(entry));
}

bool IsMissing(const Storage& storage, const std::string& directory) {
  return storage.OpenDirectory(directory).status().code() == Code::kNotFound;
}

// A caller who resumes from a checkpoint must not take it for a new training.
Status IsItselfACheckpoint(const std::string& path) {
  const std::string_view last = internal::storage::LastComponent(path);
  const bool is_named = last != "." && last != "..";
  return internal::MakeError(Code::kInvalidArgument,
                             "this directory is a checkpoint, expected a directory of checkpoints: "
                             "pass its parent directory, ",
                             is_named ? internal::storage::ParentPath(path) : path + "/..",
                             ", or open it as a checkpoint")
      .AtPath(path);
}

// A series is made by its first save, but its parent directory is not: that is missing if a file
// system is not mounted, say, and then it is unknown what was committed. A bucket has no
// directories: that it can be listed says enough.
Status NothingCommitted(const Storage& storage, const std::string& path) {
  const std::string parent = internal::storage::ParentPath(path);
  const bool has_directories = internal::storage::SchemeOf(path).empty();
  if (has_directories && IsMissing(storage, path) && IsMissing(storage, parent)) {
    return internal::MakeError(Code::kIo, "neither the series nor the directory ", parent,
                               " above it exists: mount it, or create it for a new training")
        .AtPath(path);
  }
  const auto opened = storage.OpenDirectory(path);
  if (opened.ok()) {
    const auto marker = internal::series::ReadMarkerBytes(**opened);
    if (!marker.ok() || marker->has_value()) return IsItselfACheckpoint(path);
  }
  return internal::RuleError(Code::kNotFound, "R-SER-20", "no committed checkpoint").AtPath(path);
}

// The newest of a listing that passes the file-level check. Nothing if one was deleted meanwhile.
Result<std::optional<ResumePoint>> FindNewest(const Storage& storage, const std::string& path,
                                              const SeriesListing& listing,
                                              const ResumeOptions& options) {
  ResumePoint point;
  for (const SeriesEntry& entry : listing.entries) {
    // Without a marker that says how new it is, it may be the newest.
    if (IsCommitted(entry) || entry.verdict == Verdict::kUncommitted) continue;
    if (!options.allow_fallback) return NeverNotFound(entry.problem);
    point.skipped.push_back(entry);
  }
  internal::series::CheckedHistory history;
  for (const SeriesEntry& entry : listing.entries) {
    if (!IsCommitted(entry)) break;
    point.entry = entry;
    Status checked;
    const Status status =
        OpenAndCheck(storage, path, options.limits, history, point.entry, checked);
    if (status.ok() && options.require_checked && !checked.ok()) {
      point.entry.problem = checked;
      point.skipped.push_back(point.entry);
      continue;
    }
    if (status.ok()) return std::optional(std::move(point));
    // A deletion takes the marker first: if that is gone, what is missing was deleted, not damaged.
    const auto series = storage.OpenDirectory(path);
    if (series.ok() && internal::series::IsMarkerGone(**series, entry))
      return std::optional<ResumePoint>();
    if (!options.allow_fallback) return NeverNotFound(status);
    PassOver(entry, status, point);
  }
  if (point.skipped.empty()) {
    return NothingCommitted(storage, path);
  }
  // Not NotFound: training must not begin anew because of damage.
  const SeriesEntry& first = point.skipped.front();
  return NeverNotFound(
      Status(first.problem)
          .Prefixed(internal::StrCat("no checkpoint to fall back to; ", first.name)));
}

}  // namespace

const SeriesEntry* SeriesListing::newest() const {
  return !entries.empty() && IsCommitted(entries.front()) ? &entries.front() : nullptr;
}

const SeriesEntry* SeriesListing::unread() const {
  const auto found = std::find_if(entries.begin(), entries.end(), [](const SeriesEntry& entry) {
    return entry.verdict == Verdict::kUnreadable;
  });
  return found != entries.end() ? &*found : nullptr;
}

// R-SER-15: what a fork leads to besides the lineage of the newest, as far as parents are there.
std::set<AttemptId> SeriesListing::branches() const {
  const auto end = std::ranges::find_if_not(entries, IsCommitted);
  std::set<AttemptId> lineage;
  AttemptId at = newest() != nullptr ? newest()->attempt : AttemptId();
  for (auto entry = entries.begin(); entry != end; ++entry) {
    if (entry->attempt != at) continue;
    lineage.insert(at);
    at = entry->parent;
  }
  std::set<AttemptId> branches;
  std::ranges::copy_if(forks, std::inserter(branches, branches.end()),
                       [&](const AttemptId& fork) { return !lineage.contains(fork); });
  // Parents come behind their children.
  for (auto entry = end; entry != entries.begin() && !branches.empty();) {
    --entry;
    if (branches.contains(entry->parent)) branches.insert(entry->attempt);
  }
  return branches;
}

Series::Series(std::string path, std::shared_ptr<Storage> storage)
    : path_(std::move(path)), storage_(storage ? std::move(storage) : DefaultStorage()) {}

Result<SeriesListing> Series::List() const {
  return internal::series::ScanSeries(*storage_, path_, internal::series::SeriesDetail::kFiles);
}

Result<ResumePoint> Series::Newest(const ResumeOptions& options) const {
  for (int i = 0; i < internal::series::kListingsMax; ++i) {
    SEALPOINT_ASSIGN_OR_RETURN(
        const SeriesListing listing,
        internal::series::ScanSeries(*storage_, path_, internal::series::SeriesDetail::kMarkers));
    SEALPOINT_ASSIGN_OR_RETURN(auto point, FindNewest(*storage_, path_, listing, options));
    if (point) return *std::move(point);
  }
  return internal::MakeError(Code::kIo, "the newest checkpoint was deleted during each of ",
                             internal::series::kListingsMax, " looks at it")
      .AtPath(path_);
}

}  // namespace sealpoint
