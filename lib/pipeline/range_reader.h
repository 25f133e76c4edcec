// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PIPELINE_RANGE_READER_H_
#define SEALPOINT_LIB_PIPELINE_RANGE_READER_H_

#include <cstdint>

#include "lib/device/staging_pool.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::pipeline {

// The bytes of a file range in scratch memory. `bytes` is inside of `buffer`; both are empty for
// an empty range.
struct RangeBytes {
  device::StagingBuffer buffer;
  MutableByteSpan bytes;
};

// Like ReadRange below, into `memory`, which must be page-aligned and have space for the range
// widened to whole pages if the file is direct. Returns the requested part.
Result<MutableByteSpan> ReadRangeInto(const ReadableFile& file, MutableByteSpan memory,
                                      std::uint64_t offset, std::uint64_t length);

// Reads [offset, offset + length) of a file with the alignment required by direct I/O: for a direct
// file the range is widened to whole pages in the buffer, and `bytes` is the requested part. May
// wait for scratch memory. Thread-safe. Errors: those of ReadAt and AcquireScratch; Incomplete if
// the file is too short, which is checked before memory is allocated for a length that may come
// from a hostile file.
Result<RangeBytes> ReadRange(const ReadableFile& file, device::StagingPool& pool,
                             std::uint64_t offset, std::uint64_t length);

}  // namespace sealpoint::internal::pipeline

#endif  // SEALPOINT_LIB_PIPELINE_RANGE_READER_H_
