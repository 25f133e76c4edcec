// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/change_list.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "lib/base/endian.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/codec/chunk_codec.h"

namespace sealpoint::internal::codec {
namespace {

constexpr std::size_t kCountsSize = 8;   // of entries, and of bytes of gaps
constexpr std::size_t kGapMax = 255;     // a byte of a gap with this value is followed by another
constexpr std::size_t kBlockBytes = 64;  // compared at once
constexpr std::size_t kMaskBits = 64;
constexpr std::size_t kBatchElements = 4096;  // whose positions stay in the first cache
constexpr std::size_t kPrefetchBytes = 1024;  // of the base; processors stop at the end of a page
constexpr std::size_t kVisitBytes = std::size_t{64} * 1024;  // stays in the cache
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

std::size_t GapsSizeMax(std::size_t entries, std::size_t elements) {
  return entries + elements / kGapMax;
}

template <std::size_t kElementSize>
std::uint64_t LoadElement(const std::byte* at) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t element = 0;
  std::memcpy(&element, at, kElementSize);
  return element;
}

// Takes changed elements in ascending order.
class ListWriter {
 public:
  ListWriter(std::byte* gaps, std::byte* changes)
      : gaps_begin_(gaps), gaps_(gaps), changes_(changes) {}

  // `positions`: of changed elements, relative to the first one of `raw` and `base`, which is
  // element `first_element` of the chunk.
  template <std::size_t kElementSize>
  void Add(std::span<const std::uint16_t> positions, const std::byte* raw, const std::byte* base,
           std::size_t first_element) {
    std::byte* changes = changes_;  // a member would be loaded again after each store of a byte
    for (const std::size_t position : positions) {
      AddGap(first_element + position);
      const std::uint64_t change = LoadElement<kElementSize>(raw + position * kElementSize) ^
                                   LoadElement<kElementSize>(base + position * kElementSize);
      std::memcpy(changes, &change, kElementSize);
      changes += kElementSize;
    }
    changes_ = changes;
  }
  void Add(std::size_t element, const std::byte* raw, const std::byte* base, std::size_t size) {
    AddGap(element);
    for (std::size_t i = 0; i < size; ++i) changes_[i] = raw[i] ^ base[i];
    changes_ += size;
  }
  std::size_t entry_count() const { return entry_count_; }
  std::size_t gaps_size() const { return static_cast<std::size_t>(gaps_ - gaps_begin_); }

 private:
  void AddGap(std::size_t element) {
    std::size_t gap = element - next_;
    next_ = element + 1;
    for (; gap >= kGapMax; gap -= kGapMax) *gaps_++ = std::byte{kGapMax};
    *gaps_++ = static_cast<std::byte>(gap);
    ++entry_count_;
  }

  std::byte* const gaps_begin_;
  std::byte* gaps_;
  std::byte* changes_;
  std::size_t next_ = 0;  // element behind the last one
  std::size_t entry_count_ = 0;
};

#if defined(__SSE2__)
__m128i Load(const std::byte* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }

// Bytes of 255 where elements of 1, 2 or 4 bytes are equal.
template <std::size_t kElementSize>
__m128i EqualElements(const std::byte* raw, const std::byte* base) {
  if constexpr (kElementSize == 1) return _mm_cmpeq_epi8(Load(raw), Load(base));
  if constexpr (kElementSize == 2) return _mm_cmpeq_epi16(Load(raw), Load(base));
  return _mm_cmpeq_epi32(Load(raw), Load(base));
}

// A bit for each element of a block, lowest first: set if the two differ.
template <std::size_t kElementSize>
std::uint64_t DifferingInBlock(const std::byte* raw, const std::byte* base) {
  __m128i equal[4];  // a template argument would lose the type's attributes
  for (std::size_t i = 0; i < 4; ++i) {
    equal[i] = EqualElements<kElementSize>(raw + 16 * i, base + 16 * i);
  }
  const auto bits = [](__m128i bytes) {
    return std::uint64_t{static_cast<std::uint16_t>(_mm_movemask_epi8(bytes))};
  };
  if constexpr (kElementSize == 1) {
    return ~(bits(equal[0]) | bits(equal[1]) << 16 | bits(equal[2]) << 32 | bits(equal[3]) << 48);
  } else if constexpr (kElementSize == 2) {
    const std::uint64_t low = bits(_mm_packs_epi16(equal[0], equal[1]));
    return ~(low | bits(_mm_packs_epi16(equal[2], equal[3])) << 16) & 0xffffffff;
  } else {
    return ~bits(_mm_packs_epi16(_mm_packs_epi32(equal[0], equal[1]),
                                 _mm_packs_epi32(equal[2], equal[3]))) &
           0xffff;
  }
}

template <std::size_t kElementSize>
constexpr bool kHasMasks = kElementSize <= 4;
#else
template <std::size_t kElementSize>
std::uint64_t DifferingInBlock(const std::byte* raw, const std::byte* base);
template <std::size_t kElementSize>
constexpr bool kHasMasks = false;
#endif

// Without masks: the words that differ, and the elements of them.
template <std::size_t kElementSize>
std::uint64_t DifferingByWords(const std::byte* raw, const std::byte* base) {
  std::uint64_t mask = 0;
  for (std::size_t at = 0; at < kMaskBits * kElementSize; at += kWordBytes) {
    if (LoadElement<kWordBytes>(raw + at) == LoadElement<kWordBytes>(base + at)) continue;
    for (std::size_t i = at; i < at + kWordBytes; i += kElementSize) {
      const bool differs =
          LoadElement<kElementSize>(raw + i) != LoadElement<kElementSize>(base + i);
      mask |= std::uint64_t{differs} << (i / kElementSize);
    }
  }
  return mask;
}

// A bit for each of kMaskBits elements.
template <std::size_t kElementSize>
std::uint64_t DifferingElements(const std::byte* raw, const std::byte* base) {
  if constexpr (kHasMasks<kElementSize>) {
    std::uint64_t mask = 0;
    for (std::size_t block = 0; block < kElementSize; ++block) {
      mask |= DifferingInBlock<kElementSize>(raw + block * kBlockBytes, base + block * kBlockBytes)
              << (block * kBlockBytes / kElementSize);
    }
    return mask;
  } else {
    return DifferingByWords<kElementSize>(raw, base);
  }
}

// Positions of changed elements. The first few of a mask are written without a branch, which would
// be predicted wrongly as often as changes are rare.
class Positions {
 public:
  void Clear() { count_ = 0; }
  void Append(std::uint64_t mask, std::size_t first) {
    for (int i = 0; i < kWithoutBranch; ++i) {
      at_[count_] =
          static_cast<std::uint16_t>(first + static_cast<std::size_t>(std::countr_zero(mask)));
      count_ += mask != 0 ? 1 : 0;
      mask &= mask - 1;
    }
    for (; mask != 0; mask &= mask - 1) {
      at_[count_++] =
          static_cast<std::uint16_t>(first + static_cast<std::size_t>(std::countr_zero(mask)));
    }
  }
  std::span<const std::uint16_t> all() const { return {at_.data(), count_}; }

 private:
  static constexpr int kWithoutBranch = 2;

  std::array<std::uint16_t, kBatchElements + 1> at_{};  // one more: what is written and not counted
  std::size_t count_ = 0;
};

// May lie behind the end of the memory: it is a hint.
template <std::size_t kBytes>
void Prefetch(const std::byte* at) {
  for (std::size_t line = 0; line < kBytes; line += kBlockBytes) __builtin_prefetch(at + line);
}

// At most kBatchElements elements, of which the first one is element `first_element` of the chunk.
template <std::size_t kElementSize>
void ScanBatch(ByteSpan raw, ByteSpan base, std::size_t first_element, Positions& positions,
               ListWriter& out) {
  constexpr std::size_t kMaskBytes = kMaskBits * kElementSize;
  positions.Clear();
  std::size_t at = 0;
  for (; at + kMaskBytes <= raw.size(); at += kMaskBytes) {
    Prefetch<kMaskBytes>(base.data() + at + kPrefetchBytes);
    positions.Append(DifferingElements<kElementSize>(raw.data() + at, base.data() + at),
                     at / kElementSize);
  }
  if (at < raw.size()) {
    std::array<std::byte, kMaskBytes> last_raw{};
    std::array<std::byte, kMaskBytes> last_base{};
    std::ranges::copy(raw.subspan(at), last_raw.begin());
    std::ranges::copy(base.subspan(at), last_base.begin());
    positions.Append(DifferingElements<kElementSize>(last_raw.data(), last_base.data()),
                     at / kElementSize);
  }
  out.Add<kElementSize>(positions.all(), raw.data(), base.data(), first_element);
}

// `first_byte`: position of the bytes in the chunk.
template <std::size_t kElementSize>
void Scan(ByteSpan raw, ByteSpan base, std::size_t first_byte, ListWriter& out) {
  constexpr std::size_t kBatchBytes = kBatchElements * kElementSize;
  Positions positions;
  for (std::size_t at = 0; at < raw.size(); at += kBatchBytes) {
    const std::size_t size = std::min(kBatchBytes, raw.size() - at);
    ScanBatch<kElementSize>(raw.subspan(at, size), base.subspan(at, size),
                            (first_byte + at) / kElementSize, positions, out);
  }
}

void ScanWide(std::uint32_t element_size, ByteSpan raw, ByteSpan base, std::size_t first_byte,
              ListWriter& out) {
  for (std::size_t at = 0; at < raw.size(); at += element_size) {
    if (std::memcmp(raw.data() + at, base.data() + at, element_size) == 0) continue;
    out.Add((first_byte + at) / element_size, raw.data() + at, base.data() + at, element_size);
  }
}

void ScanAny(std::uint32_t element_size, ByteSpan raw, ByteSpan base, std::size_t first_byte,
             ListWriter& out) {
  switch (element_size) {
    case 1:
      return Scan<1>(raw, base, first_byte, out);
    case 2:
      return Scan<2>(raw, base, first_byte, out);
    case 4:
      return Scan<4>(raw, base, first_byte, out);
    case 8:
      return Scan<8>(raw, base, first_byte, out);
    default:
      return ScanWide(element_size, raw, base, first_byte, out);
  }
}

template <typename... Parts>
Status Broken(const Parts&... parts) {
  return RuleError(Code::kCorrupt, "R-DLT-07", parts...);
}

// A list whose sizes were checked.
struct ListView {
  std::size_t entry_count;
  ByteSpan gaps;
  const std::byte* changes;
};

Result<ListView> ParseList(std::uint32_t element_size, ByteSpan list, std::size_t elements) {
  SEALPOINT_CHECK(list.size() >= kCountsSize);
  const std::size_t entries = LoadLe<std::uint32_t>(list, 0);
  const std::size_t gaps = LoadLe<std::uint32_t>(list, 4);
  if (entries == 0 || entries > elements || gaps < entries ||
      gaps > GapsSizeMax(entries, elements)) {
    return Broken("change list has ", entries, " entries and ", gaps, " bytes of gaps for ",
                  elements, " elements");
  }
  const std::size_t expected = kCountsSize + gaps + entries * element_size;
  if (list.size() != expected) {
    return Broken("change list has ", list.size(), " bytes, expected ", expected);
  }
  return ListView{.entry_count = entries,
                  .gaps = list.subspan(kCountsSize, gaps),
                  .changes = list.data() + kCountsSize + gaps};
}

// Passes the blocks of a chunk to a caller, in order, up to a position that grows.
class BlockVisits {
 public:
  BlockVisits(ByteSpan bytes, const VisitBlock& visit)
      : bytes_(bytes), visit_(visit), next_end_(std::min(kVisitBytes, bytes.size())) {}

  // The bytes before `position` do not change any more.
  void ReachTo(std::size_t position) {
    while (position >= next_end_ && begin_ < next_end_) Visit();
  }
  void Finish() {
    while (begin_ < bytes_.size()) Visit();
  }

 private:
  void Visit() {
    if (visit_) visit_(bytes_.subspan(begin_, next_end_ - begin_));
    begin_ = next_end_;
    next_end_ = std::min(begin_ + kVisitBytes, bytes_.size());
  }

  const ByteSpan bytes_;
  const VisitBlock& visit_;
  std::size_t begin_ = 0;
  std::size_t next_end_;
};

// `change(entry, element)` makes one change.
template <typename Change>
Status ForEachEntry(const ListView& list, std::size_t elements, const Change& change) {
  std::size_t element = 0;
  std::size_t entry = 0;
  for (const std::byte gap : list.gaps) {
    element += std::to_integer<std::size_t>(gap);
    if (gap == std::byte{kGapMax}) continue;
    if (element >= elements || entry == list.entry_count) {
      return Broken("entry ", entry, " of a change list is for element ", element, " of ",
                    elements);
    }
    change(entry++, element++);
  }
  if (entry != list.entry_count || list.gaps.back() == std::byte{kGapMax}) {
    return Broken("the gaps of a change list end after ", entry, " of ", list.entry_count,
                  " entries");
  }
  return {};
}

// `element_size` is a constant where it is a common one, so that the loop over its bytes unrolls.
template <typename ElementSize>
Status Apply(ElementSize element_size, const ListView& list, MutableByteSpan bytes,
             BlockVisits& visits) {
  return ForEachEntry(list, bytes.size() / element_size,
                      [&](std::size_t entry, std::size_t element) {
                        visits.ReachTo(element * element_size);
                        std::byte* const to = bytes.data() + element * element_size;
                        for (std::size_t p = 0; p < element_size; ++p) {
                          to[p] ^= list.changes[p * list.entry_count + entry];
                        }
                      });
}

Status ApplyAny(std::uint32_t element_size, const ListView& list, MutableByteSpan bytes,
                BlockVisits& visits) {
  switch (element_size) {
    case 1:
      return Apply(std::integral_constant<std::size_t, 1>(), list, bytes, visits);
    case 2:
      return Apply(std::integral_constant<std::size_t, 2>(), list, bytes, visits);
    case 4:
      return Apply(std::integral_constant<std::size_t, 4>(), list, bytes, visits);
    default:
      return Apply(std::size_t{element_size}, list, bytes, visits);
  }
}

}  // namespace

std::pair<std::uint64_t, std::uint64_t> ChangeListSizes(std::size_t raw_size_bytes,
                                                        std::uint32_t element_size) {
  const std::size_t elements = raw_size_bytes / element_size;
  return {kCountsSize + 1 + element_size,
          kCountsSize + GapsSizeMax(elements, elements) + raw_size_bytes};
}

std::size_t ChangeListScratchSize(std::size_t raw_size_bytes, std::uint32_t element_size) {
  return ChangeListSizes(raw_size_bytes, element_size).second + raw_size_bytes;
}

ChangeList MakeChangeList(std::uint32_t element_size, ByteSpan raw, ByteSpan base,
                          MutableByteSpan scratch, const VisitBlock& visit) {
  SEALPOINT_CHECK(raw.size() == base.size() &&
                  scratch.size() >= ChangeListScratchSize(raw.size(), element_size));
  const MutableByteSpan changes = scratch.last(raw.size());
  ListWriter out(scratch.data() + kCountsSize, changes.data());
  for (std::size_t at = 0; at < raw.size(); at += kVisitBytes) {
    const std::size_t size = std::min(kVisitBytes, raw.size() - at);
    if (visit) visit(raw.subspan(at, size));
    ScanAny(element_size, raw.subspan(at, size), base.subspan(at, size), at, out);
  }
  const std::size_t entries = out.entry_count();
  if (entries == 0) return {};
  StoreLe(scratch, 0, static_cast<std::uint32_t>(entries));
  StoreLe(scratch, 4, static_cast<std::uint32_t>(out.gaps_size()));
  const std::size_t gaps_end = kCountsSize + out.gaps_size();
  const std::size_t changes_size = entries * element_size;
  SplitBytes(element_size, changes.first(changes_size), scratch.subspan(gaps_end, changes_size));
  return {.bytes = scratch.first(gaps_end + changes_size),
          .gaps_end = gaps_end,
          .entry_count = entries};
}

Status ApplyChangeList(std::uint32_t element_size, ByteSpan list, MutableByteSpan bytes,
                       const VisitBlock& visit) {
  BlockVisits visits(bytes, visit);
  if (!list.empty()) {
    SEALPOINT_ASSIGN_OR_RETURN(const ListView view,
                               ParseList(element_size, list, bytes.size() / element_size));
    SEALPOINT_RETURN_IF_ERROR(ApplyAny(element_size, view, bytes, visits));
  }
  visits.Finish();
  return {};
}

}  // namespace sealpoint::internal::codec
