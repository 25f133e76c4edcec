// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_FINGERPRINT_PART_H_
#define SEALPOINT_LIB_FINGERPRINT_PART_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "lib/fingerprint/field.h"
#include "lib/fingerprint/word_table.h"
#include "sealpoint/bytes.h"
#include "sealpoint/fingerprint.h"
#include "sealpoint/region.h"

namespace sealpoint::internal::fingerprint {

// A part of a tensor, of which fingerprints are computed piece by piece, in any order. Immutable;
// thread-safe.
class Part {
 public:
  // Preconditions: CheckRegion, and the bytes of the tensor fit 64 bits.
  Part(const Shape& shape, std::uint32_t element_size, const Region& region);

  // The last dimension of box and run in bytes. At least one dimension.
  const Region& region() const { return region_; }
  // The fingerprint of the bytes of the region from `begin` on in row-major (run) order, which may
  // begin and end within an element.
  Fingerprint Of(std::uint64_t begin, ByteSpan bytes) const;

 private:
  class Rows;
  // Rows of few words are summed together: those of all indices in the dimensions after
  // `dimension`, and of `count` indices in that one from a multiple of `count` on. Their
  // coefficients differ from block to block by a factor.
  struct Block {
    std::size_t dimension = 0;
    std::uint64_t count = 1;
    WordTable table;
  };
  std::optional<Block> MakeBlock() const;
  // True if the row begins a block of which all bytes are left.
  bool BeginsBlock(const Rows& rows, std::uint64_t left) const;

  Region region_;  // the last dimension in bytes
  std::optional<Block> block_;
};

// The sum over bytes [begin, begin + bytes.size()) of a row, whose other bytes count as zeros, of
// word x coefficient.
Pair SumOfRow(std::uint64_t begin, ByteSpan bytes);

}  // namespace sealpoint::internal::fingerprint

#endif  // SEALPOINT_LIB_FINGERPRINT_PART_H_
