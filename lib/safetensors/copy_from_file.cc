// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "lib/base/macros.h"
#include "lib/layout/box_copy.h"
#include "lib/safetensors/model.h"

namespace sealpoint::internal::safetensors {
namespace {

// One read takes as much.
constexpr std::uint64_t kWindowBytes = kMiB;
// If at least this share of a range is requested, all of it is read.
constexpr std::uint64_t kWantedShare = 4;

// A part of a file in memory that moves forward over it.
class FileWindow {
 public:
  explicit FileWindow(const ReadableFile& file) : file_(file) {}

  // The bytes of a range, until the next call. Reads beyond it, to `end` at most.
  Result<const std::byte*> Get(std::uint64_t offset, std::uint64_t size, std::uint64_t end) {
    if (offset < begin_ || offset + size > begin_ + bytes_.size()) {
      bytes_.resize(std::max(size, std::min(kWindowBytes, end - offset)));
      begin_ = offset;
      SEALPOINT_RETURN_IF_ERROR(file_.ReadAt(begin_, bytes_));
    }
    return bytes_.data() + (offset - begin_);
  }

 private:
  const ReadableFile& file_;
  Bytes bytes_;
  std::uint64_t begin_ = 0;
};

// From the first byte that is copied to the last.
std::uint64_t SpanBytes(const layout::StridedCopy& copy) {
  std::uint64_t span = copy.element_size;
  for (std::size_t d = 0; d < copy.extent.size(); ++d) {
    span += (copy.extent[d] - 1) * static_cast<std::uint64_t>(copy.source_stride_bytes[d]);
  }
  return span;
}

class FileCopy {
 public:
  FileCopy(const ReadableFile& file, std::uint64_t offset, const layout::StridedCopy& copy,
           std::byte* target)
      : file_(file),
        offset_(offset),
        copy_(copy),
        row_(layout::RowOf(copy)),
        target_(target),
        window_(file) {
    const std::uint64_t span = SpanBytes(copy);
    if (copy.byte_count() >= span / kWantedShare) {
      end_ = offset + static_cast<std::uint64_t>(copy.source_offset_bytes) + span;
    }
  }

  Status Run() {
    Status status;
    layout::VisitRows(copy_, [&](std::int64_t source_at, std::int64_t target_at) {
      for (std::uint64_t i = 0; i < row_.count && status.ok(); ++i) {
        status = CopyElement(source_at, target_at);
        source_at += row_.source_stride_bytes;
        target_at += row_.target_stride_bytes;
      }
      return status.ok();
    });
    return status;
  }

 private:
  // An element is as large as what lies together on both sides.
  Status CopyElement(std::int64_t source_at, std::int64_t target_at) {
    const std::uint64_t size = copy_.element_size;
    const std::uint64_t at = offset_ + static_cast<std::uint64_t>(source_at);
    if (size >= kWindowBytes) return file_.ReadAt(at, {target_ + target_at, size});
    SEALPOINT_ASSIGN_OR_RETURN(const std::byte* const bytes,
                               window_.Get(at, size, std::max(end_, at + size)));
    std::memcpy(target_ + target_at, bytes, size);
    return {};
  }

  const ReadableFile& file_;
  const std::uint64_t offset_;
  const layout::StridedCopy& copy_;
  const layout::CopyRow row_;
  std::byte* const target_;
  FileWindow window_;
  std::uint64_t end_ = 0;  // of what may be read at once
};

}  // namespace

Status CopyFromFile(const ReadableFile& file, const SafetensorsPart& part, const Box& requested,
                    const Box& box, std::uint32_t element_size,
                    const MutableMemoryView& destination) {
  const bool is_dense = destination.is_dense();
  layout::StridedCopy copy = layout::CopyFromLinear(
      Region::Of(part.box), requested, box,
      is_dense ? layout::DenseStridesBytes(box.extent, element_size) : destination.strides_bytes,
      element_size);
  std::byte* const target = destination.data + (is_dense ? 0 : destination.origin_bytes);
  return FileCopy(file, part.offset, copy, target).Run();
}

}  // namespace sealpoint::internal::safetensors
