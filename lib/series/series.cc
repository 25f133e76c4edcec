// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/series.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/series/series_scan.h"

namespace sealpoint {
namespace {

bool IsCommitted(const SeriesEntry& entry) { return entry.verdict == Verdict::kCommitted; }

// Committed ones first, newest first; the others by name.
bool ComesBefore(const SeriesEntry& a, const SeriesEntry& b) {
  if (IsCommitted(a) != IsCommitted(b)) return IsCommitted(a);
  if (!IsCommitted(a)) return a.name < b.name;
  return std::tie(b.sequence, b.attempt, a.name) < std::tie(a.sequence, a.attempt, b.name);
}

// Two directories may hold the same attempt (a copy): that is no fork.
std::vector<AttemptId> FindForks(const std::vector<SeriesEntry>& entries) {
  std::map<AttemptId, std::vector<AttemptId>> children;
  for (const SeriesEntry& entry : entries) {
    if (IsCommitted(entry)) children[entry.parent].push_back(entry.attempt);
  }
  std::vector<AttemptId> forks;
  for (auto& [parent, attempts] : children) {
    std::sort(attempts.begin(), attempts.end());
    attempts.erase(std::unique(attempts.begin(), attempts.end()), attempts.end());
    if (attempts.size() > 1) forks.insert(forks.end(), attempts.begin(), attempts.end());
  }
  return forks;
}

}  // namespace

const SeriesEntry* SeriesListing::newest() const {
  return !entries.empty() && IsCommitted(entries.front()) ? &entries.front() : nullptr;
}

const SeriesEntry* SeriesListing::unread() const {
  const auto found = std::find_if(entries.begin(), entries.end(), [](const SeriesEntry& entry) {
    return entry.problem.code() == Code::kIo;
  });
  return found != entries.end() ? &*found : nullptr;
}

Series::Series(std::string path, std::shared_ptr<Storage> storage)
    : path_(std::move(path)), storage_(storage ? std::move(storage) : PosixStorage()) {}

Result<SeriesListing> Series::List() const {
  SeriesListing listing;
  const auto directory = storage_->OpenDirectory(path_);
  if (!directory.ok() && directory.error().code() == Code::kNotFound) return listing;
  if (!directory.ok()) return directory.error();
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<EntryInfo> names, (*directory)->List());
  for (const EntryInfo& info : names) {
    // In the root of a file system; made with it and closed to all but root.
    const bool is_of_file_system = info.name == "lost+found";
    const bool may_be_directory = !is_of_file_system && (info.kind == EntryKind::kDirectory ||
                                                         info.kind == EntryKind::kSymlink);
    const auto scanned = may_be_directory
                             ? internal::ScanEntry(*storage_, path_, info.name)
                             : Result<internal::ScannedEntry>(internal::ScannedEntry());
    if (scanned.ok() && scanned->is_ours) {
      listing.entries.push_back(scanned->entry);
      listing.entries.back().is_link = info.kind == EntryKind::kSymlink;
    } else if (scanned.ok() || info.kind == EntryKind::kSymlink) {
      listing.foreign.push_back(info.name);
    } else if (scanned.error().code() != Code::kNotFound) {  // NotFound: removed meanwhile
      listing.entries.push_back({.name = info.name,
                                 .path = JoinPath(path_, info.name),
                                 .verdict = Verdict::kUnreadable,
                                 .problem = scanned.error()});
    }
  }
  std::sort(listing.entries.begin(), listing.entries.end(), ComesBefore);
  listing.forks = FindForks(listing.entries);
  return listing;
}

Result<ResumePoint> Series::Newest(const ResumeOptions& options) const {
  SEALPOINT_ASSIGN_OR_RETURN(const SeriesListing listing, List());
  ResumePoint point;
  for (const SeriesEntry& entry : listing.entries) {
    // Without a marker that says how new it is, it may be the newest.
    if (IsCommitted(entry) || entry.verdict == Verdict::kUncommitted) continue;
    if (!options.allow_fallback) return entry.problem;
    point.passed_over.push_back(entry);
  }
  for (const SeriesEntry& entry : listing.entries) {
    if (!IsCommitted(entry)) break;
    const auto opened = internal::OpenCommitted(*storage_, entry.path, options.limits, true);
    if (opened.ok()) {
      point.entry = entry;
      return point;
    }
    if (!options.allow_fallback) return opened.error();
    point.passed_over.push_back(entry);
    point.passed_over.back().verdict = VerdictOf(opened.error());
    point.passed_over.back().problem = opened.error();
  }
  if (point.passed_over.empty()) {
    return internal::RuleError(Code::kNotFound, "R-SER-20", "no committed checkpoint")
        .AtPath(path_);
  }
  // Not NotFound: training must not begin anew because of damage.
  return Status(point.passed_over.front().problem)
      .Prefixed(internal::StrCat("nothing to fall back to; ", point.passed_over.front().name));
}

}  // namespace sealpoint
