// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_RECORD_COVERAGE_H_
#define SEALPOINT_LIB_METADATA_RECORD_COVERAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sealpoint::internal::metadata {

// Marks the records that belong to a shard, one bit each. Proves that the record ranges of all
// shards tile the tables of all blobs (R-IDX-20): no range overlaps another one (Take), and none is
// left over (FindFree). Precondition: the caller has bounded the counts, which decide the memory.
class RecordCoverage {
 public:
  explicit RecordCoverage(std::span<const std::uint32_t> record_counts);

  enum class Outcome : std::uint8_t { kTaken, kNoBlob, kOutside, kTwice };
  // Takes [first, first + count) of a blob for one shard. After kTwice some of the records may have
  // been taken, so that the object is of no further use. Precondition: count > 0.
  Outcome Take(std::uint32_t blob, std::uint32_t first, std::uint64_t count);

  struct Record {
    std::size_t blob;
    std::uint64_t number;
  };
  // The first record that no shard took.
  std::optional<Record> FindFree() const;

  std::uint64_t record_count() const { return first_bit_.back(); }
  std::uint64_t taken_count() const { return taken_count_; }
  std::uint32_t shard_count(std::size_t blob) const { return shard_counts_[blob]; }
  std::uint64_t total_shard_count() const { return total_shard_count_; }

 private:
  bool TakeBits(std::uint64_t begin, std::uint64_t end);

  std::vector<std::uint64_t> first_bit_;  // of each blob, and last the number of bits
  std::vector<std::uint32_t> shard_counts_;
  std::vector<std::uint64_t> words_;
  std::uint64_t taken_count_ = 0;
  std::uint64_t total_shard_count_ = 0;
};

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_RECORD_COVERAGE_H_
