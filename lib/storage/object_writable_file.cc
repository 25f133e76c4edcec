// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/object_writable_file.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::storage {

ObjectWritableFile::ObjectWritableFile(std::shared_ptr<ObjectStore> store,
                                       std::shared_ptr<PartBuffers> buffers, std::string key,
                                       OnTaken on_taken)
    : store_(std::move(store)),
      buffers_(std::move(buffers)),
      key_(std::move(key)),
      on_taken_(on_taken) {}

ObjectWritableFile::~ObjectWritableFile() {
  upload_.reset();  // aborts; without the lock, since it may call `released`
  Lock lock(buffers_->mutex);
  buffers_->changed.wait(lock, [this] { return under_way_ == 0; });
  while (!parts_.empty()) {
    PartBuffer buffer = std::move(parts_.begin()->second.buffer);
    parts_.erase(parts_.begin());
    GiveBack(std::move(buffer));
  }
  DischargeSpare();
}

// After it left parts_ or under_way_.
void ObjectWritableFile::GiveBack(PartBuffer buffer) {
  buffers_->Give(std::move(buffer), memory_ == nullptr);
  DischargeSpare();
  buffers_->changed.notify_all();
}

void ObjectWritableFile::DischargeSpare() {
  const std::uint64_t held = parts_.size() + under_way_;
  for (; charged_ > held - (uses_own() ? 1 : 0); --charged_) buffers_->Discharge(memory_);
}

Status ObjectWritableFile::Fail(Status status) {
  if (error_.ok() && !status.ok()) error_ = std::move(status);
  buffers_->changed.notify_all();
  return error_;
}

Status ObjectWritableFile::CheckUsable() const {
  SEALPOINT_RETURN_IF_ERROR(error_);
  if (is_closed_) return InvalidArgument("file is closed").AtPath(JoinPath(store_->uri(), key_));
  return {};
}

// The first part to be sent gets the file's own buffer as soon as no part of this file is under
// way, whatever the others hold (PartBuffers); what is under way comes back by itself.
Result<ObjectWritableFile::Part*> ObjectWritableFile::FindPart(std::uint64_t index, Lock& lock) {
  for (;;) {
    SEALPOINT_RETURN_IF_ERROR(CheckUsable());
    if (index < next_) {
      return Fail(InvalidArgument("bytes of part ", index, " are written a second time")
                      .AtPath(JoinPath(store_->uri(), key_)));
    }
    if (const auto found = parts_.find(index); found != parts_.end()) return &found->second;
    if (index == next_ && !uses_own()) break;
    if (buffers_->TryCharge(memory_)) {
      ++charged_;
      break;
    }
    buffers_->changed.wait(lock);
  }
  Result<PartBuffer> buffer = buffers_->Take();
  if (!buffer.ok()) return Fail(std::move(buffer).error());
  return &parts_.emplace(index, Part{.buffer = std::move(buffer).value()}).first->second;
}

Status ObjectWritableFile::WriteAt(std::uint64_t offset, ByteSpan data) {
  Lock lock(buffers_->mutex);
  if (is_complete_ || !RangeFits(offset, data.size(), std::numeric_limits<std::int64_t>::max())) {
    return Fail(InvalidArgument(is_complete_ ? "the object is complete, expected no more writes"
                                             : "the range exceeds the greatest file offset")
                    .AtPath(JoinPath(store_->uri(), key_))
                    .AtOffset(offset));
  }
  if (!data.empty()) size_ = std::max(size_, offset + data.size());
  const std::uint64_t part_size = buffers_->part_size_bytes();
  while (!data.empty()) {
    const std::uint64_t begin = offset % part_size;
    const ByteSpan piece = data.first(std::min<std::uint64_t>(data.size(), part_size - begin));
    SEALPOINT_ASSIGN_OR_RETURN(Part* const part, FindPart(offset / part_size, lock));
    ++part->writers;
    lock.unlock();
    std::memcpy(part->buffer.get() + begin, piece.data(), piece.size());
    lock.lock();
    --part->writers;
    part->filled += piece.size();
    SendWholeParts(lock);
    offset += piece.size();
    data = data.subspan(piece.size());
  }
  return error_;
}

void ObjectWritableFile::SendWholeParts(Lock& lock) {
  if (is_sending_) return;  // that thread looks again
  is_sending_ = true;
  for (auto first = parts_.begin();
       error_.ok() && first != parts_.end() && first->first == next_ &&
       first->second.writers == 0 && first->second.filled >= buffers_->part_size_bytes();
       first = parts_.begin()) {
    PartBuffer buffer = std::move(first->second.buffer);
    parts_.erase(first);
    ++next_;
    static_cast<void>(Fail(SendPart(std::move(buffer), buffers_->part_size_bytes(), lock)));
  }
  is_sending_ = false;
  buffers_->changed.notify_all();
}

Status ObjectWritableFile::SendPart(PartBuffer buffer, std::uint64_t size, Lock& lock) {
  ++under_way_;
  // std::function requires a copyable function.
  auto shared = std::make_shared<PartBuffer>(std::move(buffer));
  const ByteSpan bytes(shared->get(), size);
  // The destructor waits for it; the lock may outlive the file.
  const auto released = [this, buffers = buffers_, shared = std::move(shared)] {
    const std::lock_guard relock(buffers->mutex);
    --under_way_;
    GiveBack(std::move(*shared));
  };
  lock.unlock();
  Status status;
  if (!upload_) {
    auto started = store_->StartUpload(key_);
    status = started.status();
    if (started.ok()) upload_ = std::move(started).value();
  }
  if (status.ok()) {
    status = upload_->Append(bytes, released);
  } else {
    released();
  }
  lock.lock();
  return status;
}

Status ObjectWritableFile::Preallocate(std::uint64_t size_bytes) {
  const Lock lock(buffers_->mutex);
  SEALPOINT_RETURN_IF_ERROR(CheckUsable());
  if (RangeFits(0, size_bytes, std::numeric_limits<std::int64_t>::max())) return {};
  return InvalidArgument(size_bytes, " bytes exceed the greatest file offset")
      .AtPath(JoinPath(store_->uri(), key_));
}

Status ObjectWritableFile::Sync() {
  Lock lock(buffers_->mutex);
  SEALPOINT_RETURN_IF_ERROR(CheckUsable());
  if (is_complete_) return {};
  return Fail(Complete(lock));
}

Status ObjectWritableFile::Close() {
  Lock lock(buffers_->mutex);
  SEALPOINT_RETURN_IF_ERROR(CheckUsable());
  if (!is_complete_) SEALPOINT_RETURN_IF_ERROR(Fail(Complete(lock)));
  is_closed_ = true;
  return {};
}

Status ObjectWritableFile::Complete(Lock& lock) {
  buffers_->changed.wait(lock, [this] { return !is_sending_; });
  SEALPOINT_RETURN_IF_ERROR(error_);
  const std::uint64_t part_size = buffers_->part_size_bytes();
  const std::uint64_t rest = size_ - next_ * part_size;
  const auto last = parts_.find(next_);
  const std::uint64_t filled = last != parts_.end() ? last->second.filled : 0;
  if (filled != rest) {
    return InvalidArgument("bytes below ", size_, " were not written, or written twice; ",
                           "an object has no holes")
        .AtPath(JoinPath(store_->uri(), key_));
  }
  is_sending_ = true;
  PartBuffer tail;
  if (rest > 0) {
    tail = std::move(last->second.buffer);
    parts_.clear();
  }
  Status status;
  if (next_ == 0) {
    lock.unlock();
    const ByteSpan whole(tail.get(), rest);
    status =
        on_taken_ == OnTaken::kRefuse ? store_->PutIfAbsent(key_, whole) : store_->Put(key_, whole);
    lock.lock();
    if (tail) GiveBack(std::move(tail));
  } else {
    ++next_;
    if (rest > 0) status = SendPart(std::move(tail), rest, lock);
    lock.unlock();
    if (status.ok()) status = upload_->Complete();
    lock.lock();
  }
  is_sending_ = false;
  is_complete_ = status.ok();
  return status;
}

}  // namespace sealpoint::internal::storage
