// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_STORAGE_H_
#define SEALPOINT_STORAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/export.h"
#include "sealpoint/status.h"

// Storage of checkpoints. Every storage operation of a commit (spec/commit.md) is a separate call.
// A test can therefore drop, delay or reorder an operation, or make it fail. Paths are plain UTF-8
// strings with '/' as separator; names are single path components without '/'.
//
// Thread safety: const functions of one object may run concurrently. Functions of different objects
// are independent. Several threads may call WritableFile::WriteAt for disjoint ranges.

namespace sealpoint {

// Alignment in bytes of offset, length and memory for direct I/O. Blob lengths are multiples of
// this value.
inline constexpr std::uint64_t kDirectIoAlignmentBytes = 4096;

enum class EntryKind : std::uint8_t { kFile, kDirectory, kSymlink, kOther };

struct EntryInfo {
  std::string name{};
  EntryKind kind = EntryKind::kOther;  // of the entry itself; symbolic links are not followed
  // Size of a file, or of the file that a link points to. 0 for everything else and for broken
  // links.
  std::uint64_t size_bytes = 0;
  // Identifies hard links: names of the same file have the same number. The number has no other
  // meaning, and operator== ignores it. 0 if the number is unknown, if the storage has no shared
  // files, or if a link points to no file.
  std::uint64_t file_number = 0;
  friend bool operator==(const EntryInfo& a, const EntryInfo& b) {
    return a.name == b.name && a.kind == b.kind && a.size_bytes == b.size_bytes;
  }
};

// An upload to an object store that was neither completed nor aborted, for example because its
// process died. Directory listings do not show the upload, but storing it costs as much as storing
// a file.
struct UnfinishedFile {
  std::string name{};  // intended name relative to the requested path; contains '/'
  std::string upload_id{};
  std::uint64_t begun_unix_s = 0;  // 0 if the store does not report it
  friend bool operator==(const UnfinishedFile&, const UnfinishedFile&) = default;
};

struct SpaceInfo {
  // Free space for this user. ~0 if the space is unlimited, or if the size of the file system is
  // unknown (the file system reports 0 blocks in total).
  std::uint64_t free_bytes = 0;
  std::uint64_t free_inodes = 0;
};

enum class PublishMethod : std::uint8_t {
  kNone,             // no exclusive publication
  kLink,             // link(2), which fails with EEXIST; portable, including NFS
  kRenameNoReplace,  // renameat2(RENAME_NOREPLACE)
  kPutIfAbsent,      // Directory::PutIfAbsent, for object stores
};

// Features that Directory::Probe detects in a directory's file system.
struct Capabilities {
  PublishMethod publish = PublishMethod::kNone;
  bool direct_io = false;       // O_DIRECT with kDirectIoAlignmentBytes
  bool preallocate = false;     // fallocate(2)
  bool directory_sync = false;  // fsync(2) of the directory
  friend bool operator==(const Capabilities&, const Capabilities&) = default;
};

// How a file is opened. `kDirect` falls back to buffered I/O if direct I/O is refused.
enum class IoMode : std::uint8_t { kBuffered, kDirect };

struct CreateOptions {
  IoMode mode = IoMode::kBuffered;
  // If true, the caller promises that the name contains a 128-bit random id. Another process can
  // then use the same name only for a copy of the same file, with the same bytes. An object store
  // therefore does not check whether the object exists, and replaces an existing object. A file
  // system always refuses an existing name.
  bool is_name_random = false;
};

// A memory budget for upload parts. All functions are thread-safe.
class SEALPOINT_EXPORT PartBudget {
 public:
  virtual ~PartBudget() = default;
  PartBudget(const PartBudget&) = delete;
  PartBudget& operator=(const PartBudget&) = delete;

  // Reserves `bytes`; release them with Give. Returns false without waiting if the budget has no
  // room.
  virtual bool TryTake(std::uint64_t bytes) = 0;
  virtual void Give(std::uint64_t bytes) = 0;

 protected:
  PartBudget() = default;
};

// A new file that is being written. The file is durable only after Sync() succeeded *and* the
// directory was synced. After a failed WriteAt, Sync or Close the file is poisoned: every further
// call fails with the first error. Nothing is retried, because a second fsync may falsely report
// success. The destructor closes the file without a sync and ignores errors.
class SEALPOINT_EXPORT WritableFile {
 public:
  virtual ~WritableFile() = default;
  WritableFile(const WritableFile&) = delete;
  WritableFile& operator=(const WritableFile&) = delete;

  // Writes all of `data` at `offset`; continues after short writes and EINTR. With direct I/O,
  // offset, size and address must be multiples of kDirectIoAlignmentBytes. Errors: Io, NoSpace,
  // InvalidArgument (misaligned).
  virtual Status WriteAt(std::uint64_t offset, ByteSpan data) = 0;
  // Reserves space in advance, so that a full disk is detected early. Never changes the content. If
  // the file system cannot preallocate, the call succeeds without effect. Errors: NoSpace, Io.
  virtual Status Preallocate(std::uint64_t size_bytes) = 0;
  // Makes data and length durable, provided that the device does not falsely report success.
  virtual Status Sync() = 0;
  // Closes the file and returns the error of close(2). Must be the last call. Errors: Io, NoSpace.
  virtual Status Close() = 0;
  // True if direct I/O is used.
  virtual bool is_direct() const = 0;
  // Makes the file reserve its upload memory from `memory`, and release the memory after the data
  // is sent. The caller has already reserved memory for one part (Storage::part_size_bytes), so the
  // file reserves memory only for additional parts. Call this function before the first write. When
  // the file is destroyed, it releases all its reservations; `memory` must outlive the file. Does
  // nothing on a file system.
  virtual void ChargePartsTo(PartBudget& /*memory*/) {}

 protected:
  WritableFile() = default;
};

class SEALPOINT_EXPORT ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  ReadableFile(const ReadableFile&) = delete;
  ReadableFile& operator=(const ReadableFile&) = delete;

  // Length at the time of opening.
  virtual std::uint64_t size_bytes() const = 0;
  // Fills all of `out` with the bytes that start at `offset`; continues after short reads and
  // EINTR. For direct I/O, the alignment rules of WriteAt apply, but a read may extend beyond the
  // end of the file. Bytes after the end are then guaranteed to be zero only up to the next
  // alignment boundary. Errors: Io; Incomplete (the file ends before the end of the range).
  virtual Status ReadAt(std::uint64_t offset, MutableByteSpan out) const = 0;
  // Hints that this range will be read soon, so that the system can prefetch it. Does not wait.
  // Does nothing in an object store, because prefetching would need memory beyond the load's
  // budget. Use more threads instead.
  virtual void WillRead(std::uint64_t /*offset*/, std::uint64_t /*size*/) const {}
  // Returns true if at least half of this range is in the page cache, judged by a few sampled
  // pages. Takes a few microseconds, reads nothing and fetches nothing. Returns true if unknown,
  // and if the storage has no page cache.
  virtual bool IsCached(std::uint64_t /*offset*/, std::uint64_t /*size*/) const { return true; }
  virtual bool is_direct() const = 0;
  // Returns the file descriptor, which is open as long as this object exists; nullopt if the file
  // has no descriptor. Devices use the descriptor to read the file directly.
  virtual std::optional<int> descriptor() const { return std::nullopt; }

 protected:
  ReadableFile() = default;
};

// An open directory. Paths in errors are the directory's path plus the name.
class SEALPOINT_EXPORT Directory {
 public:
  virtual ~Directory() = default;
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  virtual const std::string& path() const = 0;

  // Creates a new file. Never opens, follows or truncates an existing file (O_EXCL, O_CLOEXEC,
  // O_NOFOLLOW). In an object store, two writers can try to create the same name at the same time.
  // If one of the files is longer than an upload part, both writers may succeed. The file that is
  // completed last is kept. Errors: AlreadyExists, NoSpace, Io.
  virtual Result<std::unique_ptr<WritableFile>> CreateExclusive(std::string_view name,
                                                                CreateOptions options) = 0;
  // Opens a file for reading. Follows symbolic links, because content is identified by digest and
  // not by path. Errors: NotFound, Io (also if the name is not a regular file).
  virtual Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name,
                                                            IoMode mode) const = 0;
  // Errors: NotFound, Io (also if the target of a link cannot be examined).
  virtual Result<EntryInfo> Stat(std::string_view name) const = 0;
  // Returns the result of Stat for each of `names`, in the order of `names`. A caller with many
  // names may pass the names in several calls, and stop after any call. A file system examines only
  // the requested names. An object store lists the directory once for all calls. The store lists
  // the directory again if a call requests a name that was requested before or was missing. A
  // caller may therefore poll for a name. Errors: Io (no name can be examined).
  virtual Result<std::vector<Result<EntryInfo>>> StatEach(std::span<const std::string> names) const;
  // Returns all entries except "." and "..", sorted bytewise by name. The size of a link is 0 if
  // its target cannot be examined.
  virtual Result<std::vector<EntryInfo>> List() const = 0;
  // Calls visit(entry) for each entry, in any order, until `visit` returns false. The default
  // implementation uses List; override it if a directory may have more names than fit in memory.
  // Errors: the errors of List.
  virtual Status ForEachEntry(const std::function<bool(const EntryInfo& entry)>& visit) const;
  // Reads the first `size_max` bytes of a file in a subdirectory, in as few round trips as
  // possible. Follows links. Errors: NotFound (no such subdirectory or file), Io (also if
  // `subdirectory` is not a directory or `name` is not a regular file).
  virtual Result<Bytes> ReadFileIn(std::string_view subdirectory, std::string_view name,
                                   std::size_t size_max) const = 0;
  // Opens a subdirectory. Never follows a symbolic link, so removals stay inside the opened
  // directories even if other processes rename or link directories concurrently. Errors: NotFound,
  // Io (also for a link, or if the name is not a directory).
  virtual Result<std::unique_ptr<Directory>> OpenSubdirectory(std::string_view name) const = 0;
  // Removes a file. If the name is a link, removes the link itself. Errors: NotFound, Io.
  virtual Status Remove(std::string_view name) = 0;
  // Removes an empty subdirectory and syncs this directory. Never follows links. Errors: NotFound,
  // Io (also if the subdirectory is not empty).
  virtual Status RemoveSubdirectory(std::string_view name) = 0;
  // Publishes the content of `from` as `to` in one step. If `to` exists, the call fails with
  // AlreadyExists and does not replace it. After success, `from` may still exist if `method` is
  // kLink; it no longer exists if `method` is kRenameNoReplace. Errors except AlreadyExists leave
  // the outcome unknown; the caller must then read `to` to find out. The publication is durable
  // after the next Sync().
  virtual Status PublishExclusive(std::string_view from, std::string_view to,
                                  PublishMethod method) = 0;
  // Creates a file with this content in one step. If the name exists, the call fails with
  // AlreadyExists. The file is durable after success. Errors except AlreadyExists leave the outcome
  // unknown; the caller must then read `name` to find out. Further errors: Unsupported (the result
  // of Probe is not kPutIfAbsent).
  virtual Status PutIfAbsent(std::string_view name, ByteSpan content);
  // Creates the file `name` with this content in one step, or replaces an existing file of that
  // name. The file is durable after success. Do not use this function for checkpoint files, which
  // are never replaced. Errors: Unsupported (the storage cannot replace files), NoSpace, Io.
  virtual Status Replace(std::string_view name, ByteSpan content);
  // Links the regular file `name` of `directory` into this directory under the same name (link(2)).
  // `directory` must be a different directory of this storage. Both names share the content;
  // removing one name does not affect the other. The link is durable after the next Sync(). An
  // object store has no links: it copies the object on the server and replaces an existing object,
  // so `name` must be random. Errors: Unsupported (the storage cannot link; or it cannot link this
  // file, because the file is on a different file system, permission is missing, the file already
  // has `name_count_max` names, or `name_count_max` is 1), NotFound, AlreadyExists, Io.
  virtual Status LinkFrom(std::string_view directory, std::string_view name,
                          std::uint64_t name_count_max);
  // Makes creations, removals, links and publications in this directory durable.
  virtual Status Sync() = 0;
  virtual Result<SpaceInfo> FreeSpace() const = 0;
  // Tests each capability with temporary files named `<probe_name>.*`, and then removes these
  // files. Needs write permission. Errors: Io, NoSpace.
  virtual Result<Capabilities> Probe(std::string_view probe_name) = 0;

 protected:
  Directory() = default;
};

// Resolved location of a path.
struct Location {
  std::string path{};  // path without links, "." and ".."
  // Identities of the directory and of each of its ancestors, innermost first. If the first
  // identities of two paths are equal, both paths denote the same directory, even if their spelling
  // differs.
  std::vector<std::string> identities{};
};

// A namespace of directories.
class SEALPOINT_EXPORT Storage {
 public:
  virtual ~Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // Opens a directory. Errors: NotFound, Io (also if the path is not a directory). For a path with
  // a scheme, such as "s3://bucket", PosixStorage returns Unsupported. An object store returns
  // InvalidArgument for a path that does not begin with its own scheme and bucket.
  virtual Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const = 0;
  // Creates the directory and missing parents, and syncs the parent of each new level, so that the
  // path is durable after success. Existing levels are accepted. Errors: Io, NoSpace and, for a
  // path with a scheme, the errors of OpenDirectory.
  virtual Status CreateDirectories(std::string_view path) = 0;
  // Lists unfinished uploads at any depth below `path`, including uploads to directories that do
  // not exist. Empty for file systems, where a file is visible from its first byte. Errors: Io;
  // Unsupported (the store's client cannot list uploads; this is the case for obstore's client).
  virtual Result<std::vector<UnfinishedFile>> ListUnfinished(std::string_view path) const;
  // Aborts an unfinished upload and frees its parts; the upload never becomes a file. Succeeds if
  // the upload was already completed or no longer exists. Errors: Io, Unsupported.
  virtual Status AbortUnfinished(std::string_view path, const UnfinishedFile& file);
  // Makes a file or directory that another program wrote durable, including all content of the
  // directory. Does not follow links in the directory. If files in this storage are durable once
  // they are written, the call does nothing and succeeds. Errors: NotFound, Io.
  virtual Status SyncAll(std::string_view path);
  // Moves the file or directory `from` to the path `to` in one step, durably. A directory may
  // replace an empty directory; nothing else is replaced. Errors: AlreadyExists, NotFound,
  // Unsupported (the storage cannot rename: object stores, MemoryStorage), Io (also if `to` is on a
  // different file system).
  virtual Status Move(std::string_view from, std::string_view to);
  // Resolves a path, which need not exist. The default implementation is purely lexical. Errors: Io
  // and, for a path with a scheme, the errors of OpenDirectory.
  virtual Result<Location> Locate(std::string_view path) const;
  // Minimum memory in bytes for each file that is being written below `path`: the size of one
  // upload part. 0 if writing needs no such memory, or if no storage is registered for the path.
  virtual std::uint64_t part_size_bytes(std::string_view /*path*/) const { return 0; }

 protected:
  Storage() = default;
};

// Returns the storage for the file systems of the operating system. Stateless; all threads may
// share one instance.
SEALPOINT_EXPORT std::shared_ptr<Storage> PosixStorage();

// Returns a storage that keeps files in this process's memory, for tests and for tools that keep a
// checkpoint in memory. Every operation is durable immediately. Absolute and relative paths are
// equivalent: "a/b" equals "/a/b".
SEALPOINT_EXPORT std::shared_ptr<Storage> MemoryStorage();

// Creates the storage for one authority. For the path "s3://bucket/runs/7/step-000000000001", the
// factory is called with "s3://bucket".
using StorageFactory =
    std::function<Result<std::shared_ptr<Storage>>(std::string_view scheme_and_authority)>;

// Registers a factory for paths that begin with `<scheme>://`. The factory creates one storage per
// authority, which is kept until the process ends. If the scheme already has a factory, the new
// factory replaces it, and storages from the old factory are no longer returned. Errors:
// InvalidArgument ("file", or not a scheme according to RFC 3986 section 3.1). Thread-safe.
SEALPOINT_EXPORT Status RegisterStorage(std::string_view scheme, StorageFactory factory);

// Returns the storage for a path. For a path without a scheme, this is PosixStorage(); for
// "file:///…", a storage for the same file systems; and for any other scheme, the registered
// storage. Pass the whole path, including its scheme, to the returned storage. Errors: Unsupported
// (the scheme is not registered; the message tells how to register a storage), the errors of the
// factory.
SEALPOINT_EXPORT Result<std::shared_ptr<Storage>> StorageFor(std::string_view path);

// Returns a storage that forwards each call to StorageFor(path). Functions use this storage if the
// caller passes none.
SEALPOINT_EXPORT std::shared_ptr<Storage> DefaultStorage();

// Returns the entry at a path, after following links; nullopt if the path does not exist. A link
// that leads to neither a file nor a directory is kSymlink. Errors: the errors of the storage, if
// the storage cannot examine the path.
SEALPOINT_EXPORT Result<std::optional<EntryInfo>> StatPath(const Storage& storage,
                                                           std::string_view path);

// Durably removes the file or link at `path`, or the directory with all its content. Does not
// follow links. Succeeds if `path` does not exist. To remove a checkpoint, call RemoveCheckpoint
// (series.h) first. Errors: InvalidArgument (a root), Io.
SEALPOINT_EXPORT Status RemoveAll(Storage& storage, std::string_view path);

// Source and destination of one copy, each in the storage that the options name.
struct CopyPaths {
  std::string from{};
  std::string to{};
};

// Joins a directory and a name with a single '/'.
SEALPOINT_EXPORT std::string JoinPath(std::string_view directory, std::string_view name);

}  // namespace sealpoint

#endif  // SEALPOINT_STORAGE_H_
