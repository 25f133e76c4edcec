// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/findings.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace sealpoint::internal::verify {
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

std::uint64_t Findings::SizeOf(const Entry& entry) {
  const Place& place = entry.violation.place();
  return sizeof(Entry) + entry.violation.message().size() + place.path.size() +
         place.tensor.size() + place.rule.size() + place.host.size();
}

void Findings::Omit(const Entry& entry) {
  OmittedViolations& omitted = omitted_[entry.file];
  if (omitted.count++ == 0) omitted.path = entry.violation.place().path;
  if (omitted_.size() <= limits_.omitted_files_max) return;
  // A file that is dropped here never comes back: those that are kept are all before it.
  const auto last = std::prev(omitted_.end());
  omitted_elsewhere_ += last->second.count;
  omitted_.erase(last);
}

void Findings::SortAndCut() {
  std::sort(entries_.begin(), entries_.end(), Before);
  const auto same = [](const Entry& a, const Entry& b) {
    return a.file == b.file && a.violation == b.violation;
  };
  const auto last = std::unique(entries_.begin(), entries_.end(), same);
  count_ -= static_cast<std::uint64_t>(entries_.end() - last);
  entries_.erase(last, entries_.end());

  entries_bytes_ = 0;
  std::size_t kept = 0;
  std::uint64_t of_file = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    of_file = i > 0 && entries_[i - 1].file == entry.file ? of_file + 1 : 1;
    const std::uint64_t bytes = entries_bytes_ + SizeOf(entry);
    if (of_file > limits_.per_file_max || bytes > limits_.listed_bytes_max) {
      Omit(entry);
      continue;
    }
    entries_bytes_ = bytes;
    if (kept != i) entries_[kept] = std::move(entry);
    ++kept;
  }
  entries_.resize(kept);
}

void Findings::Add(FileRank file, Status violation) {
  if (violation.ok()) return;
  if (on_violation_) {
    const std::lock_guard lock(callback_mutex_);
    on_violation_(violation);
  }
  const Verdict verdict = VerdictOf(violation);
  const std::lock_guard lock(mutex_);
  if (Weight(verdict) > Weight(verdict_)) verdict_ = verdict;
  ++count_;
  entries_.push_back({.file = file, .violation = std::move(violation)});
  entries_bytes_ += SizeOf(entries_.back());
  // What is cut now would also be cut at the end: it is not among the first.
  if (entries_bytes_ > 2 * limits_.listed_bytes_max) SortAndCut();
}

Verdict Findings::verdict() const {
  const std::lock_guard lock(mutex_);
  return verdict_;
}

void Findings::Clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  entries_bytes_ = 0;
  count_ = 0;
  verdict_ = Verdict::kCommitted;
  omitted_.clear();
  omitted_elsewhere_ = 0;
}

void Findings::MoveTo(VerifyReport& report) {
  const std::lock_guard lock(mutex_);
  SortAndCut();
  report.verdict = verdict_;
  report.violation_count = count_;
  report.violations.reserve(entries_.size());
  for (Entry& entry : entries_) report.violations.push_back(std::move(entry.violation));
  entries_.clear();
  for (auto& [file, omitted] : omitted_) report.omitted.push_back(std::move(omitted));
  omitted_.clear();
  if (omitted_elsewhere_ > 0) {
    report.omitted.push_back({.path = report.path, .count = omitted_elsewhere_});
  }
}

}  // namespace sealpoint::internal::verify
