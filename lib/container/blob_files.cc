// SPDX-License-Identifier: Apache-2.0
#include "lib/container/blob_files.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/format/constants.h"

namespace sealpoint::internal::container {
namespace {

constexpr std::size_t kOpenMax = 32;
// A thread reads what it has open within this time; waiting longer gains nothing.
constexpr int kTriesMax = 100;
constexpr std::chrono::milliseconds kBetweenTries(5);

}  // namespace

BlobFiles::File BlobFiles::OpenFiles::Find(std::uint32_t blob) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(files_.begin(), files_.end(),
                                  [&](const OpenFile& open) { return open.blob == blob; });
  return found != files_.end() ? found->file : nullptr;
}

void BlobFiles::OpenFiles::Keep(OpenFile file) {
  const std::lock_guard lock(mutex_);
  files_.push_back(std::move(file));
  if (files_.size() > kOpenMax) files_.pop_front();
}

bool BlobFiles::OpenFiles::CloseAll() {
  std::deque<OpenFile> closing;  // without the lock
  const std::lock_guard lock(mutex_);
  closing.swap(files_);
  return !closing.empty();
}

BlobFiles BlobFiles::InMode(IoMode mode) const {
  std::vector<std::shared_ptr<OpenFiles>> others = others_;
  others.push_back(open_);
  return {directory_, index_, mode, std::move(others)};
}

bool BlobFiles::CloseFiles() {
  bool any = open_->CloseAll();
  for (const auto& others : others_) any = others->CloseAll() || any;
  return any;
}

Result<std::shared_ptr<const ReadableFile>> BlobFiles::Open(std::uint32_t blob) {
  if (File file = open_->Find(blob)) return file;
  // Two threads may open the same blob; both files are good.
  const std::string name = format::BlobName(index_.blob(blob).id);
  Result<std::unique_ptr<ReadableFile>> opened = directory_.OpenForRead(name, mode_);
  // Other threads may close files, or take those that this one closed: hence several tries.
  for (int i = 0; i < kTriesMax && !opened && opened.error().is_out_of_files(); ++i) {
    if (!CloseFiles() && i > 0) std::this_thread::sleep_for(kBetweenTries);
    opened = directory_.OpenForRead(name, mode_);
  }
  if (!opened && (opened.error().code() == Code::kNotFound || IsNoFile(directory_, name))) {
    return RuleError(Code::kIncomplete, "R-BLB-01", "the blob is missing")
        .AtPath(JoinPath(directory_.path(), name));
  }
  if (!opened) return std::move(opened).error();
  return Check(blob, std::move(*opened));
}

std::shared_ptr<const ReadableFile> BlobFiles::TryOpen(std::uint32_t blob) {
  if (File file = open_->Find(blob)) return file;
  auto opened = directory_.OpenForRead(format::BlobName(index_.blob(blob).id), mode_);
  if (!opened) return nullptr;
  return Check(blob, std::move(*opened)).value_or(nullptr);
}

Result<std::shared_ptr<const ReadableFile>> BlobFiles::Check(std::uint32_t blob,
                                                             std::unique_ptr<ReadableFile> opened) {
  SEALPOINT_RETURN_IF_ERROR(
      CheckBlobSize(directory_.path(), index_.blob(blob), opened->size_bytes()));
  File file = std::move(opened);
  open_->Keep({.blob = blob, .file = file});
  return file;
}

}  // namespace sealpoint::internal::container
