// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/reading_order.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "lib/base/macros.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::collective {
namespace {

// What each reader reads of a window.
constexpr std::uint64_t kWindowBytesPerReader = 16 * kMiB;

}  // namespace

ReadingOrder::ReadingOrder(const std::vector<ReaderBytes>& shared, int rank_count)
    : rank_count_(static_cast<std::uint64_t>(rank_count)) {
  std::vector<std::vector<std::size_t>> by_reader(static_cast<std::size_t>(rank_count));
  for (const ReaderBytes& part : shared) {
    by_reader[static_cast<std::size_t>(part.reader)].push_back(segments_.size());
    segments_.push_back({.of = part});
  }
  for (std::size_t reader = 0; reader < by_reader.size(); ++reader) {
    const std::vector<std::size_t>& own = by_reader[reader];
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < own.size(); ++i) {
      const std::size_t first = reader * own.size() / by_reader.size();
      Segment& segment = segments_[own[(first + i) % own.size()]];
      segment.before = before;
      before += segment.of.bytes.end - segment.of.bytes.begin;
    }
    end_ = std::max(end_, before * rank_count_);
  }
}

void ReadingOrder::SpreadReaders(std::vector<transfer::PlanRange>& ranges, int rank) const {
  std::vector<
      std::pair<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>, transfer::PlanRange>>
      placed;
  placed.reserve(ranges.size());
  for (const transfer::PlanRange& range : ranges) {
    const Place place = PlaceOf(range.blob, range.offset);
    const std::uint64_t after =
        static_cast<std::uint64_t>(place.reader) + rank_count_ - static_cast<std::uint64_t>(rank);
    const std::uint64_t window = place.position / (kWindowBytesPerReader * rank_count_);
    placed.push_back({{window, after % rank_count_, place.position}, range});
  }
  std::sort(placed.begin(), placed.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ranges[i] = placed[i].second;
    ranges[i].has_other_readers = true;
  }
}

ReadingOrder::Place ReadingOrder::PlaceOf(std::uint32_t blob, std::uint64_t offset) const {
  const auto behind = std::upper_bound(segments_.begin(), segments_.end(), std::tie(blob, offset),
                                       [](const auto& at, const Segment& segment) {
                                         const BlobBytes& bytes = segment.of.bytes;
                                         return at < std::tie(bytes.blob, bytes.begin);
                                       });
  SEALPOINT_CHECK(behind != segments_.begin());
  const Segment& segment = *std::prev(behind);
  const BlobBytes& bytes = segment.of.bytes;
  SEALPOINT_CHECK(bytes.blob == blob && offset < bytes.end);
  const std::uint64_t of_reader = segment.before + (offset - bytes.begin);
  return {.position = of_reader * rank_count_ + static_cast<std::uint64_t>(segment.of.reader),
          .reader = segment.of.reader};
}

}  // namespace sealpoint::internal::collective
