// SPDX-License-Identifier: Apache-2.0
#include "lib/pipeline/range_reader.h"

#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal {

Result<RangeBytes> ReadRange(const ReadableFile& file, StagingPool& pool, std::uint64_t offset,
                             std::uint64_t length) {
  if (!RangeFits(offset, length, file.size_bytes())) {
    return std::move(MakeError(Code::kIncomplete, "file of ", file.size_bytes(),
                               " bytes ends before a range of ", length, " bytes"))
        .AtOffset(offset);
  }
  if (length == 0) return RangeBytes{};
  const std::uint64_t alignment = file.is_direct() ? kDirectIoAlignmentBytes : 1;
  const std::uint64_t begin = offset - offset % alignment;
  const std::uint64_t end = AlignUp(offset + length, alignment);
  SEALPOINT_ASSIGN_OR_RETURN(StagingBuffer buffer, pool.AcquireScratch(end - begin));
  SEALPOINT_RETURN_IF_ERROR(file.ReadAt(begin, buffer.bytes().first(end - begin)));
  const MutableByteSpan bytes = buffer.bytes().subspan(offset - begin, length);
  return RangeBytes{std::move(buffer), bytes};
}

}  // namespace sealpoint::internal
