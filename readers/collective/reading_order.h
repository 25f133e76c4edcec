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

// The order in which all ranks together read what any of them wants: round-robin over the blobs,
// one piece of each after the other. So a stretch of the order holds something of every blob, which
// keeps many files busy and gives every rank, whose requests mostly lie in few blobs, its share.
// A pure function of its arguments: every rank makes the same.
class ReadingOrder {
 public:
  // Precondition: `wanted` is a UnionOf; piece_bytes > 0.
  ReadingOrder(const std::vector<BlobBytes>& wanted, std::uint64_t piece_bytes);

  // Bytes in all; positions are below it.
  std::uint64_t size_bytes() const { return size_bytes_; }
  // The position of a byte. Precondition: it is wanted.
  std::uint64_t PositionOf(std::uint32_t blob, std::uint64_t offset) const;

 private:
  struct Stretch {
    BlobBytes bytes;
    std::uint64_t before = 0;  // wanted bytes of this blob before it
  };

  std::uint64_t piece_bytes_;
  std::uint64_t size_bytes_ = 0;
  std::vector<Stretch> stretches_;
  // Of each piece of each blob that is wanted, its first position; blobs ascend.
  std::vector<std::uint64_t> piece_positions_;
  struct Blob {
    std::uint32_t blob = 0;
    std::uint64_t size = 0;
    std::size_t first_piece = 0;  // in piece_positions_
  };
  std::vector<Blob> blobs_;
};

// A stretch [begin, end) of the order, whose bytes are dealt to the ranks in equal parts.
struct ReadingWindow {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  // Precondition: begin <= position < end.
  int ReaderOf(std::uint64_t position, int rank_count) const;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_COLLECTIVE_READING_ORDER_H_
