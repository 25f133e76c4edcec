// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/memory_file.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::storage {
namespace {

// Offsets are limited to signed 64-bit numbers, as in POSIX.
Status CheckMemoryRange(std::uint64_t offset, std::uint64_t size_bytes) {
  if (RangeFits(offset, size_bytes, std::numeric_limits<std::int64_t>::max())) return {};
  return InvalidArgument("offset ", offset, " and size ", size_bytes,
                         " exceed the greatest file offset");
}

// False if out of memory. The only place that catches an exception of a container: a test may write
// files as large as memory. A range ends at most at the greatest signed offset, which is the
// greatest size of a vector.
bool GrowTo(Bytes& content, std::uint64_t size_bytes) {
  if (size_bytes <= content.size()) return true;
  try {
    content.resize(static_cast<std::size_t>(size_bytes));
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

}  // namespace

Status MemoryWritableFile::CheckUsable() const {
  SEALPOINT_RETURN_IF_ERROR(first_error_.Get());
  if (is_closed_.load()) return InvalidArgument("file is closed").AtPath(path_);
  return {};
}

Status MemoryWritableFile::WriteAt(std::uint64_t offset, ByteSpan data) {
  SEALPOINT_RETURN_IF_ERROR(CheckUsable());
  Status status = WriteAll(offset, data);
  return first_error_.Note(std::move(status).AtPath(path_).AtOffset(offset));
}

Status MemoryWritableFile::WriteAll(std::uint64_t offset, ByteSpan data) {
  SEALPOINT_RETURN_IF_ERROR(CheckMemoryRange(offset, data.size()));
  if (data.empty()) return {};  // as pwrite(2): does not make the file longer
  const std::unique_lock lock(node_->mutex);
  if (!GrowTo(node_->content, offset + data.size())) {
    return MakeError(Code::kNoSpace, "out of memory for a file of ", offset + data.size(),
                     " bytes");
  }
  std::copy(data.begin(), data.end(), node_->content.begin() + static_cast<std::ptrdiff_t>(offset));
  return {};
}

Status MemoryWritableFile::Preallocate(std::uint64_t size_bytes) {
  SEALPOINT_RETURN_IF_ERROR(CheckUsable());
  return CheckMemoryRange(0, size_bytes).AtPath(path_);
}

Status MemoryWritableFile::Close() {
  SEALPOINT_RETURN_IF_ERROR(CheckUsable());
  is_closed_.store(true);
  return {};
}

MemoryReadableFile::MemoryReadableFile(std::shared_ptr<const MemoryNode> node, std::string path,
                                       IoMode mode)
    : node_(std::move(node)), path_(std::move(path)), mode_(mode) {
  const std::shared_lock lock(node_->mutex);
  size_bytes_ = node_->content.size();
}

Status MemoryReadableFile::ReadAt(std::uint64_t offset, MutableByteSpan out) const {
  if (Status status = CheckMemoryRange(offset, out.size()); !status.ok()) {
    return std::move(status).AtPath(path_).AtOffset(offset);
  }
  const std::uint64_t limit =
      mode_ == IoMode::kDirect ? AlignUp(size_bytes_, kDirectIoAlignmentBytes) : size_bytes_;
  if (!RangeFits(offset, out.size(), limit)) {
    return MakeError(Code::kIncomplete, "file has ", size_bytes_, " bytes, expected at least ",
                     offset, " + ", out.size())
        .AtPath(path_)
        .AtOffset(size_bytes_);
  }
  const std::shared_lock lock(node_->mutex);
  const std::uint64_t begin = std::min(offset, size_bytes_);
  const std::uint64_t end = std::min(offset + out.size(), size_bytes_);
  const auto first = node_->content.begin();
  const auto rest = std::copy(first + static_cast<std::ptrdiff_t>(begin),
                              first + static_cast<std::ptrdiff_t>(end), out.begin());
  std::fill(rest, out.end(), std::byte{0});
  return {};
}

}  // namespace sealpoint::internal::storage
