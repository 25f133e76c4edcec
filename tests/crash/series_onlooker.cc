// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/series_onlooker.h"

#include <algorithm>
#include <tuple>

#include "lib/format/constants.h"
#include "sealpoint/series.h"
#include "tests/support/crash/runs.h"

namespace sealpoint::testing {
namespace {

using internal::format::Marker;

bool IsNewer(const Marker& a, const Marker& b) {
  return std::tie(a.sequence, a.attempt) > std::tie(b.sequence, b.attempt);
}

}  // namespace

const Marker* SeriesOnlooker::Moment::newest() const {
  return committed.empty() ? nullptr : &committed.front();
}

SeriesOnlooker::Moment SeriesOnlooker::SeeNow() const {
  const std::string below = std::string(kCrashSeries) + "/";
  Moment moment;
  for (const auto& [path, folder] : disk_.Now().folders) {
    if (!path.starts_with(below)) continue;
    moment.directories.insert(path.substr(below.size()));
    const auto file = folder.files.find(internal::format::kMarkerName);
    if (file == folder.files.end()) continue;
    const Marker marker = internal::format::DecodeMarker(file->second->bytes).value();
    if (marker.kind == internal::format::MarkerKind::kCommit) moment.committed.push_back(marker);
  }
  std::sort(moment.committed.begin(), moment.committed.end(), IsNewer);
  return moment;
}

std::size_t SeriesOnlooker::Look() {
  const std::lock_guard lock(mutex_);
  const std::size_t count = disk_.op_count();
  if (!moments_.empty() && count == seen_) return moments_.size() - 1;
  seen_ = count;
  Moment moment = SeeNow();
  const Marker* const before = moments_.empty() ? nullptr : moments_.back().newest();
  const Marker* const now = moment.newest();
  if (before != nullptr && now == nullptr) wrong_ = "no checkpoint is left";
  if (before != nullptr && now != nullptr && IsNewer(*before, *now)) wrong_ = "the newest is gone";
  moments_.push_back(std::move(moment));
  return moments_.size() - 1;
}

bool SeriesOnlooker::WasNewest(const AttemptId& attempt, std::size_t since) const {
  const std::lock_guard lock(mutex_);
  const auto begin = moments_.begin() + static_cast<std::ptrdiff_t>(since);
  return std::any_of(begin, moments_.end(), [&](const Moment& moment) {
    const Marker* const newest = moment.newest();
    return (newest == nullptr ? AttemptId{} : newest->attempt) == attempt;
  });
}

bool SeriesOnlooker::WasCommitted(const AttemptId& attempt, std::size_t since) const {
  const std::lock_guard lock(mutex_);
  const auto begin = moments_.begin() + static_cast<std::ptrdiff_t>(since);
  return std::any_of(begin, moments_.end(), [&](const Moment& moment) {
    return std::any_of(moment.committed.begin(), moment.committed.end(),
                       [&](const Marker& marker) { return marker.attempt == attempt; });
  });
}

bool SeriesOnlooker::IsCommitted(const AttemptId& attempt) const {
  const std::size_t last = [&] {
    const std::lock_guard lock(mutex_);
    return moments_.size() - 1;
  }();
  return WasCommitted(attempt, last);
}

bool SeriesOnlooker::WasParentNewest(std::uint64_t step, std::size_t since) const {
  const std::lock_guard lock(mutex_);
  for (const Moment& last : moments_) {
    const auto made = std::find_if(last.committed.begin(), last.committed.end(),
                                   [&](const Marker& marker) { return marker.step == step; });
    if (made == last.committed.end()) continue;
    const std::string name = SeriesDirectoryName(step, made->attempt);
    for (std::size_t i = since; i < moments_.size(); ++i) {
      if (moments_[i].directories.contains(name)) return false;
      const Marker* const newest = moments_[i].newest();
      const bool is_first = newest == nullptr && made->sequence == 1;
      if (is_first || (newest != nullptr && newest->attempt == made->parent &&
                       newest->sequence + 1 == made->sequence)) {
        return true;
      }
    }
    return false;
  }
  return false;
}

std::string SeriesOnlooker::wrong() const {
  const std::lock_guard lock(mutex_);
  return wrong_;
}

}  // namespace sealpoint::testing
