// SPDX-License-Identifier: Apache-2.0
#include "tests/support/storage/memory_object_store.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <thread>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::testing {
namespace {

using internal::MakeError;

Bytes CopyOf(ByteSpan bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

class MemoryObjectStore::Upload final : public ObjectUpload {
 public:
  Upload(MemoryObjectStore& store, std::string key, std::uint64_t id)
      : store_(store), key_(std::move(key)), id_(id) {
    if (store_.sends_behind) sender_ = std::thread([this] { SendAll(); });
  }
  ~Upload() override { Abort(); }

  Status Append(ByteSpan part, std::function<void()> released) override {
    {
      const std::lock_guard lock(store_.mutex_);
      store_.held_bytes_ += part.size();
      store_.held_bytes_max_ = std::max(store_.held_bytes_max_, store_.held_bytes_);
    }
    std::unique_lock lock(mutex_);
    if (error_.ok() && was_short_) {
      error_ = internal::InvalidArgument("a part follows one that is shorter than a part");
    }
    was_short_ = part.size() != store_.part_size;
    const Status status = error_;
    held_.push_back({part, std::move(released)});
    lock.unlock();
    changed_.notify_all();
    if (!sender_.joinable()) SendOne();
    return status.ok() && !sender_.joinable() ? Error() : status;
  }
  Status Complete() override {
    Stop();
    if (!store_.forgets_parts) SEALPOINT_RETURN_IF_ERROR(Error());
    error_ = store_.Do(Request::kComplete, key_, [&] {
      if (store_.uploads_.erase(id_) == 0) return MakeError(Code::kIo, "no such upload");
      store_.Make(key_, content_);
      return Status();
    });
    return error_;
  }
  void Abort() override {
    Stop();
    if (error_.ok()) error_ = MakeError(Code::kIo, "the upload was aborted");
    const std::lock_guard lock(store_.mutex_);
    if (!store_.IsDead(store_.requests_)) store_.uploads_.erase(id_);
  }

 private:
  struct Held {
    ByteSpan part;
    std::function<void()> released;
  };
  Status Error() {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
    }
    changed_.notify_all();
    if (sender_.joinable()) sender_.join();
  }
  void SendAll() {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return is_stopped_ || !held_.empty(); });
        if (held_.empty()) return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      SendOne();
    }
  }
  void SendOne() {
    std::unique_lock lock(mutex_);
    const Held held = std::move(held_.front());
    held_.pop_front();
    if (store_.on_part) store_.on_part();
    if (error_.ok()) {
      error_ = store_.Do(Request::kPart, key_, [&] {
        content_.insert(content_.end(), held.part.begin(), held.part.end());
        return Status();
      });
    }
    lock.unlock();
    {
      const std::lock_guard store_lock(store_.mutex_);
      store_.held_bytes_ -= held.part.size();
    }
    held.released();
  }

  MemoryObjectStore& store_;
  const std::string key_;
  const std::uint64_t id_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Bytes content_;
  std::deque<Held> held_;
  bool was_short_ = false;
  bool is_stopped_ = false;
  Status error_;
  std::thread sender_;
};

void MemoryObjectStore::FailAt(std::uint64_t number, Trouble trouble) {
  const std::lock_guard lock(mutex_);
  fail_at_ = requests_ + number;
  trouble_ = trouble;
}

void MemoryObjectStore::Settle() {
  const std::lock_guard lock(mutex_);
  for (const Delayed& delayed : std::exchange(delayed_, {})) delayed.effect();
  fail_at_.reset();
}

std::uint64_t MemoryObjectStore::request_count() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::uint64_t MemoryObjectStore::count(Request kind) const {
  const std::lock_guard lock(mutex_);
  return counts_.at(static_cast<std::size_t>(kind));
}

void MemoryObjectStore::ResetCounts() {
  const std::lock_guard lock(mutex_);
  requests_ = 0;
  counts_.fill(0);
}

std::uint64_t MemoryObjectStore::held_bytes_max() const {
  const std::lock_guard lock(mutex_);
  return held_bytes_max_;
}

std::size_t MemoryObjectStore::unfinished_uploads() const {
  const std::lock_guard lock(mutex_);
  return uploads_.size();
}

std::map<std::string, Bytes> MemoryObjectStore::Objects() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, Bytes> found;
  for (const auto& [key, object] : objects_) found.emplace(key, object.content);
  return found;
}

void MemoryObjectStore::Set(const std::string& key, Bytes content) {
  const std::lock_guard lock(mutex_);
  Make(key, std::move(content));
}

Status MemoryObjectStore::Do(Request kind, const std::string& key,
                             const std::function<Status()>& effect) const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = requests_++;
  ++counts_.at(static_cast<std::size_t>(kind));
  std::vector<Delayed> later;
  for (Delayed& delayed : std::exchange(delayed_, {})) {
    if (delayed.due <= number) {
      delayed.effect();
    } else {
      later.push_back(std::move(delayed));
    }
  }
  delayed_ = std::move(later);
  if (!IsDead(number) && fail_at_ != number) return effect();
  if (trouble_ == Trouble::kLostReply) static_cast<void>(effect());
  if (trouble_ == Trouble::kDelayed &&
      (kind == Request::kPut || kind == Request::kPutIfAbsent || kind == Request::kDelete)) {
    delayed_.push_back({number + delay, [effect] { static_cast<void>(effect()); }});
  }
  return MakeError(Code::kIo, "the store has trouble with request ", number)
      .AtPath(JoinPath(uri_, key));
}

bool MemoryObjectStore::IsDead(std::uint64_t number) const {
  return fail_at_ && trouble_ == Trouble::kDead && number > *fail_at_;
}

StoredObject MemoryObjectStore::InfoOf(const std::string& key, const Object& object) const {
  return {.key = key,
          .size_bytes = object.content.size(),
          .etag = gives_etags ? etag.value_or(std::to_string(object.version)) : ""};
}

Status MemoryObjectStore::Missing(const std::string& key) const {
  return MakeError(Code::kNotFound, "no such key").AtPath(JoinPath(uri_, key));
}

void MemoryObjectStore::Make(const std::string& key, Bytes content) {
  objects_[key] = {.content = std::move(content), .version = ++versions_};
}

Status MemoryObjectStore::Put(const std::string& key, ByteSpan content) {
  return Do(Request::kPut, key, [this, key, copy = CopyOf(content)] {
    Make(key, copy);
    return Status();
  });
}

Status MemoryObjectStore::PutIfAbsent(const std::string& key, ByteSpan content) {
  if (hook && key.ends_with(hook_on)) std::exchange(hook, nullptr)();
  if (!has_condition) return MakeError(Code::kUnsupported, "the store knows no condition");
  return Do(Request::kPutIfAbsent, key, [this, key, copy = CopyOf(content)] {
    if (!ignores_condition && objects_.find(key) != objects_.end()) {
      return MakeError(Code::kAlreadyExists, "the key exists already").AtPath(JoinPath(uri_, key));
    }
    Make(key, copy);
    return Status();
  });
}

Result<std::unique_ptr<ObjectUpload>> MemoryObjectStore::StartUpload(const std::string& key) {
  std::uint64_t id = 0;
  SEALPOINT_RETURN_IF_ERROR(Do(Request::kStartUpload, key, [&] {
    id = ++versions_;
    uploads_.emplace(id, key);
    return Status();
  }));
  return std::unique_ptr<ObjectUpload>(std::make_unique<Upload>(*this, key, id));
}

// A copy has the version, and so the etag, of its source: as of one content.
Result<std::string> MemoryObjectStore::Copy(const StoredObject& from, const std::string& to) {
  if (!can_copy) return ObjectStore::Copy(from, to);
  std::string copied;
  SEALPOINT_RETURN_IF_ERROR(Do(Request::kCopy, to, [&] {
    const auto found = objects_.find(from.key);
    if (found == objects_.end()) return Missing(from.key);
    if (InfoOf(from.key, found->second).etag != from.etag) {
      return MakeError(Code::kIo, "another object has the key now");
    }
    Object copy = found->second;
    if (copies_badly) {
      copy.content.back() ^= std::byte{1};
      copy.version = ++versions_;
    }
    copied = copy_etag.value_or(InfoOf(to, copy).etag);
    objects_[to] = std::move(copy);
    return Status();
  }));
  return copied;
}

Result<StoredObject> MemoryObjectStore::GetFirst(const std::string& key, std::size_t size_max,
                                                 Bytes& out) const {
  StoredObject info;
  SEALPOINT_RETURN_IF_ERROR(Do(Request::kGet, key, [&] {
    const auto found = objects_.find(key);
    if (found == objects_.end()) return Missing(key);
    info = InfoOf(key, found->second);
    out = CopyOf(ByteSpan(found->second.content)
                     .first(std::min<std::size_t>(size_max, found->second.content.size())));
    return Status();
  }));
  return info;
}

Status MemoryObjectStore::GetRanges(const StoredObject& object,
                                    std::span<const ObjectRange> ranges) const {
  for (const ObjectRange& range : ranges) {
    SEALPOINT_RETURN_IF_ERROR(Do(Request::kGet, object.key, [&] {
      const auto found = objects_.find(object.key);
      if (found == objects_.end()) return Missing(object.key);
      const Bytes& content = found->second.content;
      if (!object.etag.empty() && InfoOf(object.key, found->second).etag != object.etag) {
        return MakeError(Code::kIo, "another object has the key now");
      }
      if (range.offset + range.out.size() > content.size()) {
        return MakeError(Code::kIncomplete, "the range exceeds the object");
      }
      std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(range.offset), range.out.size(),
                  range.out.begin());
      return Status();
    }));
  }
  return {};
}

Result<StoredObject> MemoryObjectStore::Head(const std::string& key) const {
  StoredObject info;
  SEALPOINT_RETURN_IF_ERROR(Do(Request::kHead, key, [&] {
    const auto found = objects_.find(key);
    if (found == objects_.end()) return Missing(key);
    info = InfoOf(key, found->second);
    return Status();
  }));
  return info;
}

// `next` is the last key or prefix of the page before.
Result<ObjectPage> MemoryObjectStore::List(const std::string& prefix,
                                           const std::string& next) const {
  ObjectPage page;
  SEALPOINT_RETURN_IF_ERROR(Do(Request::kList, prefix, [&] {
    std::string last;
    for (auto it = objects_.lower_bound(prefix);
         it != objects_.end() && it->first.starts_with(prefix); ++it) {
      const std::size_t slash = it->first.find('/', prefix.size());
      const bool is_object = slash == std::string::npos;
      const std::string item = is_object ? it->first : it->first.substr(0, slash + 1);
      if (item <= next || item == last) continue;
      if (page.objects.size() + page.prefixes.size() == page_size) {
        page.next = last;
        break;
      }
      if (is_object) {
        page.objects.push_back(InfoOf(item, it->second));
      } else {
        page.prefixes.push_back(item);
      }
      last = item;
    }
    const bool is_inside = ghost.size() > prefix.size() && ghost.starts_with(prefix);
    if (is_inside && next.empty()) page.prefixes.push_back(ghost);
    return Status();
  }));
  return page;
}

Status MemoryObjectStore::Delete(std::span<const std::string> keys) {
  const std::vector<std::string> all(keys.begin(), keys.end());
  return Do(Request::kDelete, all.empty() ? "" : all.front(), [this, all] {
    for (const std::string& key : all) objects_.erase(key);
    return Status();
  });
}

Result<std::vector<UnfinishedUpload>> MemoryObjectStore::ListUploads(
    const std::string& prefix) const {
  if (!lists_uploads) return MakeError(Code::kUnsupported, "this client cannot list uploads");
  std::vector<UnfinishedUpload> found;
  SEALPOINT_RETURN_IF_ERROR(Do(Request::kListUploads, prefix, [&] {
    for (const auto& [id, key] : uploads_) {
      if (!key.starts_with(prefix)) continue;
      found.push_back({.key = key, .upload_id = std::to_string(id), .begun_unix_s = id});
    }
    return Status();
  }));
  return found;
}

Status MemoryObjectStore::AbortUpload(const UnfinishedUpload& upload) {
  return Do(Request::kAbortUpload, upload.key, [this, id = std::stoull(upload.upload_id)] {
    uploads_.erase(id);
    return Status();
  });
}

}  // namespace sealpoint::testing
