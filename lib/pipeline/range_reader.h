// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PIPELINE_RANGE_READER_H_
#define SEALPOINT_LIB_PIPELINE_RANGE_READER_H_

#include <cstdint>

#include "lib/device/staging_pool.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal {

// Bytes of a file range in page-aligned scratch memory. `bytes` lies inside `buffer`.
struct RangeBytes {
  StagingBuffer buffer;
  MutableByteSpan bytes;
};

// Reads [offset, offset + length) of a file, with the alignment that direct I/O asks for: the
// range is widened to whole pages in the buffer, and `bytes` is the part that was asked for.
// Errors: those of ReadAt; Incomplete where the file is too short (checked before reading).
Result<RangeBytes> ReadRange(const ReadableFile& file, StagingPool& pool, std::uint64_t offset,
                             std::uint64_t length);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_PIPELINE_RANGE_READER_H_
