// SPDX-License-Identifier: Apache-2.0
#include "lib/container/blob_files.h"

#include <algorithm>
#include <string>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/format/constants.h"

namespace sealpoint::internal {
namespace {

constexpr std::size_t kOpenMax = 32;

}  // namespace

Result<std::shared_ptr<const ReadableFile>> BlobFiles::Open(std::uint32_t blob) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(open_.begin(), open_.end(),
                                    [blob](const Entry& entry) { return entry.first == blob; });
    if (found != open_.end()) return found->second;
  }
  // Without the lock: on a network file system an open takes a while. Two threads may open the same
  // blob; both files are good.
  const BlobPin pin = index_.blob(blob);
  const std::string name = BlobName(pin.id);
  Result<std::unique_ptr<ReadableFile>> opened = directory_.OpenForRead(name, mode_);
  if (!opened && (opened.error().code() == Code::kNotFound || IsNoFile(directory_, name))) {
    return RuleError(Code::kIncomplete, "R-BLB-01", "the blob is missing")
        .AtPath(JoinPath(directory_.path(), name));
  }
  if (!opened) return std::move(opened).error();
  SEALPOINT_RETURN_IF_ERROR(CheckBlobSize(directory_.path(), pin, (*opened)->size_bytes()));
  std::shared_ptr<const ReadableFile> file = std::move(*opened);
  const std::lock_guard lock(mutex_);
  open_.emplace_back(blob, file);
  if (open_.size() > kOpenMax) open_.pop_front();
  return file;
}

}  // namespace sealpoint::internal
