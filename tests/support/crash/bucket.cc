// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "sealpoint/object_store.h"
#include "tests/support/crash/disk_state.h"
#include "tests/support/storage/forwarding_storage.h"

namespace sealpoint::testing {
namespace {

using internal::MakeError;

constexpr std::string_view kBucketUri = "crash://bucket";

// Paths of a disk have no scheme.
class WithScheme final : public ForwardingStorage {
 public:
  using ForwardingStorage::ForwardingStorage;

  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override {
    return ForwardingStorage::OpenDirectory(Full(path));
  }
  Status CreateDirectories(std::string_view path) override {
    return ForwardingStorage::CreateDirectories(Full(path));
  }
  Result<std::vector<UnfinishedFile>> ListUnfinished(std::string_view path) const override {
    return ForwardingStorage::ListUnfinished(Full(path));
  }
  Status AbortUnfinished(std::string_view path, const UnfinishedFile& file) override {
    return ForwardingStorage::AbortUnfinished(Full(path), file);
  }

 private:
  static std::string Full(std::string_view path) {
    if (path.starts_with(kBucketUri)) return std::string(path);  // of an opened directory
    return JoinPath(kBucketUri, path == "." ? "" : path);
  }
};

}  // namespace

// The bucket as one actor sees it.
class CrashDisk::Bucket final : public ObjectStore {
 public:
  Bucket(std::shared_ptr<State> state, int actor) : state_(std::move(state)), actor_(actor) {}

  const std::string& uri() const override { return uri_; }
  std::uint64_t part_size_bytes() const override { return kBucketPartSize; }

  Status Put(const std::string& key, ByteSpan content) override {
    return state_->Change(PutOf(key, content), [&](CrashOp& op) {
      Make(op);
      return Status();
    });
  }
  Status PutIfAbsent(const std::string& key, ByteSpan content) override {
    return state_->Change(PutOf(key, content), [&](CrashOp& op) {
      if (objects().contains(key)) {
        return MakeError(Code::kAlreadyExists, "the key exists already").AtPath(PathOf(key));
      }
      Make(op);
      return Status();
    });
  }
  Result<std::unique_ptr<ObjectUpload>> StartUpload(const std::string& key) override;

  Result<StoredObject> GetFirst(const std::string& key, std::size_t size_max,
                                Bytes& out) const override {
    state_->Wait(actor_, key);
    const std::lock_guard lock(state_->mutex);
    SEALPOINT_ASSIGN_OR_RETURN(const StoredObject found, Find(key));
    const ByteSpan content(state_->at(objects().at(key)).content());
    const ByteSpan first = content.first(std::min(size_max, content.size()));
    out.assign(first.begin(), first.end());
    return found;
  }
  Status GetRanges(const StoredObject& object, std::span<const ObjectRange> ranges) const override {
    state_->Wait(actor_, object.key);
    const std::lock_guard lock(state_->mutex);
    SEALPOINT_ASSIGN_OR_RETURN(const StoredObject found, Find(object.key));
    if (found != object) return MakeError(Code::kIo, "another object has the key now");
    const ByteSpan content(state_->at(objects().at(object.key)).content());
    for (const ObjectRange& range : ranges) {
      if (range.offset + range.out.size() > content.size()) {
        return MakeError(Code::kIncomplete, "the range exceeds the object");
      }
      std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(range.offset), range.out.size(),
                  range.out.begin());
    }
    return {};
  }
  Result<StoredObject> Head(const std::string& key) const override {
    state_->Wait(actor_, key);
    const std::lock_guard lock(state_->mutex);
    return Find(key);
  }
  Result<ObjectPage> List(const std::string& prefix, const std::string& /*next*/) const override {
    state_->Wait(actor_, prefix);
    const std::lock_guard lock(state_->mutex);
    ObjectPage page;
    for (auto one = objects().lower_bound(prefix);
         one != objects().end() && one->first.starts_with(prefix); ++one) {
      const auto slash = one->first.find('/', prefix.size());
      if (slash == std::string::npos) {
        page.objects.push_back(Find(one->first).value());
        continue;
      }
      std::string below = one->first.substr(0, slash + 1);
      const bool is_new = page.prefixes.empty() || page.prefixes.back() != below;
      if (is_new) page.prefixes.push_back(std::move(below));
    }
    return page;
  }
  Status Delete(std::span<const std::string> keys) override {
    for (const std::string& key : keys) {
      CrashOp request{.actor = actor_, .kind = CrashOpKind::kRemove, .name = key};
      const Status removed = state_->Change(std::move(request), [&](CrashOp& op) {
        const auto found = objects().find(key);
        if (found == objects().end()) return MakeError(Code::kNotFound, "no such key");
        op.node = found->second;
        objects().erase(found);
        return Status();
      });
      if (removed.code() != Code::kNotFound) SEALPOINT_RETURN_IF_ERROR(removed);
    }
    return {};
  }
  Result<std::vector<UnfinishedUpload>> ListUploads(const std::string& prefix) const override {
    const std::lock_guard lock(state_->mutex);
    std::vector<UnfinishedUpload> found;
    for (const auto& [id, key] : state_->uploads) {
      if (key.starts_with(prefix)) found.push_back({.key = key, .upload_id = std::to_string(id)});
    }
    return found;
  }
  Status AbortUpload(const UnfinishedUpload& upload) override {
    return Request(upload.key, [&](CrashOp&) {
      state_->uploads.erase(std::stoull(upload.upload_id));
      return Status();
    });
  }

 private:
  class Upload;

  std::map<std::string, CrashNodeId, std::less<>>& objects() const { return state_->at(0).entries; }
  std::string PathOf(const std::string& key) const { return JoinPath(uri_, key); }
  CrashOp PutOf(const std::string& key, ByteSpan content) const {
    return {.actor = actor_,
            .kind = CrashOpKind::kPut,
            .name = key,
            .data = Bytes(content.begin(), content.end())};
  }
  void Make(CrashOp& op) {
    op.node = state_->Add({.written = op.data});
    objects().insert_or_assign(op.name, op.node);
  }
  Status Request(const std::string& key, const std::function<Status(CrashOp&)>& effect) {
    return state_->Change({.actor = actor_, .kind = CrashOpKind::kUpload, .name = key}, effect);
  }
  Result<StoredObject> Find(const std::string& key) const {
    const auto found = objects().find(key);
    if (found == objects().end()) {
      return MakeError(Code::kNotFound, "no such key").AtPath(PathOf(key));
    }
    return StoredObject{.key = key,
                        .size_bytes = state_->at(found->second).content().size(),
                        .etag = std::to_string(found->second)};
  }

  const std::shared_ptr<State> state_;
  const int actor_;
  const std::string uri_{kBucketUri};
};

class CrashDisk::Bucket::Upload final : public ObjectUpload {
 public:
  Upload(Bucket& bucket, std::string key, std::uint64_t id)
      : bucket_(bucket), key_(std::move(key)), id_(id) {}
  ~Upload() override { Abort(); }

  Status Append(ByteSpan part, std::function<void()> released) override {
    if (error_.ok()) {
      error_ = bucket_.Request(key_, [&](CrashOp&) {
        content_.insert(content_.end(), part.begin(), part.end());
        return Status();
      });
    }
    released();
    return error_;
  }
  Status Complete() override {
    SEALPOINT_RETURN_IF_ERROR(error_);
    is_over_ = true;
    return bucket_.state_->Change(bucket_.PutOf(key_, content_), [&](CrashOp& op) {
      if (bucket_.state_->uploads.erase(id_) == 0) return MakeError(Code::kIo, "no such upload");
      bucket_.Make(op);
      return Status();
    });
  }
  void Abort() override {
    if (std::exchange(is_over_, true)) return;
    static_cast<void>(bucket_.AbortUpload({.key = key_, .upload_id = std::to_string(id_)}));
  }

 private:
  Bucket& bucket_;
  const std::string key_;
  const std::uint64_t id_;
  Bytes content_;
  Status error_;
  bool is_over_ = false;
};

Result<std::unique_ptr<ObjectUpload>> CrashDisk::Bucket::StartUpload(const std::string& key) {
  std::uint64_t id = 0;
  SEALPOINT_RETURN_IF_ERROR(Request(key, [&](CrashOp&) {
    id = ++state_->upload_count;
    state_->uploads.emplace(id, key);
    return Status();
  }));
  return std::unique_ptr<ObjectUpload>(std::make_unique<Upload>(*this, key, id));
}

std::shared_ptr<Storage> CrashDisk::ViewOfBucket(std::shared_ptr<State> state, int actor) {
  auto bucket = std::make_shared<Bucket>(std::move(state), actor);
  return std::make_shared<WithScheme>(ObjectStorage(std::move(bucket)).value());
}

}  // namespace sealpoint::testing
