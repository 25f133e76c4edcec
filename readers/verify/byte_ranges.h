// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_BYTE_RANGES_H_
#define SEALPOINT_READERS_VERIFY_BYTE_RANGES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace sealpoint::internal::verify {

// A set of bytes of a file, as few ranges [begin, end) as possible.
class ByteRanges {
 public:
  // Precondition: begin < end.
  void Add(std::uint64_t begin, std::uint64_t end) {
    auto next = ranges_.upper_bound(begin);
    if (next != ranges_.begin() && std::prev(next)->second >= begin) {
      next = std::prev(next);
      begin = next->first;
    }
    while (next != ranges_.end() && next->first <= end) {
      end = std::max(end, next->second);
      next = ranges_.erase(next);
    }
    ranges_.emplace_hint(next, begin, end);
  }
  void Add(const ByteRanges& more) {
    for (const auto& [begin, end] : more.ranges_) Add(begin, end);
  }
  // True if all of [begin, end) is included.
  bool Contains(std::uint64_t begin, std::uint64_t end) const {
    const auto next = ranges_.upper_bound(begin);
    return next != ranges_.begin() && std::prev(next)->second >= end;
  }
  // Ascending, with gaps between them.
  const std::map<std::uint64_t, std::uint64_t>& ranges() const { return ranges_; }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin, end
};

}  // namespace sealpoint::internal::verify

#endif  // SEALPOINT_READERS_VERIFY_BYTE_RANGES_H_
