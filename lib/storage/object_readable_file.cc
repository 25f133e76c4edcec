// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/object_readable_file.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"

namespace sealpoint::internal::storage {

ObjectReadableFile::ObjectReadableFile(std::shared_ptr<const ObjectStore> store, StoredObject info,
                                       Bytes front, IoMode mode)
    : store_(std::move(store)), info_(std::move(info)), front_(std::move(front)), mode_(mode) {}

Status ObjectReadableFile::ReadAt(std::uint64_t offset, MutableByteSpan out) const {
  const std::string path = JoinPath(store_->uri(), info_.key);
  if (!RangeFits(offset, out.size(), std::numeric_limits<std::int64_t>::max())) {
    return InvalidArgument("offset ", offset, " and size ", out.size(),
                           " exceed the greatest file offset")
        .AtPath(path);
  }
  const std::uint64_t limit = mode_ == IoMode::kDirect
                                  ? AlignUp(info_.size_bytes, kDirectIoAlignmentBytes)
                                  : info_.size_bytes;
  if (!RangeFits(offset, out.size(), limit)) {
    return MakeError(Code::kIncomplete, "object has ", info_.size_bytes,
                     " bytes, expected at least ", offset, " + ", out.size())
        .AtPath(path)
        .AtOffset(info_.size_bytes);
  }
  const std::uint64_t begin = std::min(offset, info_.size_bytes);
  const std::uint64_t size = std::min<std::uint64_t>(out.size(), info_.size_bytes - begin);
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(size), out.end(), std::byte{0});
  out = out.first(size);
  if (out.empty()) return {};
  if (offset + out.size() <= front_.size()) {
    std::memcpy(out.data(), front_.data() + offset, out.size());
    return {};
  }
  const ObjectRange range{.offset = offset, .out = out};
  Status status = store_->GetRanges(info_, {&range, 1});
  if (status.code() != Code::kNotFound) return status;
  return MakeError(Code::kIncomplete, "the object was removed after it was opened")
      .AtPath(path)
      .AtOffset(offset);
}

}  // namespace sealpoint::internal::storage
