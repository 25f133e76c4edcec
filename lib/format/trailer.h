// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_FORMAT_TRAILER_H_
#define SEALPOINT_LIB_FORMAT_TRAILER_H_

#include <array>
#include <cstdint>

#include "lib/format/constants.h"
#include "lib/format/file_header.h"
#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::format {

// The last 256 bytes of a blob. Offsets that follow from other fields are left out: see
// BlobSections.
struct Trailer {
  BlobId blob{};
  std::uint64_t file_size = 0;
  std::uint64_t chunks_end = 0;  // end of the chunk area
  std::uint32_t record_count = 0;
  std::uint32_t shard_count = 0;
  std::uint64_t manifest_size = 0;
  std::uint64_t raw_bytes = 0;
  Digest group_list_digest{};
  Digest manifest_digest{};
  Digest header_digest{};
  DigestAlgorithm digest_algorithm = DigestAlgorithm::kXxh3_128;
  bool is_extended = false;  // its extension is not zero; see CheckExtension
  friend bool operator==(const Trailer&, const Trailer&) = default;
};

// The offsets of the sections after the chunk area (R-BLB-04).
struct BlobSections {
  std::uint64_t table = 0;  // the group list
  std::uint64_t group_list_size = 0;
  std::uint64_t records = 0;
  std::uint64_t records_size = 0;
  std::uint64_t manifest = 0;
  std::uint64_t manifest_end = 0;
  std::uint64_t trailer = 0;
  std::uint64_t file_size = 0;
};

// Errors: R-BLB-04 if an offset does not fit 64 bits.
Result<BlobSections> ComputeSections(std::uint64_t chunks_end, std::uint32_t record_count,
                                     std::uint64_t manifest_size);
// The offset of the records of a table whose group list begins at `table_offset`, for readers that
// know only the index. Precondition: R-IDX-21, so that the sum fits.
std::uint64_t RecordsOffset(std::uint64_t table_offset, std::uint32_t record_count);

using TrailerBytes = std::array<std::byte, kTrailerSize>;

// Precondition: the trailer's sizes agree with ComputeSections.
TrailerBytes EncodeTrailer(const Trailer& trailer);

// Checks R-BLB-02, R-BLB-04, R-IDX-08, and R-HDR-06 except for the extension. Precondition:
// bytes.size() == kTrailerSize.
Result<Trailer> DecodeTrailer(ByteSpan bytes);

// R-HDR-06 for the extension: only an unknown compat bit in the header of the blob allows it.
Status CheckExtension(const Trailer& trailer, const FeatureMasks& features);

// The trailer's own digest as stored, which the index pins.
Digest StoredTrailerDigest(ByteSpan trailer);

}  // namespace sealpoint::internal::format

#endif  // SEALPOINT_LIB_FORMAT_TRAILER_H_
