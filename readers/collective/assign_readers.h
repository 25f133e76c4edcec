// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_ASSIGN_READERS_H_
#define SEALPOINT_READERS_COLLECTIVE_ASSIGN_READERS_H_

#include <compare>
#include <cstdint>
#include <vector>

namespace sealpoint::internal::collective {

// A range of bytes of a blob.
struct BlobBytes {
  std::uint32_t blob = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend auto operator<=>(const BlobBytes&, const BlobBytes&) = default;
};

// Request of one rank: contiguous whole chunks.
struct RankBytes {
  BlobBytes bytes;
  std::uint64_t chunk_size_max = 1;  // stored bytes of the largest chunk
  int rank = 0;
};

// Data requested by several ranks and read by one of them.
struct ReaderBytes {
  BlobBytes bytes;
  int reader = 0;
  friend auto operator<=>(const ReaderBytes&, const ReaderBytes&) = default;
};

// Combined requests of all ranks of a load.
struct RequestedBytes {
  std::uint64_t size_bytes = 0;       // each byte that any rank requests counts once
  std::vector<ReaderBytes> shared{};  // ascending, without overlaps
};

// Assigns data requested by at least two ranks to readers among these ranks, so that all read about
// the same number of bytes. If all chunks of a range have the same size, readers change only at
// chunk boundaries; otherwise a chunk belongs to the reader of its first byte. The parts of one
// reader are as long as balance allows, so that the result grows with the number of ranges and
// bytes, and not with ranks times chunks. A pure function: the order of `requested` is irrelevant.
// Precondition: ranges are not empty; the ranges of one rank do not overlap.
RequestedBytes AssignReaders(const std::vector<RankBytes>& requested, int rank_count);

}  // namespace sealpoint::internal::collective

#endif  // SEALPOINT_READERS_COLLECTIVE_ASSIGN_READERS_H_
