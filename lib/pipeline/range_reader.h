// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PIPELINE_RANGE_READER_H_
#define SEALPOINT_LIB_PIPELINE_RANGE_READER_H_

#include <cstdint>

#include "lib/device/staging_pool.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal {

// Bytes of a file range in scratch memory. `bytes` lies inside `buffer`; both are empty for an
// empty range.
struct RangeBytes {
  StagingBuffer buffer;
  MutableByteSpan bytes;
};

// Reads [offset, offset + length) of a file into `memory` (whole pages, aligned as a page, where
// the file is direct) as ReadRange below does. Returns the part that was asked for. Precondition:
// `memory` has room for the range widened to whole pages.
Result<MutableByteSpan> ReadRangeInto(const ReadableFile& file, MutableByteSpan memory,
                                      std::uint64_t offset, std::uint64_t length);

// Reads [offset, offset + length) of a file, with the alignment that direct I/O asks for: the
// range is widened to whole pages in the buffer where the file is direct, and `bytes` is the part
// that was asked for. May wait for scratch memory. Thread safety: any.
// Errors: those of ReadAt and AcquireScratch; Incomplete where the file is too short (checked
// before reading).
Result<RangeBytes> ReadRange(const ReadableFile& file, StagingPool& pool, std::uint64_t offset,
                             std::uint64_t length);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_PIPELINE_RANGE_READER_H_
