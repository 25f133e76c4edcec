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

// Checkpoints in an object store. ObjectStore is the minimal interface of a client of such a store;
// ObjectStorage makes a Storage of it. Section 3 of spec/commit.md lists the requirements on the
// store itself.

namespace sealpoint {

struct StoredObject {
  std::string key{};
  std::uint64_t size_bytes = 0;
  std::string etag{};  // in the store's spelling; empty if unavailable
  friend bool operator==(const StoredObject&, const StoredObject&) = default;
};

// One page of a listing with the delimiter '/'.
struct ObjectPage {
  std::vector<StoredObject> objects{};  // keys are `<prefix><name>`, without '/' in the name
  std::vector<std::string> prefixes{};  // `<prefix><name>/`, each once
  std::string next{};                   // continues the listing; empty after the last page
};

// A range of an object and the memory to read it into.
struct ObjectRange {
  std::uint64_t offset = 0;
  MutableByteSpan out{};
};

struct UnfinishedUpload {
  std::string key{};
  std::string upload_id{};
  std::uint64_t begun_unix_s = 0;  // 0 if the store does not report it
};

// An object that is being written sequentially. It does not exist before Complete succeeds. The
// destructor aborts the upload unless it was completed or aborted. Thread safety: one caller at a
// time.
class SEALPOINT_EXPORT ObjectUpload {
 public:
  virtual ~ObjectUpload() = default;
  ObjectUpload(const ObjectUpload&) = delete;
  ObjectUpload& operator=(const ObjectUpload&) = delete;

  // Appends a part. All parts but the last must have the store's part_size_bytes(). May return
  // before the part is sent; waits if too many parts are in flight. `part` must remain unchanged
  // until `released` is called: once, on any thread, also after errors. After the first failure
  // every call returns its error.
  virtual Status Append(ByteSpan part, std::function<void()> released) = 0;
  // Waits for all parts. After success the object exists and is durable. After an error it may also
  // exist (a lost reply); the caller must check, or no longer use the key.
  virtual Status Complete() = 0;
  // Aborts the upload and frees the parts that were sent, if the store responds.
  virtual void Abort() = 0;

 protected:
  ObjectUpload() = default;
};

// A client of one bucket. Keys are UTF-8 and do not begin with '/'. Functions retry requests that
// are safe to repeat, and return within a bounded time. Errors name the operation, the key, the
// store's response and a possible remedy. Access errors are Io. Thread safety: all functions.
class SEALPOINT_EXPORT ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;

  // Prefix of the store's paths: "s3://bucket".
  virtual const std::string& uri() const = 0;
  // Size of each part of an upload but the last; constant.
  virtual std::uint64_t part_size_bytes() const = 0;

  // Creates or replaces an object in one request; durable after success. Errors: Io.
  virtual Status Put(const std::string& key, ByteSpan content) = 0;
  // Creates an object in one request; the store refuses it with AlreadyExists if the key exists.
  // The client never repeats it after an ambiguous error: the caller must check (R-CMT-06). Errors:
  // Io, Unsupported (the store reports that it does not support the condition).
  virtual Status PutIfAbsent(const std::string& key, ByteSpan content) = 0;
  // Errors: Io.
  virtual Result<std::unique_ptr<ObjectUpload>> StartUpload(const std::string& key) = 0;

  // Creates or replaces `to` with the content of another object of this bucket, copied by the store
  // itself; durable after success. If `from.etag` is not empty, the copy requires that `from` still
  // has it, if the store supports that. Returns the etag of the copy, or "" if unavailable. Errors:
  // NotFound, Io; Unsupported (by the client or the store, or for this size).
  virtual Result<std::string> Copy(const StoredObject& from, const std::string& to);

  // Reads the first `size_max` bytes, or fewer if the object is shorter, into `out`. The result has
  // the length of the whole object. One request. Errors: NotFound, Io.
  virtual Result<StoredObject> GetFirst(const std::string& key, std::size_t size_max,
                                        Bytes& out) const = 0;
  // Fills all ranges, in concurrent requests of a suitable size. If `object.etag` is not empty, the
  // requests require that the object still has it, if the store supports that. Errors: NotFound,
  // Incomplete (the object ends before a range does), Io (also if the object was replaced).
  virtual Status GetRanges(const StoredObject& object,
                           std::span<const ObjectRange> ranges) const = 0;
  // Errors: NotFound, Io.
  virtual Result<StoredObject> Head(const std::string& key) const = 0;
  // Lists objects and prefixes directly below `prefix` ("" or "…/"), sorted by key. `next` is
  // empty, or `next` of the previous page. Errors: Io.
  virtual Result<ObjectPage> List(const std::string& prefix, const std::string& next) const = 0;

  // Removes objects; missing ones are ignored. Errors: Io (names the first remaining object).
  virtual Status Delete(std::span<const std::string> keys) = 0;
  // Lists uploads below `prefix` that were neither completed nor aborted. Errors: Io; Unsupported
  // if the client cannot list them.
  virtual Result<std::vector<UnfinishedUpload>> ListUploads(const std::string& prefix) const = 0;
  // Frees the parts of an upload. Succeeds if the upload is completed or gone. Errors: Io,
  // Unsupported.
  virtual Status AbortUpload(const UnfinishedUpload& upload) = 0;

 protected:
  ObjectStore() = default;
};

struct ObjectStorageOptions {
  // Memory for upload parts of files that no Engine writes (promotions, indexes), over all of them.
  // At least two parts; each such file may use one additional part. Blobs of an Engine use its
  // EngineOptions::memory_budget_bytes instead.
  std::uint64_t upload_memory_bytes = 256 * kMiB;
};

// Paths are `<store.uri()>/<prefix>`. A directory is a prefix that has an object, or for which
// CreateDirectories was called. Publication uses PutIfAbsent. Errors: InvalidArgument.
SEALPOINT_EXPORT Result<std::shared_ptr<Storage>> ObjectStorage(std::shared_ptr<ObjectStore> store,
                                                                ObjectStorageOptions options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_OBJECT_STORE_H_
