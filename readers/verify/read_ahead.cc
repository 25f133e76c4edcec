// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/read_ahead.h"

#include <algorithm>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/macros.h"

namespace sealpoint::internal {

ReadAhead::ReadAhead(const ReadableFile& file, StagingPool& pool, ThreadPool& io,
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

Status ReadAhead::ReadInto(const Slot& slot) const {
  return file_.ReadAt(slot.offset, slot.buffer.bytes().first(slot.size));
}

// Precondition: nobody reads into the slot.
void ReadAhead::SubmitNext(Slot& slot) {
  slot.offset = next_offset_;
  slot.size = std::min<std::uint64_t>(slot.buffer.bytes().size(), pages_end_ - next_offset_);
  slot.is_read = false;
  next_offset_ += slot.size;
  {
    const std::lock_guard lock(sync_->mutex);
    ++sync_->pending;
  }
  io_.Submit([this, &slot, sync = sync_] {
    Status status = ReadInto(slot);
    {
      const std::lock_guard lock(sync->mutex);
      slot.status = std::move(status);
      slot.is_read = true;
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
    SEALPOINT_ASSIGN_OR_RETURN(slots_[0].buffer, pool_.AcquireScratch(total));
    slots_[0].offset = next_offset_;
    slots_[0].size = total;
    next_offset_ = pages_end_;
    started_ = 1;
    slots_[0].status = ReadInto(slots_[0]);
    slots_[0].is_read = true;
    return {};
  }
  for (Slot& slot : slots_) {
    if (next_offset_ == pages_end_) break;
    SEALPOINT_ASSIGN_OR_RETURN(slot.buffer, pool_.Acquire());
    ++started_;
    SubmitNext(slot);
  }
  return {};
}

ReadAhead::Piece ReadAhead::PieceOf(const Slot& slot) const {
  Piece piece;
  piece.offset = std::max(slot.offset, begin_);
  piece.size = std::min(slot.offset + slot.size, end_) - piece.offset;
  piece.status = slot.status;
  if (slot.status.ok()) {
    piece.bytes = slot.buffer.bytes().subspan(piece.offset - slot.offset, piece.size);
  }
  return piece;
}

Result<std::optional<ReadAhead::Piece>> ReadAhead::Next() {
  if (!is_begun_) {
    SEALPOINT_RETURN_IF_ERROR(Start());
  } else if (started_ > 0) {
    // The piece that was handed out before is free now.
    Slot& last = slots_[current_];
    current_ = (current_ + 1) % started_;
    if (next_offset_ < pages_end_) {
      SubmitNext(last);
    } else {
      last.size = 0;
    }
  }
  if (started_ == 0) return std::optional<Piece>();
  Slot& slot = slots_[current_];
  if (slot.size == 0) return std::optional<Piece>();
  std::unique_lock lock(sync_->mutex);
  sync_->changed.wait(lock, [&slot] { return slot.is_read; });
  return std::optional<Piece>(PieceOf(slot));
}

}  // namespace sealpoint::internal
