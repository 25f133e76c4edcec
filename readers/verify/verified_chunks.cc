// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/verified_chunks.h"

#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <utility>

#include "lib/base/errors.h"
#include "sealpoint/digest.h"

namespace sealpoint {
namespace internal::verify {

FileKey KeyOf(const ReadableFile& file) {
  const std::optional<int> descriptor = file.descriptor();
  struct stat info = {};
  if (!descriptor || ::fstat(*descriptor, &info) != 0) return {};
  return {.device = info.st_dev, .inode = info.st_ino};
}

// Beyond the bound nothing is remembered, and so it is read again.
void VerifiedChunksImpl::AddTo(ByteRanges& ranges, std::uint64_t begin, std::uint64_t end) {
  if (range_count_ >= kRangesMax) return;
  range_count_ -= ranges.ranges().size();
  ranges.Add(begin, end);
  range_count_ += ranges.ranges().size();
}

// What is known of another file under the same path is forgotten.
ByteRanges& VerifiedChunksImpl::GoodOf(const BlobKey& blob) {
  KnownBlob& known = checkpoints_[blob.checkpoint][blob.pin.id];
  if (known.inode != blob.file.inode) {
    range_count_ -= known.good.ranges().size();
    known = {.inode = blob.file.inode, .good = {}};
  }
  return known.good;
}

ByteRanges VerifiedChunksImpl::KnownOf(const BlobKey& blob) {
  const std::lock_guard lock(mutex_);
  ByteRanges& good = GoodOf(blob);
  if (!blob.file.is_known()) return good;
  KnownFile& file = files_[blob.file];
  if (file.pin != blob.pin) {
    range_count_ -= file.good.ranges().size();
    file = {.pin = blob.pin, .good = {}};
  }
  for (const auto& [begin, end] : file.good.ranges()) AddTo(good, begin, end);
  for (const auto& [begin, end] : good.ranges()) AddTo(file.good, begin, end);
  return good;
}

void VerifiedChunksImpl::Add(const BlobKey& blob, std::uint64_t begin, std::uint64_t end) {
  const std::lock_guard lock(mutex_);
  AddTo(GoodOf(blob), begin, end);
  if (!blob.file.is_known()) return;
  // Another call may have found another blob in the file meanwhile.
  KnownFile& file = files_[blob.file];
  if (file.pin == blob.pin) AddTo(file.good, begin, end);
}

bool VerifiedChunksImpl::SeesAgain(const FileKey& file) {
  const std::lock_guard lock(mutex_);
  return file.is_known() && !seen_.insert(file).second;
}

}  // namespace internal::verify

std::shared_ptr<VerifiedChunks> VerifiedChunks::Create() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::make_shared<internal::verify::VerifiedChunksImpl>(
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count()));
}

}  // namespace sealpoint
