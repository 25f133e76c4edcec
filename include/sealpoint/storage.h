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

// Storage of checkpoints. Every operation that a commit depends on (spec/commit.md) is a separate
// call, so that a test can drop, delay, reorder or fail each of them. Paths are plain UTF-8 strings
// with '/' as separator; names are single path components without '/'.
//
// Thread safety: all const functions, and all functions of different objects, may run concurrently.
// WritableFile::WriteAt may be called by several threads for disjoint ranges.

namespace sealpoint {

// Alignment in bytes of offset, length and memory for direct I/O. Blob lengths are multiples of it.
inline constexpr std::uint64_t kDirectIoAlignmentBytes = 4096;

enum class EntryKind : std::uint8_t { kFile, kDirectory, kSymlink, kOther };

struct EntryInfo {
  std::string name{};
  EntryKind kind = EntryKind::kOther;  // of the entry itself; symbolic links are not followed
  // Size of a file, or of the file that a link points to. 0 for everything else and for broken
  // links.
  std::uint64_t size_bytes = 0;
  // Identifies hard links: names of the same file have the same number. It has no other meaning and
  // is not compared. 0 if unknown, if the storage has no shared files, or if a link points to no
  // file.
  std::uint64_t file_number = 0;
  friend bool operator==(const EntryInfo& a, const EntryInfo& b) {
    return a.name == b.name && a.kind == b.kind && a.size_bytes == b.size_bytes;
  }
};

// An upload to an object store that was neither completed nor aborted, for example because its
// process died. Directory listings do not show it, and it costs as much as a file.
struct UnfinishedFile {
  std::string name{};  // intended name relative to the requested path; contains '/'
  std::string upload_id{};
  std::uint64_t begun_unix_s = 0;  // 0 if the store does not report it
  friend bool operator==(const UnfinishedFile&, const UnfinishedFile&) = default;
};

struct SpaceInfo {
  // For this user; ~0 if the file system has no such limit or does not report it (no blocks at
  // all).
  std::uint64_t free_bytes = 0;
  std::uint64_t free_inodes = 0;
};

enum class PublishMethod : std::uint8_t {
  kNone,             // no exclusive publication
  kLink,             // link(2), which fails with EEXIST; portable, including NFS
  kRenameNoReplace,  // renameat2(RENAME_NOREPLACE)
  kPutIfAbsent,      // Directory::PutIfAbsent, for object stores
};

// Features of a directory's file system, as detected by Directory::Probe.
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
  // The caller promises that the name contains a 128-bit random id, so that any other process that
  // creates the same name writes the same bytes. An object store then skips the check for an
  // existing object and uses an unconditional put. A file system still refuses an existing name.
  bool is_name_random = false;
};

// A memory budget for parts of uploads. Thread safety: all functions.
class SEALPOINT_EXPORT PartMemory {
 public:
  virtual ~PartMemory() = default;
  PartMemory(const PartMemory&) = delete;
  PartMemory& operator=(const PartMemory&) = delete;

  // Reserves `bytes`; release them with Give. Returns false without waiting if the budget has no
  // room.
  virtual bool TryTake(std::uint64_t bytes) = 0;
  virtual void Give(std::uint64_t bytes) = 0;

 protected:
  PartMemory() = default;
};

// A new file that is being written. It is durable only after Sync() succeeded *and* the directory
// was synced. After a failed WriteAt, Sync or Close the file is poisoned: every further call fails
// with the first error. Nothing is retried, because a second fsync may report success falsely. The
// destructor closes without a sync and ignores errors.
class SEALPOINT_EXPORT WritableFile {
 public:
  virtual ~WritableFile() = default;
  WritableFile(const WritableFile&) = delete;
  WritableFile& operator=(const WritableFile&) = delete;

  // Writes all of `data` at `offset`; continues after short writes and EINTR. With direct I/O,
  // offset, size and address must be multiples of kDirectIoAlignmentBytes. Errors: Io, NoSpace,
  // InvalidArgument (misaligned).
  virtual Status WriteAt(std::uint64_t offset, ByteSpan data) = 0;
  // Reserves space in advance, so that a full disk is detected early. Never changes the content.
  // Succeeds if the file system cannot preallocate. Errors: NoSpace, Io.
  virtual Status Preallocate(std::uint64_t size_bytes) = 0;
  // Makes data and length durable, provided that the device reports truthfully.
  virtual Status Sync() = 0;
  // Closes the file and returns the error of close(2). Must be the last call. Errors: Io, NoSpace.
  virtual Status Close() = 0;
  // True if direct I/O is used.
  virtual bool is_direct() const = 0;
  // Counts the data that the file holds until it is sent in `memory`, except for one part
  // (Storage::part_size_bytes), which the caller has already reserved. Call it before the first
  // write. The file releases everything when it is destroyed; `memory` must outlive it. Files of
  // file systems hold no data.
  virtual void CountPartsIn(PartMemory& /*memory*/) {}

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
  // Fills all of `out` from `offset`; continues after short reads and EINTR. With direct I/O the
  // alignment rules of WriteAt apply, except that a read may extend beyond the end of the file:
  // bytes after the end are then zero only up to the next alignment boundary. Errors: Io;
  // Incomplete if the file ends before the range does.
  virtual Status ReadAt(std::uint64_t offset, MutableByteSpan out) const = 0;
  // Hints that this range will be read soon and may be prefetched. Does not wait. For object stores
  // it does nothing, because prefetching would need memory beyond the load's budget; each thread of
  // a load already has a request of up to 8 MiB in flight, so use more threads instead.
  virtual void WillRead(std::uint64_t /*offset*/, std::uint64_t /*size*/) const {}
  virtual bool is_direct() const = 0;
  // The file descriptor, open as long as this object. Devices use it to read the file without this
  // process. Empty if there is none.
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

  // Creates a new file. Never opens, follows or truncates an existing one (O_EXCL, O_CLOEXEC,
  // O_NOFOLLOW). In an object store, two simultaneous creations of one name may both succeed if one
  // of them is longer than a part; the later one is kept. Errors: AlreadyExists, NoSpace, Io.
  virtual Result<std::unique_ptr<WritableFile>> CreateExclusive(std::string_view name,
                                                                CreateOptions options) = 0;
  // Opens for reading. Follows symbolic links, because content is identified by digest and not by
  // path. Errors: NotFound, Io (also if it is not a regular file).
  virtual Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name,
                                                            IoMode mode) const = 0;
  // Errors: NotFound, Io (also if the target of a link cannot be examined).
  virtual Result<EntryInfo> Stat(std::string_view name) const = 0;
  // Stat of each of `names`, in their order. A caller with many names may pass them in pages and
  // stop after any page. A file system examines only these names. An object store lists the
  // directory once for all pages if each name is requested once. It lists again if a name is
  // requested again or was missing, so a caller may poll for a name. Errors: Io if no name can be
  // examined.
  virtual Result<std::vector<Result<EntryInfo>>> StatEach(std::span<const std::string> names) const;
  // All entries except "." and "..", sorted bytewise by name. The size of a link is 0 if its target
  // cannot be examined.
  virtual Result<std::vector<EntryInfo>> List() const = 0;
  // Calls visit(entry) for each entry, in any order, until it returns false. The default
  // implementation uses List; override it if a directory may have more names than fit in memory.
  // Errors: those of List.
  virtual Status ForEachEntry(const std::function<bool(const EntryInfo& entry)>& visit) const;
  // Reads the first `size_max` bytes of a file in a subdirectory, in as few round trips as
  // possible. Follows links. Errors: NotFound (no such subdirectory or file), Io (also if it is not
  // a directory or not a regular file).
  virtual Result<Bytes> ReadFileIn(std::string_view subdirectory, std::string_view name,
                                   std::size_t size_max) const = 0;
  // Opens a subdirectory. Never follows a symbolic link, so that removals stay inside the
  // directories opened this way even if others rename or link concurrently. Errors: NotFound, Io
  // (also for a link, or if it is not a directory).
  virtual Result<std::unique_ptr<Directory>> OpenSubdirectory(std::string_view name) const = 0;
  // Removes a file (or the link itself). Errors: NotFound, Io.
  virtual Status Remove(std::string_view name) = 0;
  // Removes an empty subdirectory and syncs this directory. Never follows links. There is no
  // removal by path. Errors: NotFound, Io (also if it is not empty).
  virtual Status RemoveSubdirectory(std::string_view name) = 0;
  // Publishes the content of `from` as `to` in one step; fails with AlreadyExists if `to` exists,
  // and never replaces it. `from` may remain (kLink) or not (kRenameNoReplace). After any other
  // error the outcome is unknown until `to` is read back. Not durable before Sync().
  virtual Status PublishExclusive(std::string_view from, std::string_view to,
                                  PublishMethod method) = 0;
  // Creates a file with this content in one step; fails with AlreadyExists if the name exists.
  // Durable at once. After any other error the outcome is unknown until `name` is read back.
  // Errors: Unsupported unless Probe reports kPutIfAbsent.
  virtual Status PutIfAbsent(std::string_view name, ByteSpan content);
  // Makes the file `name` of these bytes in one step, in place of the file that has the name, if
  // any; durable at once. Not for checkpoint files, which are never replaced. Errors: Unsupported
  // (the storage cannot replace), NoSpace, Io.
  virtual Status Replace(std::string_view name, ByteSpan content);
  // Links a regular file of another directory of this storage into this one under the same name
  // (link(2)). Both names share the content; removing one does not affect the other. Not durable
  // before Sync(). An object store copies the object on the server instead and replaces an existing
  // one, so `name` must be random. Errors: Unsupported (the storage cannot link, or cannot link
  // this file: another file system, no permission, the file already has `name_count_max` names, or
  // that is 1), NotFound, AlreadyExists, Io.
  virtual Status LinkFrom(std::string_view directory, std::string_view name,
                          std::uint64_t name_count_max);
  // Makes creations, removals, links and publications in this directory durable.
  virtual Status Sync() = 0;
  virtual Result<SpaceInfo> FreeSpace() const = 0;
  // Tests each capability with temporary files named `<probe_name>.*` and removes them. Needs write
  // permission. Errors: Io, NoSpace.
  virtual Result<Capabilities> Probe(std::string_view probe_name) = 0;

 protected:
  Directory() = default;
};

// Resolved location of a path.
struct Location {
  std::string path{};  // without links, "." and ".."
  // Identities of the directory and of each of its ancestors, innermost first. Two paths denote the
  // same directory if their first identities are equal, regardless of spelling.
  std::vector<std::string> identities{};
};

// A namespace of directories.
class SEALPOINT_EXPORT Storage {
 public:
  virtual ~Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // Errors: NotFound, Io (also if it is not a directory). PosixStorage returns Unsupported for a
  // path with a scheme, such as "s3://bucket"; an object store returns InvalidArgument for a path
  // without its own.
  virtual Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const = 0;
  // Creates the directory and missing parents, and syncs the parent of each new level, so that the
  // path is durable after success. Existing levels are accepted. Errors: Io, NoSpace, and those of
  // OpenDirectory for a scheme.
  virtual Status CreateDirectories(std::string_view path) = 0;
  // Lists unfinished uploads at any depth below `path`, including directories that do not exist.
  // Empty for file systems, where a file is visible from its first byte. Errors: Io; Unsupported if
  // the store's client cannot list uploads (obstore's cannot).
  virtual Result<std::vector<UnfinishedFile>> ListUnfinished(std::string_view path) const;
  // Aborts an unfinished upload and frees its parts; it never becomes a file. Succeeds if the
  // upload is already completed or gone. Errors: Io, Unsupported.
  virtual Status AbortUnfinished(std::string_view path, const UnfinishedFile& file);
  // Makes a file durable that another program wrote, or a directory with all its content. Follows
  // no link in it. Success where files are durable once they are written. Errors: NotFound, Io.
  virtual Status SyncAll(std::string_view path);
  // Gives the file or directory `from` the path `to` in one step, durably. An empty directory may
  // be replaced by a directory; nothing else is. Errors: AlreadyExists, NotFound, Unsupported
  // (object stores; a file on a file system without links), Io (also: on another file system).
  virtual Status Move(std::string_view from, std::string_view to);
  // Resolves a path, which need not exist. The default implementation returns the path's text.
  // Errors: Io, and those of OpenDirectory for a scheme.
  virtual Result<Location> Locate(std::string_view path) const;
  // Minimum memory that each open file being written below `path` holds: one part of its upload. 0
  // if files hold no data or if the path is unknown.
  virtual std::uint64_t part_size_bytes(std::string_view /*path*/) const { return 0; }

 protected:
  Storage() = default;
};

// File systems of the operating system. Stateless; all threads may share one instance.
SEALPOINT_EXPORT std::shared_ptr<Storage> PosixStorage();

// Files in this process's memory, for tests and for tools that keep a checkpoint in memory. Every
// operation is durable at once. Absolute and relative paths are equivalent: "a/b" equals "/a/b".
SEALPOINT_EXPORT std::shared_ptr<Storage> MemoryStorage();

// Creates the storage of one authority: that of "s3://bucket" for
// "s3://bucket/runs/7/step-000000000001".
using StorageFactory =
    std::function<Result<std::shared_ptr<Storage>>(std::string_view scheme_and_authority)>;

// Registers a factory for paths that begin with `<scheme>://`. It creates one storage per
// authority, which is kept until the process ends. Replaces an earlier factory and forgets the
// storages it created. Errors: InvalidArgument (not a scheme of RFC 3986 section 3.1, or "file").
// Thread-safe.
SEALPOINT_EXPORT Status RegisterStorage(std::string_view scheme, StorageFactory factory);

// Returns the storage of a path: PosixStorage() if it has no scheme and for "file:///…", otherwise
// the storage registered for the scheme, which receives the whole path. Errors: Unsupported (the
// scheme is not registered; the message tells how to register it), those of the factory.
SEALPOINT_EXPORT Result<std::shared_ptr<Storage>> StorageFor(std::string_view path);

// Forwards each call to StorageFor(path). Used if no storage is given.
SEALPOINT_EXPORT std::shared_ptr<Storage> DefaultStorage();

// What a path leads to; nothing if nothing is there. A link that leads to neither a file nor a
// directory is kSymlink. Errors: those of a storage that cannot look.
SEALPOINT_EXPORT Result<std::optional<EntryInfo>> StatPath(const Storage& storage,
                                                           std::string_view path);

// Removes the file, link or directory at `path`, a directory with all its content, durably. Follows
// no link. Success if nothing is there. A checkpoint goes by RemoveCheckpoint (series.h) first.
// Errors: InvalidArgument (a root), Io.
SEALPOINT_EXPORT Status RemoveAll(Storage& storage, std::string_view path);

// Joins with a single '/'.
SEALPOINT_EXPORT std::string JoinPath(std::string_view directory, std::string_view name);

}  // namespace sealpoint

#endif  // SEALPOINT_STORAGE_H_
