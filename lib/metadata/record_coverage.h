// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_RECORD_COVERAGE_H_
#define SEALPOINT_LIB_METADATA_RECORD_COVERAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sealpoint::internal {

// Which records of which blob belong to a shard, one bit each: proves that the record ranges of all
// shards tile the tables of all blobs (R-IDX-20). The caller bounds the counts before.
class RecordCoverage {
 public:
  explicit RecordCoverage(std::span<const std::uint32_t> record_counts);

  enum class Outcome : std::uint8_t { kTaken, kNoBlob, kOutside, kTwice };
  // Takes [first, first + count) of a blob for one shard. Preconditions: count > 0.
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

  std::vector<std::uint64_t> first_bit_;  // of each blob, and the number of bits
  std::vector<std::uint32_t> shard_counts_;
  std::vector<std::uint64_t> words_;
  std::uint64_t taken_count_ = 0;
  std::uint64_t total_shard_count_ = 0;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_METADATA_RECORD_COVERAGE_H_
