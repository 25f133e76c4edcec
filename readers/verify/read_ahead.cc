// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/read_ahead.h"

#include <algorithm>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::verify {

ReadAhead::ReadAhead(const ReadableFile& file, device::StagingPool& pool, pipeline::ThreadPool& io,
                     std::uint64_t begin, std::uint64_t end)
    : file_(file),
      pool_(pool),
      io_(io),
      begin_(begin),
      end_(end),
      next_offset_(begin - begin % kDirectIoAlignmentBytes),
      pages_end_(AlignUp(end, kDirectIoAlignmentBytes)) {}

ReadAhead::~ReadAhead() {
  std::unique_lock lock(sync_->mutex);
  sync_->changed.wait(lock, [this] { return sync_->pending == 0; });
}

Status ReadAhead::ReadInto(const Window& window) const {
  return file_.ReadAt(window.offset, window.buffer.bytes().first(window.size));
}

// Precondition: nobody reads into the window.
void ReadAhead::SubmitNext(Window& window) {
  window.offset = next_offset_;
  window.size = std::min<std::uint64_t>(window.buffer.bytes().size(), pages_end_ - next_offset_);
  window.is_read = false;
  next_offset_ += window.size;
  {
    const std::lock_guard lock(sync_->mutex);
    ++sync_->pending;
  }
  io_.Submit([this, &window, sync = sync_] {
    Status status = ReadInto(window);
    {
      const std::lock_guard lock(sync->mutex);
      window.status = std::move(status);
      window.is_read = true;
      --sync->pending;
    }
    sync->changed.notify_one();  // nobody but the caller's thread waits
  });
}

Status ReadAhead::Start() {
  is_begun_ = true;
  const std::uint64_t total = pages_end_ - next_offset_;
  if (total == 0) return {};
  if (total <= pool_.buffer_size_bytes()) {
    SEALPOINT_ASSIGN_OR_RETURN(windows_[0].buffer, pool_.AcquireScratch(total));
    windows_[0].offset = next_offset_;
    windows_[0].size = total;
    next_offset_ = pages_end_;
    started_ = 1;
    windows_[0].status = ReadInto(windows_[0]);
    windows_[0].is_read = true;
    return {};
  }
  for (Window& window : windows_) {
    if (next_offset_ == pages_end_) break;
    SEALPOINT_ASSIGN_OR_RETURN(window.buffer, pool_.Acquire());
    ++started_;
    SubmitNext(window);
  }
  return {};
}

ReadAhead::Part ReadAhead::PartOf(const Window& window) const {
  Part part;
  part.offset = std::max(window.offset, begin_);
  part.size = std::min(window.offset + window.size, end_) - part.offset;
  part.status = window.status;
  if (window.status.ok()) {
    part.bytes = window.buffer.bytes().subspan(part.offset - window.offset, part.size);
  }
  return part;
}

Result<std::optional<ReadAhead::Part>> ReadAhead::Next() {
  if (!is_begun_) {
    SEALPOINT_RETURN_IF_ERROR(Start());
  } else if (started_ > 0) {
    // The part that was handed out before is free now.
    Window& last = windows_[current_];
    current_ = (current_ + 1) % started_;
    if (next_offset_ < pages_end_) {
      SubmitNext(last);
    } else {
      last.size = 0;
    }
  }
  if (started_ == 0) return std::optional<Part>();
  Window& window = windows_[current_];
  if (window.size == 0) return std::optional<Part>();
  std::unique_lock lock(sync_->mutex);
  sync_->changed.wait(lock, [&window] { return window.is_read; });
  return std::optional<Part>(PartOf(window));
}

}  // namespace sealpoint::internal::verify
