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

// Checkpoints in an object store. ObjectStore is the minimal interface that a client for an object
// store implements; ObjectStorage() makes a Storage from a client. Section 3 of spec/commit.md
// lists the requirements that the store itself must meet.

namespace sealpoint {

struct StoredObject {
  std::string key{};
  std::uint64_t size_bytes = 0;
  std::string etag{};  // as the store spells it; empty if unavailable
  friend bool operator==(const StoredObject&, const StoredObject&) = default;
};

// One page of a listing with the delimiter '/'.
struct ObjectPage {
  std::vector<StoredObject> objects{};  // keys are `<prefix><name>`, without '/' in the name
  std::vector<std::string> prefixes{};  // `<prefix><name>/`, each once
  std::string next{};                   // continues the listing; empty after the last page
};

// A range of bytes in an object, and the memory to read it into.
struct ObjectRange {
  std::uint64_t offset = 0;
  MutableByteSpan out{};
};

struct UnfinishedUpload {
  std::string key{};
  std::string upload_id{};
  std::uint64_t begun_unix_s = 0;  // 0 if the store does not report it
};

// An upload that writes one object sequentially. The object does not exist before Complete is
// called. The destructor aborts an upload that was neither completed nor aborted. Thread safety:
// one caller at a time.
class SEALPOINT_EXPORT ObjectUpload {
 public:
  virtual ~ObjectUpload() = default;
  ObjectUpload(const ObjectUpload&) = delete;
  ObjectUpload& operator=(const ObjectUpload&) = delete;

  // Appends a part. Every part except the last must have the size that the store's
  // part_size_bytes() returns. The call may return before the part is sent, and waits if too many
  // parts are in flight. `part` must remain unchanged until the upload calls `released`. The upload
  // calls `released` once per part, on any thread, even after an error. After the first failure,
  // every call returns the error of that failure.
  virtual Status Append(ByteSpan part, std::function<void()> released) = 0;
  // Waits for all parts. After success the object exists and is durable. The object may also exist
  // after an error, because the store's reply may have been lost. After an error, the caller must
  // therefore check whether the object exists, or stop using its key.
  virtual Status Complete() = 0;
  // Aborts the upload. If the store responds, it frees the parts that were sent.
  virtual void Abort() = 0;

 protected:
  ObjectUpload() = default;
};

// A client for one bucket. Keys are UTF-8 and do not begin with '/'. Functions retry requests that
// are safe to repeat, and return within a bounded time. Errors name the operation, the key, the
// store's response and a possible remedy. If access is denied, the error is Io. All functions are
// thread-safe.
class SEALPOINT_EXPORT ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;

  // Prefix of all paths in the store, for example "s3://bucket".
  virtual const std::string& uri() const = 0;
  // Size of each part of an upload except the last. The size never changes.
  virtual std::uint64_t part_size_bytes() const = 0;

  // Creates or replaces an object in one request. The object is durable after success. Errors: Io.
  virtual Status Put(const std::string& key, ByteSpan content) = 0;
  // Creates an object in one request. If the key exists, the store refuses the request, and the
  // error is AlreadyExists. If an error leaves the outcome unknown, the client does not repeat the
  // request; the caller must check whether the object exists (R-CMT-06). Further errors: Io,
  // Unsupported (the store reports that it does not support conditional requests).
  virtual Status PutIfAbsent(const std::string& key, ByteSpan content) = 0;
  // Errors: Io.
  virtual Result<std::unique_ptr<ObjectUpload>> StartUpload(const std::string& key) = 0;

  // Copies the object `from` to the key `to` in the same bucket. An existing object `to` is
  // replaced. The store itself copies the data. The copy is durable after success. If `from.etag`
  // is not empty and the store supports conditions on etags, the call succeeds only if `from` still
  // has that etag. Returns the etag of the copy, or "" if this etag is unavailable. Errors:
  // NotFound, Io; Unsupported (the client or the store cannot copy, or cannot copy an object of
  // this size).
  virtual Result<std::string> Copy(const StoredObject& from, const std::string& to);

  // Reads the first `size_max` bytes of an object into `out`, or all bytes if the object is
  // shorter. Sends one request. The returned size is the size of the whole object. Errors:
  // NotFound, Io.
  virtual Result<StoredObject> GetFirst(const std::string& key, std::size_t size_max,
                                        Bytes& out) const = 0;
  // Reads all ranges into memory, with concurrent requests of a suitable size. If `object.etag` is
  // not empty and the store supports conditions on etags, the requests succeed only if the object
  // still has that etag. Errors: NotFound, Incomplete (the object ends before the end of a range),
  // Io (also if the object was replaced).
  virtual Status GetRanges(const StoredObject& object,
                           std::span<const ObjectRange> ranges) const = 0;
  // Errors: NotFound, Io.
  virtual Result<StoredObject> Head(const std::string& key) const = 0;
  // Returns one page of the objects and prefixes directly below `prefix` ("" or "…/"), sorted by
  // key. `next` is empty for the first page; for each further page, it is ObjectPage::next of the
  // previous page. Errors: Io.
  virtual Result<ObjectPage> List(const std::string& prefix, const std::string& next) const = 0;

  // Removes objects. Missing objects are ignored. Errors: Io (the error names the first object that
  // remains).
  virtual Status Delete(std::span<const std::string> keys) = 0;
  // Lists uploads below `prefix` that were neither completed nor aborted. Errors: Io; Unsupported
  // (the client cannot list uploads).
  virtual Result<std::vector<UnfinishedUpload>> ListUploads(const std::string& prefix) const = 0;
  // Aborts an upload and frees its parts. Succeeds if the upload was already completed or no longer
  // exists. Errors: Io, Unsupported.
  virtual Status AbortUpload(const UnfinishedUpload& upload) = 0;

 protected:
  ObjectStore() = default;
};

struct ObjectStorageOptions {
  // Total memory for the upload parts of all files that are not written by an Engine, such as
  // promoted blobs and indexes. A value below the size of two parts counts as two parts. In
  // addition to this total, each file may use memory for one part. Blobs of an Engine use
  // EngineOptions::memory_budget_bytes instead.
  std::uint64_t upload_memory_bytes = 256 * kMiB;
};

// Returns a Storage for the objects of `store`. Paths are `<store.uri()>/<prefix>`. A directory
// exists if an object has the directory's prefix, or if CreateDirectories was called for the
// directory. Publication uses PutIfAbsent. Errors: InvalidArgument.
SEALPOINT_EXPORT Result<std::shared_ptr<Storage>> ObjectStorage(std::shared_ptr<ObjectStore> store,
                                                                ObjectStorageOptions options = {});

// A cache for blocks of remote files. With this cache, many small reads need only a few round
// trips. A reader uses one cache for all its files. All functions are thread-safe.
class SEALPOINT_EXPORT BlockCache {
 public:
  // The cache keeps at most `block_count_max` blocks, and one more block for each thread that is
  // reading.
  static std::shared_ptr<BlockCache> Create(std::uint64_t block_size_bytes,
                                            std::size_t block_count_max);
  virtual ~BlockCache() = default;
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // Returns a file that serves reads of less than half a block from the cache, and passes larger
  // reads and direct I/O to `file`. If `file` has a file descriptor, returns `file` itself, because
  // the operating system already caches its data. If the file changes, cached blocks are not
  // reloaded. The returned file keeps the cache alive.
  virtual std::unique_ptr<ReadableFile> Wrap(std::unique_ptr<ReadableFile> file) = 0;

 protected:
  BlockCache() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_OBJECT_STORE_H_
