// SPDX-License-Identifier: Apache-2.0
#include "lib/pipeline/file_stream.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::pipeline {
namespace {

// How much borrowed memory is copied, hashed and written at a time: it is still in the cache when
// it is written.
constexpr std::size_t kBorrowedBlockBytes = 128 * kKiB;

}  // namespace

// The state that the writing jobs share with the stream. They own a part of it, because a job may
// still run Write's last lines when the stream is destroyed.
struct FileStream::Shared {
  WritableFile* file = nullptr;     // set before the first write
  std::atomic<bool> failed{false};  // set after `error`; avoids the lock on every append
  std::mutex mutex;
  std::condition_variable finished;
  std::uint64_t writes_pending = 0;
  std::uint64_t borrowed_pending = 0;  // jobs that read borrowed memory
  std::uint64_t bytes_written = 0;
  Status error;  // the first one

  Status Fail(Status status) {
    const std::lock_guard lock(mutex);
    if (error.ok()) error = std::move(status);
    failed.store(true);
    return error;
  }
  Status Error() {
    if (!failed.load()) return {};
    const std::lock_guard lock(mutex);
    return error;
  }
  void WaitForWrites() { WaitForWritesBelow(1); }
  void WaitForWritesBelow(std::uint64_t count) {
    std::unique_lock lock(mutex);
    finished.wait(lock, [&] { return writes_pending < count; });
  }

  // Runs on a thread of the pool. After a failure nothing more is written, but every job still
  // returns its buffer and counts down: others wait for both.
  void Write(std::uint64_t offset, std::uint64_t size, device::StagingBuffer& buffer) {
    bool is_written = false;
    if (!failed.load()) {
      Status status = file->WriteAt(offset, buffer.bytes().first(size));
      is_written = status.ok();
      if (!is_written) static_cast<void>(Fail(std::move(status)));
    }
    // The buffer goes back before the count falls: a thread that waits for the count may destroy
    // the pool next.
    buffer = device::StagingBuffer();
    const std::lock_guard lock(mutex);
    if (is_written) bytes_written += size;
    --writes_pending;
    finished.notify_all();
  }
};

struct FileStream::Borrowed {
  std::uint64_t offset = 0;
  ByteSpan bytes{};
  std::uint64_t unit = 0;
  std::span<Digest> digests{};
  BlockVisitor visit{};
  std::uint64_t begin = 0;  // in the bytes of the call

  // Through a copy: the memory may change meanwhile, and what is hashed must be what is written.
  Status Write(WritableFile& file) const {
    digest::Hasher hasher;
    const auto copy = std::make_unique_for_overwrite<std::byte[]>(kBorrowedBlockBytes);
    std::uint64_t done = 0;
    for (Digest& digest : digests) {
      const std::uint64_t end = std::min<std::uint64_t>(bytes.size(), done + unit);
      while (done < end) {
        const std::uint64_t size = std::min<std::uint64_t>(end - done, kBorrowedBlockBytes);
        const MutableByteSpan block(copy.get(), size);
        hasher.CopyAndUpdate(bytes.subspan(done, size), block);
        if (visit) visit(begin + done, block);
        SEALPOINT_RETURN_IF_ERROR(file.WriteAt(offset + done, block));
        done += size;
      }
      digest = hasher.Finish();
    }
    return {};
  }
};

void FileStream::WriteBorrowed(Shared& shared, const Borrowed& borrowed) {
  bool is_written = false;
  if (!shared.failed.load()) {
    Status status = borrowed.Write(*shared.file);
    is_written = status.ok();
    if (!is_written) static_cast<void>(shared.Fail(std::move(status)));
  }
  const std::lock_guard lock(shared.mutex);
  if (is_written) shared.bytes_written += borrowed.bytes.size();
  --shared.writes_pending;
  --shared.borrowed_pending;
  shared.finished.notify_all();
}

Status FileStream::AppendBorrowed(ByteSpan bytes, std::uint64_t unit, std::span<Digest> digests,
                                  const BlockVisitor& visit) {
  SEALPOINT_CHECK(is_bound_ && unit > 0);
  if (filled_ != 0) SubmitBuffer();
  // Some pieces per thread, so that all end at about the same time; whole units each.
  const std::uint64_t units = std::max<std::uint64_t>(1, pool_.buffer_size_bytes() / unit);
  for (std::uint64_t begin = 0; !digests.empty();) {
    const std::size_t count = std::min<std::size_t>(digests.size(), units);
    const Borrowed borrowed{
        .offset = buffer_offset_,
        .bytes = bytes.first(std::min<std::uint64_t>(bytes.size(), count * unit)),
        .unit = unit,
        .digests = digests.first(count),
        .visit = visit,
        .begin = begin};
    begin += borrowed.bytes.size();
    buffer_offset_ += borrowed.bytes.size();
    bytes = bytes.subspan(borrowed.bytes.size());
    digests = digests.subspan(count);
    bool is_io_busy = false;
    {
      const std::lock_guard lock(shared_->mutex);
      is_io_busy = shared_->borrowed_pending >= static_cast<std::uint64_t>(io_.thread_count());
      ++shared_->writes_pending;
      ++shared_->borrowed_pending;
    }
    if (is_io_busy) {
      WriteBorrowed(*shared_, borrowed);
    } else {
      io_.Submit([shared = shared_, borrowed] { WriteBorrowed(*shared, borrowed); });
    }
  }
  return CheckFailed();
}

Status FileStream::WaitForBorrowed() {
  {
    std::unique_lock lock(shared_->mutex);
    shared_->finished.wait(lock, [this] { return shared_->borrowed_pending == 0; });
  }
  return CheckFailed();
}

FileStream::FileStream(device::StagingPool& pool, ThreadPool& io)
    : pool_(pool), io_(io), shared_(std::make_shared<Shared>()) {}

FileStream::FileStream(WritableFile& file, device::StagingPool& pool, ThreadPool& io)
    : FileStream(pool, io) {
  Bind(file);
}

FileStream::~FileStream() { shared_->WaitForWrites(); }

std::uint64_t FileStream::BuffersMax(const ThreadPool& io) {
  constexpr std::uint64_t kEnough = 16;
  return std::max(kEnough, 2 * static_cast<std::uint64_t>(io.thread_count()) + 2);
}

std::uint64_t FileStream::offset() const { return buffer_offset_ + filled_; }

void FileStream::SubmitBuffer() {
  FilledBuffer filled{std::move(buffer_), buffer_offset_, filled_};
  buffer_offset_ += filled_;
  filled_ = 0;
  held_.push_back(std::move(filled));
  SubmitHeld();
}

void FileStream::SubmitHeld() {
  const auto may_go = [this](const FilledBuffer& filled) {
    return is_bound_ && (!hold_from_ || filled.offset + filled.size <= *hold_from_);
  };
  for (; !held_.empty() && may_go(held_.front()); held_.pop_front()) {
    Submit(std::move(held_.front()));
  }
}

void FileStream::HoldFrom(std::optional<std::uint64_t> offset) {
  hold_from_ = offset;
  SubmitHeld();
}

void FileStream::Submit(FilledBuffer filled) {
  {
    const std::lock_guard lock(shared_->mutex);
    ++shared_->writes_pending;
  }
  // std::function requires a copyable job.
  auto buffer = std::make_shared<device::StagingBuffer>(std::move(filled.buffer));
  io_.Submit([shared = shared_, buffer = std::move(buffer), offset = filled.offset,
              size = filled.size] { shared->Write(offset, size, *buffer); });
}

void FileStream::ReplaceFront(ByteSpan bytes) {
  const bool is_full = !held_.empty();
  const MutableByteSpan front =
      is_full ? held_.front().buffer.bytes() : buffer_.bytes().first(filled_);
  SEALPOINT_CHECK(!is_bound_ && bytes.size() <= front.size());
  std::memcpy(front.data(), bytes.data(), bytes.size());
}

void FileStream::Bind(WritableFile& file) {
  SEALPOINT_CHECK(!is_bound_);
  shared_->file = &file;
  is_bound_ = true;
  SubmitHeld();
}

bool FileStream::WaitForWrites(std::chrono::milliseconds timeout) {
  std::unique_lock lock(shared_->mutex);
  return shared_->finished.wait_for(lock, timeout, [this] { return shared_->writes_pending == 0; });
}

std::uint64_t FileStream::bytes_written() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->bytes_written;
}

Status FileStream::CheckFailed() {
  Status error = shared_->Error();
  // Copies from a device may still fill the held buffers: these must not go back to the pool, which
  // would lend them to somebody else while the device writes into them.
  if (!error.ok() && !hold_from_) {
    buffer_ = device::StagingBuffer();
    held_.clear();
  }
  return error;
}

Result<MutableByteSpan> FileStream::Window() {
  SEALPOINT_RETURN_IF_ERROR(CheckFailed());
  if (buffer_.empty()) {
    if (is_bound_) shared_->WaitForWritesBelow(BuffersMax(io_));
    auto acquired = AcquireBuffer();
    if (!acquired) return shared_->Fail(std::move(acquired).error());
    buffer_ = *std::move(acquired);
  }
  return buffer_.bytes().subspan(filled_);
}

// Waiting at once would be a deadlock if all buffers are held for copies that only this thread
// completes. So it completes some for as long as there are any, and waits only when every buffer is
// with a writing thread, which gives it back without help.
Result<device::StagingBuffer> FileStream::AcquireBuffer() {
  bool may_drain = drain_ != nullptr && is_bound_;
  while (may_drain) {
    SEALPOINT_ASSIGN_OR_RETURN(device::StagingBuffer buffer, pool_.TryAcquire());
    if (!buffer.empty()) return buffer;
    SEALPOINT_ASSIGN_OR_RETURN(may_drain, drain_());
  }
  return pool_.Acquire();
}

void FileStream::Advance(std::uint64_t count) {
  if (count == 0) return;
  SEALPOINT_CHECK(!buffer_.empty() && count <= buffer_.bytes().size() - filled_);
  filled_ += count;
  if (filled_ == buffer_.bytes().size()) SubmitBuffer();
}

template <typename Fill>
Status FileStream::Produce(std::uint64_t count, const Fill& fill) {
  std::uint64_t done = 0;
  while (done < count) {
    SEALPOINT_ASSIGN_OR_RETURN(MutableByteSpan window, Window());
    const std::uint64_t part = std::min<std::uint64_t>(window.size(), count - done);
    fill(done, window.first(part));
    Advance(part);
    done += part;
  }
  return CheckFailed();
}

Status FileStream::Append(ByteSpan bytes) {
  return Produce(bytes.size(), [bytes](std::uint64_t done, MutableByteSpan to) {
    std::memcpy(to.data(), bytes.data() + done, to.size());
  });
}

Status FileStream::Append(ByteSpan bytes, digest::Hasher& hasher, const BlockVisitor& visit) {
  return Produce(bytes.size(), [bytes, &hasher, &visit](std::uint64_t done, MutableByteSpan to) {
    hasher.CopyAndUpdate(bytes.subspan(done, to.size()), to);
    if (visit) visit(done, to);
  });
}

Status FileStream::AppendZeros(std::uint64_t count) {
  return Produce(count,
                 [](std::uint64_t, MutableByteSpan to) { std::memset(to.data(), 0, to.size()); });
}

Status FileStream::AlignTo(std::uint64_t alignment) {
  SEALPOINT_CHECK(alignment != 0);
  const std::uint64_t over = offset() % alignment;
  return AppendZeros(over == 0 ? 0 : alignment - over);
}

Status FileStream::Flush() {
  SEALPOINT_CHECK(is_bound_);
  SEALPOINT_RETURN_IF_ERROR(CheckFailed());
  if (offset() % kDirectIoAlignmentBytes != 0) {
    static_cast<void>(
        shared_->Fail(InvalidArgument("stream is flushed at offset ", offset(),
                                      ", expected a multiple of ", kDirectIoAlignmentBytes)));
    return CheckFailed();
  }
  if (filled_ != 0) SubmitBuffer();
  SEALPOINT_CHECK(held_.empty());
  buffer_ = device::StagingBuffer();
  shared_->WaitForWrites();
  return CheckFailed();
}

}  // namespace sealpoint::internal::pipeline
