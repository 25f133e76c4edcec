// SPDX-License-Identifier: Apache-2.0
#include "readers/load/destination_overlap.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "lib/layout/region_algebra.h"

namespace sealpoint::internal::load {
namespace {

using Pair = std::pair<std::size_t, std::size_t>;

struct Interval {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool Meets(const Interval& other) const { return begin < other.end && other.begin < end; }
};

struct Step {
  std::uint64_t stride_bytes = 0;
  std::uint64_t count = 1;
};

// The memory of a destination: rows of `row_bytes`, repeated by steps of ascending strides.
// Addresses of one device.
struct Footprint {
  std::size_t number = 0;
  std::uint64_t view_begin = 0;  // of the memory that the caller named
  Interval span{};               // from the first to the last byte
  std::uint64_t row_bytes = 0;
  std::vector<Step> steps{};
  std::vector<Interval> digits{};  // its place in an array, once that is known
};

// Elements that follow each other make one row.
void JoinRows(Footprint& footprint) {
  std::sort(footprint.steps.begin(), footprint.steps.end(),
            [](const Step& a, const Step& b) { return a.stride_bytes < b.stride_bytes; });
  std::size_t joined = 0;
  for (; joined < footprint.steps.size(); ++joined) {
    const Step& step = footprint.steps[joined];
    if (step.stride_bytes != footprint.row_bytes) break;
    footprint.row_bytes *= step.count;
  }
  footprint.steps.erase(footprint.steps.begin(),
                        footprint.steps.begin() + static_cast<std::ptrdiff_t>(joined));
}

// Bounds fit 64 bits: CheckDestination found them in the memory.
Footprint FootprintOf(std::size_t number, const Destination& destination) {
  const auto data = reinterpret_cast<std::uintptr_t>(destination.data);
  const Region& region = destination.region();
  Footprint footprint{.number = number, .view_begin = data};
  std::uint64_t begin = data + static_cast<std::uint64_t>(destination.shift_bytes);
  footprint.row_bytes = destination.element_size;
  if (region.run != Run{0, layout::BoxElementCount(region.box)}) {
    // A run is dense.
    begin += region.run.begin * destination.element_size;
    footprint.row_bytes *= region.run.size();
  } else {
    for (std::size_t d = 0; d < region.box.extent.size(); ++d) {
      const std::uint64_t count = region.box.extent[d];
      if (count == 1) continue;
      const std::uint64_t stride = Magnitude(destination.strides_bytes()[d]);
      if (destination.strides_bytes()[d] < 0) begin -= (count - 1) * stride;
      footprint.steps.push_back({.stride_bytes = stride, .count = count});
    }
    JoinRows(footprint);
  }
  footprint.span = {begin, begin + footprint.row_bytes};
  for (const Step& step : footprint.steps) {
    footprint.span.end += (step.count - 1) * step.stride_bytes;
  }
  return footprint;
}

using Cluster = std::span<Footprint>;

// All strides of a cluster, ascending, each once: those of the array whose boxes it may hold.
std::vector<std::uint64_t> StridesOf(Cluster cluster) {
  std::vector<std::uint64_t> strides;
  for (const Footprint& footprint : cluster) {
    for (const Step& step : footprint.steps) strides.push_back(step.stride_bytes);
  }
  std::sort(strides.begin(), strides.end());
  strides.erase(std::unique(strides.begin(), strides.end()), strides.end());
  return strides;
}

// Writes the place of a footprint in the array that begins at `origin`: for each stride from the
// greatest on, then for the bytes below the least, from where to where. False if it is not a box
// there: if it passes the end of what a greater stride steps over, two places could be one address.
bool Locate(const std::vector<std::uint64_t>& strides, std::uint64_t origin, Footprint& footprint) {
  std::uint64_t offset = footprint.span.begin - origin;
  std::uint64_t extent = footprint.span.end - footprint.span.begin;  // of what is not located yet
  auto step = footprint.steps.rbegin();
  for (auto stride = strides.rbegin(); stride != strides.rend(); ++stride) {
    std::uint64_t count = 1;
    if (step != footprint.steps.rend() && step->stride_bytes == *stride) {
      count = step->count;
      ++step;
    }
    const std::uint64_t digit = offset / *stride;
    offset %= *stride;
    // Whole rows that were joined, which other boxes of the array step over one by one.
    const bool is_dense = count == 1 && step == footprint.steps.rend();
    if (is_dense && offset == 0 && extent % *stride == 0) count = extent / *stride;
    footprint.digits.push_back({digit, digit + count});
    extent -= (count - 1) * *stride;
    // As it is with a second step of this stride, too, which would be two dimensions in one.
    if (offset + extent > *stride) return false;
  }
  footprint.digits.push_back({offset, offset + extent});
  return true;
}

bool Share(const Footprint& a, const Footprint& b) {
  for (std::size_t d = 0; d < a.digits.size(); ++d) {
    if (!a.digits[d].Meets(b.digits[d])) return false;
  }
  return true;
}

// Calls visit(cluster) for each run of items whose intervals are connected, in their order, until
// one call finds something.
template <typename Item, typename IntervalOf, typename Visit>
std::optional<Pair> ForEachCluster(std::span<Item> all, const IntervalOf& interval_of,
                                   const Visit& visit) {
  std::sort(all.begin(), all.end(), [&](const Item& a, const Item& b) {
    return interval_of(a).begin < interval_of(b).begin;
  });
  for (std::size_t begin = 0; begin < all.size();) {
    std::uint64_t end_max = interval_of(all[begin]).end;
    std::size_t end = begin + 1;
    for (; end < all.size() && interval_of(all[end]).begin < end_max; ++end) {
      end_max = std::max(end_max, interval_of(all[end]).end);
    }
    if (end - begin > 1) {
      if (const auto found = visit(all.subspan(begin, end - begin))) return found;
    }
    begin = end;
  }
  return std::nullopt;
}

// Boxes of one array: parts them dimension by dimension, and compares those that no dimension
// parts.
std::optional<Pair> FindSharedPlace(Cluster cluster, std::size_t dimension) {
  if (dimension < cluster.front().digits.size()) {
    const auto digit = [dimension](const Footprint& footprint) {
      return footprint.digits[dimension];
    };
    return ForEachCluster(
        cluster, digit, [dimension](Cluster part) { return FindSharedPlace(part, dimension + 1); });
  }
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (Share(cluster[i], cluster[k])) return Pair(cluster[k].number, cluster[i].number);
    }
  }
  return std::nullopt;
}

std::optional<Pair> FindInCluster(Cluster cluster) {
  const std::vector<std::uint64_t> strides = StridesOf(cluster);
  std::uint64_t origin = cluster.front().span.begin;
  for (const Footprint& footprint : cluster)
    origin = std::min({origin, footprint.view_begin, footprint.span.begin});
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    if (Locate(strides, origin, cluster[i])) continue;
    // It is connected with its neighbour.
    return Pair(cluster[i == 0 ? 1 : i - 1].number, cluster[i].number);
  }
  return FindSharedPlace(cluster, 0);
}

// From the first to the last byte of a destination. Most of many touch no other: only for those
// that may is more than this kept.
struct Span {
  Interval bytes{};
  std::size_t number = 0;
};

}  // namespace

std::optional<Pair> FindOverlap(std::span<const std::optional<Destination>* const> destinations) {
  std::map<int, std::vector<Span>> by_device;
  for (std::size_t i = 0; i < destinations.size(); ++i) {
    const std::optional<Destination>& destination = *destinations[i];
    if (!destination || destination->is_plan_only) continue;
    by_device[destination->device].push_back(
        {.bytes = FootprintOf(i, *destination).span, .number = i});
  }
  const auto find = [&](std::span<Span> connected) {
    std::vector<Footprint> cluster;
    for (const Span& span : connected) {
      cluster.push_back(FootprintOf(span.number, **destinations[span.number]));
    }
    return FindInCluster(cluster);
  };
  for (auto& [device, spans] : by_device) {
    const auto found =
        ForEachCluster(std::span(spans), [](const Span& span) { return span.bytes; }, find);
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace sealpoint::internal::load
