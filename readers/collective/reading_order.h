// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_READING_ORDER_H_
#define SEALPOINT_READERS_COLLECTIVE_READING_ORDER_H_

#include <cstdint>
#include <vector>

namespace sealpoint::internal {

// A range of bytes of a blob.
struct BlobBytes {
  std::uint32_t blob = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend auto operator<=>(const BlobBytes&, const BlobBytes&) = default;
};

// Sorted, without overlaps; ranges that touch are joined.
std::vector<BlobBytes> UnionOf(std::vector<BlobBytes> ranges);

// The order in which all ranks together read the bytes that several of them request: round-robin
// over the blobs, one stripe of each blob after the other. Any window of the order therefore holds
// bytes of many blobs, which keeps many files busy and serves every rank, although the requests of
// one rank usually lie in few blobs. A pure function of its arguments, so that every rank computes
// the same order without an exchange.
class ReadingOrder {
 public:
  // Precondition: `wanted` is a UnionOf; stripe_size_bytes > 0.
  ReadingOrder(const std::vector<BlobBytes>& wanted, std::uint64_t stripe_size_bytes);

  // The number of requested bytes; positions are below it.
  std::uint64_t size_bytes() const { return size_bytes_; }
  // The position of a byte in the order. Precondition: the byte is requested.
  std::uint64_t PositionOf(std::uint32_t blob, std::uint64_t offset) const;

 private:
  struct Segment {
    BlobBytes bytes;
    std::uint64_t before = 0;  // wanted bytes of this blob before it
  };

  std::uint64_t stripe_size_bytes_;
  std::uint64_t size_bytes_ = 0;
  std::vector<Segment> segments_;
  // The first position of each stripe, by blob (ascending), then by stripe.
  std::vector<std::uint64_t> stripe_positions_;
  struct Blob {
    std::uint32_t blob = 0;
    std::uint64_t size = 0;
    std::size_t first_stripe = 0;  // in stripe_positions_
  };
  std::vector<Blob> blobs_;
};

// A window [begin, end) of the order, which the ranks read in equal parts: rank 0 the first part,
// rank 1 the second, and so on.
struct ReadingWindow {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  // Precondition: begin <= position < end.
  int ReaderOf(std::uint64_t position, int rank_count) const;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_COLLECTIVE_READING_ORDER_H_
