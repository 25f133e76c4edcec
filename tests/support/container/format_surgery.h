// SPDX-License-Identifier: Apache-2.0
//
// Repairs the digest that covers a damaged field, so that the damage reaches the check of the
// field's meaning.
#ifndef SEALPOINT_TESTS_SUPPORT_CONTAINER_FORMAT_SURGERY_H_
#define SEALPOINT_TESTS_SUPPORT_CONTAINER_FORMAT_SURGERY_H_

#include <algorithm>
#include <cstddef>

#include "lib/format/constants.h"
#include "lib/format/fields.h"
#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"

namespace sealpoint::testing {

inline void PutDigest(MutableByteSpan bytes, std::size_t offset, const Digest& digest) {
  std::copy(digest.bytes.begin(), digest.bytes.end(),
            bytes.begin() + static_cast<std::ptrdiff_t>(offset));
}

// `header` is the range that the header digest covers: 128 bytes, or the 512 of a marker.
inline void ResealHeader(MutableByteSpan header) {
  constexpr std::size_t kAt = internal::format::HeaderFields::kDigest.at;
  PutDigest(header, kAt, Digest{});
  PutDigest(header, kAt, ComputeDigest(header));
}

inline void ResealMarker(MutableByteSpan marker) { ResealHeader(marker); }

// `trailer` is the last 256 bytes of a blob.
inline void ResealTrailer(MutableByteSpan trailer) {
  constexpr std::size_t kAt = internal::format::TrailerFields::kDigest.at;
  PutDigest(trailer, kAt, ComputeDigest(trailer.first(kAt)));
}

// Writes the digest of group `group_number` of `records` into `group_list`. The digest of the group
// list in the trailer, and what pins that digest, are left to the caller.
inline void ResealGroup(ByteSpan records, std::size_t group_number, MutableByteSpan group_list) {
  constexpr std::size_t kGroupSize = internal::format::kRecordGroupSize;
  const ByteSpan rest = records.subspan(group_number * kGroupSize);
  PutDigest(group_list, group_number * sizeof(Digest),
            ComputeDigest(rest.first(std::min(kGroupSize, rest.size()))));
}

inline void FlipBit(MutableByteSpan bytes, std::size_t bit) {
  bytes[bit / 8] ^= std::byte{1} << (bit % 8);
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CONTAINER_FORMAT_SURGERY_H_
