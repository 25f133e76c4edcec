// SPDX-License-Identifier: Apache-2.0
#include "lib/metadata/record_coverage.h"

#include <algorithm>
#include <bit>

#include "lib/base/checked_math.h"

namespace sealpoint::internal::metadata {
namespace {

constexpr std::uint64_t kWordBits = 64;

}  // namespace

RecordCoverage::RecordCoverage(std::span<const std::uint32_t> record_counts)
    : shard_counts_(record_counts.size(), 0) {
  first_bit_.reserve(record_counts.size() + 1);
  std::uint64_t bits = 0;
  for (const std::uint32_t count : record_counts) {
    first_bit_.push_back(bits);
    bits += count;
  }
  first_bit_.push_back(bits);
  words_.resize(DivideRoundUp(bits, kWordBits), 0);
}

RecordCoverage::Outcome RecordCoverage::Take(std::uint32_t blob, std::uint32_t first,
                                             std::uint64_t count) {
  if (blob >= shard_counts_.size()) return Outcome::kNoBlob;
  const std::uint64_t size = first_bit_[blob + 1] - first_bit_[blob];
  if (!RangeFits(first, count, size)) return Outcome::kOutside;
  const std::uint64_t begin = first_bit_[blob] + first;
  if (!TakeBits(begin, begin + count)) return Outcome::kTwice;
  ++shard_counts_[blob];
  ++total_shard_count_;
  taken_count_ += count;
  return Outcome::kTaken;
}

bool RecordCoverage::TakeBits(std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t bit = at % kWordBits;
    const std::uint64_t width = std::min(kWordBits - bit, end - at);
    const std::uint64_t mask = (~std::uint64_t{0} >> (kWordBits - width)) << bit;
    std::uint64_t& word = words_[at / kWordBits];
    if ((word & mask) != 0) return false;
    word |= mask;
    at += width;
  }
  return true;
}

std::optional<RecordCoverage::Record> RecordCoverage::FindFree() const {
  if (taken_count_ == record_count()) return std::nullopt;
  // Some bit below record_count() is clear, so that a word is found although the unused bits of the
  // last word are clear too: the lowest clear bit always belongs to a record.
  const auto word = std::find_if(words_.begin(), words_.end(),
                                 [](std::uint64_t w) { return w != ~std::uint64_t{0}; });
  const auto index = static_cast<std::uint64_t>(word - words_.begin());
  const auto bit = index * kWordBits + static_cast<std::uint64_t>(std::countr_one(*word));
  const auto above = std::upper_bound(first_bit_.begin(), first_bit_.end(), bit);
  const auto blob = static_cast<std::size_t>(above - first_bit_.begin()) - 1;
  return Record{.blob = blob, .number = bit - first_bit_[blob]};
}

}  // namespace sealpoint::internal::metadata
