// SPDX-License-Identifier: Apache-2.0
#include "lib/pipeline/range_reader.h"

#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::pipeline {
namespace {

Status CheckLength(const ReadableFile& file, std::uint64_t offset, std::uint64_t length) {
  if (RangeFits(offset, length, file.size_bytes())) return {};
  return std::move(MakeError(Code::kIncomplete, "file has ", file.size_bytes(),
                             " bytes, expected at least ", offset, " + ", length))
      .AtOffset(offset);
}

// The range [begin, end) of the file that is read.
struct WidenedRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
WidenedRange Widen(const ReadableFile& file, std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t alignment = file.is_direct() ? kDirectIoAlignmentBytes : 1;
  return {offset - offset % alignment, AlignUp(offset + length, alignment)};
}

}  // namespace

Result<MutableByteSpan> ReadRangeInto(const ReadableFile& file, MutableByteSpan memory,
                                      std::uint64_t offset, std::uint64_t length) {
  SEALPOINT_RETURN_IF_ERROR(CheckLength(file, offset, length));
  if (length == 0) return MutableByteSpan();
  const WidenedRange range = Widen(file, offset, length);
  SEALPOINT_RETURN_IF_ERROR(file.ReadAt(range.begin, memory.first(range.end - range.begin)));
  return memory.subspan(offset - range.begin, length);
}

Result<RangeBytes> ReadRange(const ReadableFile& file, device::StagingPool& pool,
                             std::uint64_t offset, std::uint64_t length) {
  SEALPOINT_RETURN_IF_ERROR(CheckLength(file, offset, length));
  if (length == 0) return RangeBytes{};
  const WidenedRange range = Widen(file, offset, length);
  SEALPOINT_ASSIGN_OR_RETURN(device::StagingBuffer buffer,
                             pool.AcquireScratch(range.end - range.begin));
  SEALPOINT_ASSIGN_OR_RETURN(const MutableByteSpan bytes,
                             ReadRangeInto(file, buffer.bytes(), offset, length));
  return RangeBytes{std::move(buffer), bytes};
}

}  // namespace sealpoint::internal::pipeline
