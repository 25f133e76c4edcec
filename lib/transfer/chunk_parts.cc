// SPDX-License-Identifier: Apache-2.0
#include "lib/transfer/chunk_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::transfer {
namespace {

// More ranges take longer to copy one by one than they save.
constexpr std::size_t kRangeCountMax = std::size_t{1} << 16;
constexpr std::size_t kPatternCountMax = 64;

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend auto operator<=>(const Range&, const Range&) = default;
};

// False if there are too many.
bool AppendSourceOf(const layout::StridedCopy& copy, std::vector<Range>& ranges) {
  const layout::CopyRow row = layout::RowOf(copy);
  const bool is_dense =
      row.count == 1 || row.source_stride_bytes == static_cast<std::int64_t>(copy.element_size);
  const std::uint64_t length = is_dense ? row.count * copy.element_size : copy.element_size;
  const std::uint64_t count = is_dense ? 1 : row.count;
  layout::VisitRows(copy, [&](std::int64_t source_at, std::int64_t) {
    auto at = static_cast<std::uint64_t>(source_at);
    for (std::uint64_t i = 0; i < count && ranges.size() <= kRangeCountMax; ++i) {
      ranges.push_back({at, at + length});
      at += static_cast<std::uint64_t>(row.source_stride_bytes);
    }
    return ranges.size() <= kRangeCountMax;
  });
  return ranges.size() <= kRangeCountMax;
}

void JoinPieces(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::size_t kept = 0;
  for (const Range& range : ranges) {
    if (kept > 0 && range.begin <= ranges[kept - 1].end) {
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
}

}  // namespace

ChunkParts::ChunkParts(std::uint64_t raw_size) : patterns_{{.begin = 0, .length = raw_size}} {}

ChunkParts ChunkParts::NeededBy(const DeliveryPlan& plan, const PlanChunk& chunk) {
  std::vector<Range> ranges;
  for (const PlanCopy& copy : plan.CopiesOf(chunk)) {
    const bool fits = copy.With(
        [&](const layout::StridedCopy& strided) { return AppendSourceOf(strided, ranges); });
    if (!fits) return ChunkParts(chunk.raw_size);
  }
  JoinPieces(ranges);
  ChunkParts parts((std::vector<Pattern>()));
  for (const Range& range : ranges) {
    parts.Append(range.begin, range.end - range.begin);
    if (parts.patterns_.size() > kPatternCountMax) return ChunkParts(chunk.raw_size);
  }
  // Taking the last quarter along costs less than packing the others.
  if (parts.size_bytes() > chunk.raw_size - chunk.raw_size / 4) return ChunkParts(chunk.raw_size);
  return parts;
}

void ChunkParts::Append(std::uint64_t begin, std::uint64_t length) {
  if (!patterns_.empty() && patterns_.back().length == length) {
    Pattern& last = patterns_.back();
    if (last.count == 1) last.distance = begin - last.begin;
    if (begin == last.begin + last.count * last.distance) {
      ++last.count;
      return;
    }
  }
  patterns_.push_back({.begin = begin, .length = length});
}

template <typename Visit>
void ChunkParts::ForEachRange(const Visit& visit) const {
  for (const Pattern& pattern : patterns_) {
    for (std::uint64_t i = 0; i < pattern.count; ++i) {
      visit(pattern.begin + i * pattern.distance, pattern.length);
    }
  }
}

std::uint64_t ChunkParts::size_bytes() const {
  std::uint64_t size = 0;
  for (const Pattern& pattern : patterns_) size += pattern.count * pattern.length;
  return size;
}

void ChunkParts::Pack(ByteSpan raw, MutableByteSpan packed) const {
  std::size_t at = 0;
  ForEachRange([&](std::uint64_t begin, std::uint64_t length) {
    std::memcpy(packed.data() + at, raw.data() + begin, length);
    at += length;
  });
}

void ChunkParts::Unpack(ByteSpan packed, MutableByteSpan raw) const {
  std::size_t at = 0;
  ForEachRange([&](std::uint64_t begin, std::uint64_t length) {
    std::memcpy(raw.data() + begin, packed.data() + at, length);
    at += length;
  });
}

void ChunkParts::Encode(WireWriter& out) const {
  out.Put(std::uint64_t{patterns_.size()});
  for (const Pattern& pattern : patterns_) {
    for (const std::uint64_t number :
         {pattern.begin, pattern.length, pattern.count, pattern.distance}) {
      out.Put(number);
    }
  }
}

Result<ChunkParts> ChunkParts::Decode(WireReader& in, std::uint64_t raw_size) {
  const auto cannot_be = [] {
    return MakeError(Code::kComm, "another rank requested parts that its chunk does not have");
  };
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t pattern_count, in.Number());
  if (pattern_count == 0 || pattern_count > kPatternCountMax) return cannot_be();
  ChunkParts parts((std::vector<Pattern>()));
  std::uint64_t end = 0;  // of the ranges so far
  for (std::uint64_t i = 0; i < pattern_count; ++i) {
    Pattern pattern;
    for (std::uint64_t* number :
         {&pattern.begin, &pattern.length, &pattern.count, &pattern.distance}) {
      SEALPOINT_ASSIGN_OR_RETURN(*number, in.Number());
    }
    const bool is_sound = pattern.begin >= end && pattern.length > 0 && pattern.count > 0 &&
                          (pattern.count == 1 || pattern.distance >= pattern.length) &&
                          RangeFits(pattern.begin, pattern.length, raw_size);
    if (!is_sound) return cannot_be();
    const std::uint64_t rest = raw_size - pattern.begin - pattern.length;
    if (pattern.count > 1 && pattern.count - 1 > rest / pattern.distance) return cannot_be();
    end = pattern.begin + (pattern.count - 1) * pattern.distance + pattern.length;
    parts.patterns_.push_back(pattern);
  }
  return parts;
}

}  // namespace sealpoint::internal::transfer
