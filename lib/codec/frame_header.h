// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_CODEC_FRAME_HEADER_H_
#define SEALPOINT_LIB_CODEC_FRAME_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::codec {

// The header of a zstd frame (RFC 8878, section 3.1.1.1). Parsed here because the window size is
// not in zstd's stable interface, and because no version of zstd checks the sizes of all blocks.
struct FrameHeader {
  std::optional<std::uint64_t> content_size_bytes;
  std::uint64_t window_size_bytes = 0;
  bool has_dictionary_id = false;
  bool has_checksum = false;
  std::size_t size_bytes = 0;  // of the header itself
};

// Errors: Corrupt, rule R-COD-02, if `stored` does not begin with the whole header of a zstd frame
// (a skippable frame does not count).
Result<FrameHeader> ParseFrameHeader(ByteSpan stored);

// R-COD-06: iterates over the headers of the frame's blocks to its end, which must be the end of
// `stored` (RFC 8878, section 3.1.1.2). Decodes and allocates nothing. Precondition: `header` is
// that of `stored`.
Status CheckBlocks(ByteSpan stored, const FrameHeader& header);

}  // namespace sealpoint::internal::codec

#endif  // SEALPOINT_LIB_CODEC_FRAME_HEADER_H_
