// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/findings.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace sealpoint::internal {
namespace {

// Which of two verdicts a checkpoint with both kinds of violation has.
int Weight(Verdict verdict) {
  switch (verdict) {
    case Verdict::kCommitted:
      return 0;
    case Verdict::kUncommitted:
      return 1;
    case Verdict::kUnsupported:
      return 2;
    case Verdict::kUnreadable:
      return 3;
    case Verdict::kIncomplete:
      return 4;
    case Verdict::kCorrupt:
      return 5;
  }
  return 5;
}

}  // namespace

bool Findings::Before(const Entry& a, const Entry& b) {
  const auto key = [](const Entry& entry) {
    const Place& place = entry.violation.place();
    return std::tuple<FileRank, std::uint64_t, std::string_view, std::string_view>(
        entry.file, place.offset.value_or(0), place.rule, entry.violation.message());
  };
  return key(a) < key(b);
}

void Findings::SortAndCut() {
  std::sort(entries_.begin(), entries_.end(), Before);
  const auto same = [](const Entry& a, const Entry& b) {
    return a.file == b.file && a.violation == b.violation;
  };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
  if (entries_.size() > listed_max_) {
    entries_.resize(listed_max_);
    omitted_ = true;
  }
}

void Findings::Add(FileRank file, Status violation) {
  if (violation.ok()) return;
  const Verdict verdict = VerdictOf(violation);
  const std::lock_guard lock(mutex_);
  if (Weight(verdict) > Weight(verdict_)) verdict_ = verdict;
  entries_.push_back({.file = file, .violation = std::move(violation)});
  // What is cut now would also be cut at the end: it is not among the first listed_max_.
  if (entries_.size() > 2 * listed_max_) SortAndCut();
}

Verdict Findings::verdict() const {
  const std::lock_guard lock(mutex_);
  return verdict_;
}

std::vector<Status> Findings::Take(bool* omitted) {
  const std::lock_guard lock(mutex_);
  SortAndCut();
  std::vector<Status> violations;
  violations.reserve(entries_.size());
  for (Entry& entry : entries_) violations.push_back(std::move(entry.violation));
  entries_.clear();
  *omitted = omitted_;
  return violations;
}

}  // namespace sealpoint::internal
