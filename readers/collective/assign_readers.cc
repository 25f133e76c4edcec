// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/assign_readers.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "sealpoint/bytes.h"

namespace sealpoint::internal::collective {
namespace {

// Parts of one reader are not smaller, where there is much to read: each is named to all ranks.
constexpr std::uint64_t kPartSizeMin = 8 * kMiB;
// Where there is little, so many parts per rank are balance enough.
constexpr std::uint64_t kPartsPerRank = 4;

// Where a requested range begins or ends.
struct Edge {
  std::uint32_t blob = 0;
  std::uint64_t at = 0;
  const RankBytes* range = nullptr;
  bool is_begin = false;
};

using Requesters = std::vector<const RankBytes*>;

// Calls visit(bytes, requesters) for all that any rank requests, cut wherever the requesters
// change.
template <typename Visit>
void VisitRequested(const std::vector<RankBytes>& requested, const Visit& visit) {
  std::vector<Edge> edges;
  edges.reserve(2 * requested.size());
  for (const RankBytes& range : requested) {
    edges.push_back({range.bytes.blob, range.bytes.begin, &range, true});
    edges.push_back({range.bytes.blob, range.bytes.end, &range, false});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::tie(a.blob, a.at) < std::tie(b.blob, b.at);
  });
  Requesters requesters;
  std::uint64_t begin = 0;
  for (const Edge& edge : edges) {
    if (!requesters.empty() && begin < edge.at) visit({edge.blob, begin, edge.at}, requesters);
    begin = edge.at;
    if (edge.is_begin) {
      requesters.push_back(edge.range);
    } else {
      std::erase(requesters, edge.range);
    }
  }
}

class Dealer {
 public:
  Dealer(std::uint64_t shared_size, int rank_count)
      : part_size_min_(std::min(
            kPartSizeMin, shared_size / (kPartsPerRank * static_cast<std::uint64_t>(rank_count)))),
        loads_(static_cast<std::size_t>(rank_count)) {}

  // Fills the least loaded of the requesters up to the same level, in parts that are multiples of
  // the largest chunk.
  void Deal(const BlobBytes& bytes, const Requesters& requesters) {
    const std::uint64_t step = StepFor(requesters);
    const std::vector<std::size_t> ranks = ByLoad(bytes.blob, requesters);
    const Level level = LevelFor(ranks, bytes.end - bytes.begin);
    std::uint64_t ideal = 0;  // bytes up to the end of this reader's part
    std::uint64_t begin = bytes.begin;
    for (std::size_t i = 0; i < level.reader_count; ++i) {
      ideal += level.load - loads_[ranks[i]];
      const std::uint64_t rounded = (ideal + step / 2) / step * step;
      const bool is_last = i + 1 == level.reader_count;
      const std::uint64_t end = is_last ? bytes.end : std::min(bytes.end, bytes.begin + rounded);
      Append({bytes.blob, begin, end}, ranks[i]);
      begin = end;
    }
  }

  std::vector<ReaderBytes> Take() { return std::move(dealt_); }

 private:
  struct Level {
    std::uint64_t load = 0;
    std::size_t reader_count = 0;  // the ranks below it
  };

  std::uint64_t StepFor(const Requesters& requesters) const {
    std::uint64_t chunk = 1;
    for (const RankBytes* range : requesters) chunk = std::max(chunk, range->chunk_size_max);
    return std::max<std::uint64_t>(1, part_size_min_ / chunk) * chunk;
  }

  // Each once. Of equal loads another comes first in each blob, as ranks deal the blobs apart from
  // each other.
  std::vector<std::size_t> ByLoad(std::uint32_t blob, const Requesters& requesters) const {
    std::vector<std::size_t> ranks;
    for (const RankBytes* range : requesters) {
      ranks.push_back(static_cast<std::size_t>(range->rank));
    }
    const auto key = [&](std::size_t rank) {
      const std::size_t count = loads_.size();
      return std::pair(loads_[rank], (rank + count - blob % count) % count);
    };
    std::sort(ranks.begin(), ranks.end(),
              [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    return ranks;
  }

  // The load of the first ranks after `size` more bytes, with which none of the others has less.
  Level LevelFor(const std::vector<std::size_t>& ranks, std::uint64_t size) const {
    Level level;
    std::uint64_t sum = size;
    while (level.reader_count < ranks.size()) {
      const std::uint64_t load = loads_[ranks[level.reader_count]];
      if (level.reader_count > 0 && level.load <= load) break;
      sum += load;
      level.load = sum / ++level.reader_count;
    }
    return level;
  }

  void Append(const BlobBytes& bytes, std::size_t rank) {
    if (bytes.begin == bytes.end) return;
    loads_[rank] += bytes.end - bytes.begin;
    const int reader = static_cast<int>(rank);
    const bool goes_on = !dealt_.empty() && dealt_.back().reader == reader &&
                         dealt_.back().bytes.blob == bytes.blob &&
                         dealt_.back().bytes.end == bytes.begin;
    if (goes_on) {
      dealt_.back().bytes.end = bytes.end;
    } else {
      dealt_.push_back({bytes, reader});
    }
  }

  const std::uint64_t part_size_min_;
  std::vector<std::uint64_t> loads_;  // bytes dealt so far, by rank
  std::vector<ReaderBytes> dealt_;
};

}  // namespace

RequestedBytes AssignReaders(const std::vector<RankBytes>& requested, int rank_count) {
  RequestedBytes result;
  std::uint64_t shared_size = 0;
  VisitRequested(requested, [&](const BlobBytes& bytes, const Requesters& requesters) {
    result.size_bytes += bytes.end - bytes.begin;
    if (requesters.size() > 1) shared_size += bytes.end - bytes.begin;
  });
  Dealer dealer(shared_size, rank_count);
  VisitRequested(requested, [&](const BlobBytes& bytes, const Requesters& requesters) {
    if (requesters.size() > 1) dealer.Deal(bytes, requesters);
  });
  result.shared = dealer.Take();
  return result;
}

}  // namespace sealpoint::internal::collective
