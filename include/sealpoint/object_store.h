// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_OBJECT_STORE_H_
#define SEALPOINT_OBJECT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/export.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

// Checkpoints in an object store. ObjectStore is the little that the library asks of a client of
// such a store; ObjectStorage makes a Storage of it. What the store itself must offer:
// spec/commit.md section 3.

namespace sealpoint {

struct StoredObject {
  std::string key{};
  std::uint64_t size_bytes = 0;
  std::string etag{};  // as the store spells it; empty if it gives none
  friend bool operator==(const StoredObject&, const StoredObject&) = default;
};

// One page of a listing by the delimiter '/'.
struct ObjectPage {
  std::vector<StoredObject> objects{};  // whose keys are `<prefix><name>`, without '/' in the name
  std::vector<std::string> prefixes{};  // `<prefix><name>/`, each once
  std::string next{};                   // continues the listing; empty after the last page
};

// A range of an object and the memory that it fills.
struct ObjectRange {
  std::uint64_t offset = 0;
  MutableByteSpan out{};
};

struct UnfinishedUpload {
  std::string key{};
  std::string upload_id{};
  std::uint64_t begun_unix_s = 0;  // 0 if the store does not say
};

// An object that is being written, strictly forward. It does not exist before Complete succeeded.
// The destructor aborts what is neither complete nor aborted. Thread safety: one caller at a time.
class SEALPOINT_EXPORT ObjectUpload {
 public:
  virtual ~ObjectUpload() = default;
  ObjectUpload(const ObjectUpload&) = delete;
  ObjectUpload& operator=(const ObjectUpload&) = delete;

  // Appends a part. All parts but the last have the store's part_size_bytes(). May return before
  // the part is sent, and waits if too many are under way. `part` must stay as it is until
  // `released` was called: once, on any thread, also after errors. After the first failure every
  // call fails with it.
  virtual Status Append(ByteSpan part, std::function<void()> released) = 0;
  // Waits for all parts; the object is there and durable after success. After an error it may be
  // there all the same (a lost reply); the caller looks, or gives the key up.
  virtual Status Complete() = 0;
  // Gives the upload up and frees what was sent, as far as the store answers.
  virtual void Abort() = 0;

 protected:
  ObjectUpload() = default;
};

// A client of one bucket. Keys are UTF-8 and do not begin with '/'. Functions retry by themselves
// what is safe to repeat, and end within a bounded time. Errors name the operation and the key,
// what the store answered, and what can be done about it; NoPermission and the like are Io.
// Thread safety: all functions.
class SEALPOINT_EXPORT ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;

  // "s3://bucket": what a path of this store begins with.
  virtual const std::string& uri() const = 0;
  // Size of each part of an upload but the last; constant.
  virtual std::uint64_t part_size_bytes() const = 0;

  // Makes or replaces an object in one request; durable after success. Errors: Io.
  virtual Status Put(const std::string& key, ByteSpan content) = 0;
  // Makes an object in one request that the store refuses if the key is taken: AlreadyExists. Never
  // repeated by the client after an ambiguous error: the caller looks (R-CMT-06). Errors: Io,
  // Unsupported (the store says that it knows no such condition).
  virtual Status PutIfAbsent(const std::string& key, ByteSpan content) = 0;
  // Errors: Io.
  virtual Result<std::unique_ptr<ObjectUpload>> StartUpload(const std::string& key) = 0;

  // Makes or replaces `to` with the content of another object of this bucket, which the store
  // copies by itself; durable after success. If `from.etag` is not empty it is asked that `from` is
  // still that one, where the store can. Returns the etag of the copy, or "" if the store gives
  // none. Errors: NotFound, Io; Unsupported (the client or the store cannot, or not one of this
  // size).
  virtual Result<std::string> Copy(const StoredObject& from, const std::string& to);

  // The first `size_max` bytes, or all, into `out`; the length of the whole object is in the
  // result. One request. Errors: NotFound, Io.
  virtual Result<StoredObject> GetFirst(const std::string& key, std::size_t size_max,
                                        Bytes& out) const = 0;
  // Fills all ranges, in requests of a good size, many under way at once. If `object.etag` is not
  // empty it is asked that the object is still that one, where the store can. Errors: NotFound,
  // Incomplete (the object ends before a range does), Io (also if it is another object now).
  virtual Status GetRanges(const StoredObject& object,
                           std::span<const ObjectRange> ranges) const = 0;
  // Errors: NotFound, Io.
  virtual Result<StoredObject> Head(const std::string& key) const = 0;
  // Objects and prefixes directly below `prefix` ("" or "…/"), sorted by key; `next` of the page
  // before, or empty. Errors: Io.
  virtual Result<ObjectPage> List(const std::string& prefix, const std::string& next) const = 0;

  // Removes objects; one that is not there is fine. Errors: Io (names the first that is left).
  virtual Status Delete(std::span<const std::string> keys) = 0;
  // Uploads below `prefix` that were begun and neither completed nor aborted. Errors: Io;
  // Unsupported if the client cannot list them.
  virtual Result<std::vector<UnfinishedUpload>> ListUploads(const std::string& prefix) const = 0;
  // Frees what was sent. Success if the upload is complete or gone. Errors: Io, Unsupported.
  virtual Status AbortUpload(const UnfinishedUpload& upload) = 0;

 protected:
  ObjectStore() = default;
};

struct ObjectStorageOptions {
  // Memory for parts that are filled or sent of files that no Engine writes (promotions, indexes),
  // over all of them. At least two parts; each such file may take one part beyond it. Blobs of an
  // Engine are counted in its EngineOptions::memory_budget_bytes instead.
  std::uint64_t upload_memory_bytes = 256 * kMiB;
};

// Paths are `<store.uri()>/<prefix>`; a directory is a prefix that has an object, or that
// CreateDirectories was called for. Publication is PutIfAbsent. Errors: InvalidArgument.
SEALPOINT_EXPORT Result<std::shared_ptr<Storage>> ObjectStorage(std::shared_ptr<ObjectStore> store,
                                                                ObjectStorageOptions options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_OBJECT_STORE_H_
