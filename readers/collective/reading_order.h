// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_READING_ORDER_H_
#define SEALPOINT_READERS_COLLECTIVE_READING_ORDER_H_

#include <cstdint>
#include <vector>

#include "readers/collective/assign_readers.h"
#include "readers/load/read_plan_data.h"

namespace sealpoint::internal::collective {

// The order in which the ranks read the bytes that several of them request: each reads its own in
// the order of the files, and all are equally far at any position, so that each window of the order
// holds about the same number of bytes of every reader. Readers begin at different blobs, which
// keeps many files busy. A pure function of its arguments, so that every rank computes the same
// order without an exchange.
class ReadingOrder {
 public:
  struct Place {
    std::uint64_t position = 0;
    int reader = 0;
  };

  // Precondition: `shared` ascends, without overlaps; its readers are below `rank_count`.
  ReadingOrder(const std::vector<ReaderBytes>& shared, int rank_count);

  // Upper bound of positions; 0 if nothing is shared.
  std::uint64_t end() const { return end_; }
  // Marks and sorts ranges that many ranks read completely, each for itself, so that ranks read
  // different parts of a file simultaneously and later find in the page cache the parts read by
  // others. In each window, the parts that `rank` is the reader of come first, then those of the
  // following ranks. Windows are small enough to stay cached. Precondition: the first byte of each
  // range is one of `shared`.
  void SpreadReaders(std::vector<transfer::PlanRange>& ranges, int rank) const;
  // The place of a byte in the order. No two bytes have the same position. Precondition: the byte
  // is one of `shared`.
  Place PlaceOf(std::uint32_t blob, std::uint64_t offset) const;

 private:
  struct Segment {
    ReaderBytes of;
    std::uint64_t before = 0;  // bytes that its reader reads before it
  };

  std::uint64_t rank_count_;
  std::uint64_t end_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace sealpoint::internal::collective

#endif  // SEALPOINT_READERS_COLLECTIVE_READING_ORDER_H_
