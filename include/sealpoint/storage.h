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

// Where checkpoints live. Every operation on which the commit relies (spec/commit.md) is a call of
// its own, so that a test can drop, delay, reorder or fail each of them. Paths are plain UTF-8
// strings with '/' as separator; names are single path components without '/'.
//
// Thread safety: all const functions, and all functions of different objects, may run at the same
// time. WritableFile::WriteAt may be called by several threads for disjoint ranges.

namespace sealpoint {

// Alignment of offset, length and memory that direct I/O asks for here, in bytes. The format keeps
// it: a blob's length is a multiple of this.
inline constexpr std::uint64_t kDirectIoAlignmentBytes = 4096;

enum class EntryKind : std::uint8_t { kFile, kDirectory, kSymlink, kOther };

struct EntryInfo {
  std::string name{};
  EntryKind kind = EntryKind::kOther;  // of the entry itself, a symbolic link is not followed
  // Size of a file, or of the file that a link leads to; 0 for all else, also for a broken link.
  std::uint64_t size_bytes = 0;
  // Names of one file have the same number, which says nothing else and is not compared; 0: the
  // storage does not know, or does not share files, or a link leads to no file.
  std::uint64_t file_number = 0;
  friend bool operator==(const EntryInfo& a, const EntryInfo& b) {
    return a.name == b.name && a.kind == b.kind && a.size_bytes == b.size_bytes;
  }
};

// An upload to an object store that was begun and neither completed nor given up, of a process that
// died, say. No listing of a directory shows it, and it costs as a file does.
struct UnfinishedFile {
  std::string name{};  // what it would be, below the path that was asked for; with '/'
  std::string upload_id{};
  std::uint64_t begun_unix_s = 0;  // 0 if the store does not say
  friend bool operator==(const UnfinishedFile&, const UnfinishedFile&) = default;
};

struct SpaceInfo {
  // For this user; ~0 if the file system has no such limit or does not tell (no blocks at all).
  std::uint64_t free_bytes = 0;
  std::uint64_t free_inodes = 0;
};

enum class PublishMethod : std::uint8_t {
  kNone,             // the file system offers no exclusive publication
  kLink,             // link(2): fails with EEXIST; the portable one, NFS included
  kRenameNoReplace,  // renameat2(RENAME_NOREPLACE)
  kPutIfAbsent,      // Directory::PutIfAbsent: object stores
};

// What a directory's file system was found to offer, by trying.
struct Capabilities {
  PublishMethod publish = PublishMethod::kNone;
  bool direct_io = false;       // O_DIRECT with kDirectIoAlignmentBytes
  bool preallocate = false;     // fallocate(2)
  bool directory_sync = false;  // fsync(2) of the directory
  friend bool operator==(const Capabilities&, const Capabilities&) = default;
};

// How a file is to be opened. `kDirect` falls back to buffered I/O if it is refused.
enum class IoMode : std::uint8_t { kBuffered, kDirect };

struct CreateOptions {
  IoMode mode = IoMode::kBuffered;
  // The caller's promise: the name carries an id of 128 random bits, so that whoever else makes it
  // writes the same bytes. An object store then neither looks whether it is taken nor makes the put
  // conditional; a file system refuses a name that is taken all the same.
  bool is_name_random = false;
};

// A budget of memory that files take parts of uploads from. Thread safety: all functions.
class SEALPOINT_EXPORT PartMemory {
 public:
  virtual ~PartMemory() = default;
  PartMemory(const PartMemory&) = delete;
  PartMemory& operator=(const PartMemory&) = delete;

  // Counts `bytes` as used, which Give must follow; false, without waiting, if the budget has no
  // such room now.
  virtual bool TryTake(std::uint64_t bytes) = 0;
  virtual void Give(std::uint64_t bytes) = 0;

 protected:
  PartMemory() = default;
};

// A new file that is being written. Not durable before Sync() returned success *and* the directory
// was synced. After a failed WriteAt, Sync or Close the file is poisoned: every further call fails
// with the first error, and nothing is retried on it, since a second fsync may succeed falsely.
// The destructor closes without a sync and ignores errors.
class SEALPOINT_EXPORT WritableFile {
 public:
  virtual ~WritableFile() = default;
  WritableFile(const WritableFile&) = delete;
  WritableFile& operator=(const WritableFile&) = delete;

  // Writes all of `data` at `offset` (short writes and EINTR are continued). With direct I/O,
  // offset, size and address must be multiples of kDirectIoAlignmentBytes.
  // Errors: Io, NoSpace, InvalidArgument (misaligned).
  virtual Status WriteAt(std::uint64_t offset, ByteSpan data) = 0;
  // Asks for the space up front, so that a full disk is found early; never changes the content.
  // Success if the file system cannot do it. Errors: NoSpace, Io.
  virtual Status Preallocate(std::uint64_t size_bytes) = 0;
  // Data and length are durable after success (as far as the device tells the truth).
  virtual Status Sync() = 0;
  // Reports what close(2) reports; the last call. Errors: Io, NoSpace.
  virtual Status Close() = 0;
  // True if direct I/O is in force.
  virtual bool is_direct() const = 0;
  // Before the first write: what the file holds of it until it is sent is counted in `memory`, but
  // for one part (Storage::part_size_bytes), which the caller has set apart for it. All is given
  // back when the file is destroyed, before which `memory` must not be. Files of file systems hold
  // nothing.
  virtual void CountPartsIn(PartMemory& /*memory*/) {}

 protected:
  WritableFile() = default;
};

class SEALPOINT_EXPORT ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  ReadableFile(const ReadableFile&) = delete;
  ReadableFile& operator=(const ReadableFile&) = delete;

  // Length when the file was opened.
  virtual std::uint64_t size_bytes() const = 0;
  // Fills all of `out` from `offset` (short reads and EINTR are continued). With direct I/O the
  // alignment rules of WriteAt hold, except that a read may pass the end of the file: then
  // the bytes after the end are zero only up to the next alignment boundary.
  // Errors: Io; Incomplete if the file ends before the range does.
  virtual Status ReadAt(std::uint64_t offset, MutableByteSpan out) const = 0;
  // A hint that this range is read soon, so that it may be fetched ahead. Does not wait for that.
  // A file of an object store does nothing: there is no page cache to fetch into, only memory
  // beside the budget of the load; and each thread of a load has a request of up to 8 MiB under way
  // already, so that more threads are what fetches more at a time.
  virtual void WillRead(std::uint64_t /*offset*/, std::uint64_t /*size*/) const {}
  virtual bool is_direct() const = 0;
  // Its file descriptor, open as long as this is: devices can read a file of the system
  // without this process. Nothing if there is none.
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

  // Makes a new file; never opens, follows or truncates an existing one (O_EXCL, O_CLOEXEC,
  // O_NOFOLLOW). In an object store, of two that make one name at once and of which one has more
  // than a part, both may succeed, and the later stays. Errors: AlreadyExists, NoSpace, Io.
  virtual Result<std::unique_ptr<WritableFile>> CreateExclusive(std::string_view name,
                                                                CreateOptions options) = 0;
  // Opens for reading and follows symbolic links: content is pinned by digest, not by place.
  // Errors: NotFound, Io (also for what is not a regular file).
  virtual Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name,
                                                            IoMode mode) const = 0;
  // Errors: NotFound, Io (also if the target of a link cannot be looked at).
  virtual Result<EntryInfo> Stat(std::string_view name) const = 0;
  // Stat of each of `names`, in their order. A caller with many names may give them in pages, and
  // stop after any. A file system looks at these names alone. An object store lists the directory
  // once for all pages in which each name is asked for once; it lists anew if a name is asked for
  // again, or was not there, so that a caller may wait for a name in a loop.
  // Errors: Io if nothing can be said of any.
  virtual Result<std::vector<Result<EntryInfo>>> StatEach(std::span<const std::string> names) const;
  // All entries but "." and "..", sorted by name (bytewise). A link whose target cannot be looked
  // at has no size.
  virtual Result<std::vector<EntryInfo>> List() const = 0;
  // Calls visit(entry) for each of them, in any order, until it returns false. A storage should
  // override it if a directory may have more names than memory should hold; without that it lists
  // them. Errors: those of List.
  virtual Status ForEachEntry(const std::function<bool(const EntryInfo& entry)>& visit) const;
  // The first `size_max` bytes of a file in a subdirectory, in as few round trips as the storage
  // can; links are followed. Errors: NotFound (there is no such subdirectory, or no such file in
  // it), Io (also for what is not a directory, or not a regular file).
  virtual Result<Bytes> ReadFileIn(std::string_view subdirectory, std::string_view name,
                                   std::size_t size_max) const = 0;
  // Opens a subdirectory, never one that a symbolic link leads to: what is removed is always
  // removed below a directory that was opened so, whoever renames and links meanwhile.
  // Errors: NotFound, Io (also for a link, and for what is not a directory).
  virtual Result<std::unique_ptr<Directory>> OpenSubdirectory(std::string_view name) const = 0;
  // Removes a file (or the link itself). Errors: NotFound, Io.
  virtual Status Remove(std::string_view name) = 0;
  // Removes an empty subdirectory, never what a link leads to, and syncs this directory. There is
  // no removal by path. Errors: NotFound, Io (also if it is not empty).
  virtual Status RemoveSubdirectory(std::string_view name) = 0;
  // Gives the content of `from` the name `to` in one step that fails with AlreadyExists if
  // `to` exists; never replaces. `from` may remain (kLink) or not (kRenameNoReplace). On any other
  // error the outcome is unknown until `to` was read back. Not durable before Sync().
  virtual Status PublishExclusive(std::string_view from, std::string_view to,
                                  PublishMethod method) = 0;
  // Makes a file `name` of these bytes in one step that fails with AlreadyExists if the name is
  // taken; durable at once. After any other error the outcome is unknown until `name` was read
  // back. Unsupported where Probe does not say kPutIfAbsent.
  virtual Status PutIfAbsent(std::string_view name, ByteSpan content);
  // Makes the file `name` of these bytes in one step, in place of the file that has the name, if
  // any; durable at once. Not for checkpoint files, which are never replaced. Errors: Unsupported
  // (the storage cannot replace), NoSpace, Io.
  virtual Status Replace(std::string_view name, ByteSpan content);
  // Gives a regular file of another directory of this storage the same name here, too (link(2)):
  // both names then have one content, and removing one leaves the other whole. Not durable before
  // Sync(). An object store copies instead, by itself and not through this process, and replaces:
  // `name` must be random. Errors: Unsupported (the storage cannot link, or not these: another file
  // system, no permission, a file that has `name_count_max` names already, or that is 1),
  // NotFound, AlreadyExists, Io.
  virtual Status LinkFrom(std::string_view directory, std::string_view name,
                          std::uint64_t name_count_max);
  // Makes creations, removals, links and publications in this directory durable.
  virtual Status Sync() = 0;
  virtual Result<SpaceInfo> FreeSpace() const = 0;
  // Tries each capability with short-lived files named `<probe_name>.*`, which it removes again.
  // Needs write permission. Errors: Io, NoSpace.
  virtual Result<Capabilities> Probe(std::string_view probe_name) = 0;

 protected:
  Directory() = default;
};

// Where a path leads.
struct Location {
  std::string path{};  // without links, "." and ".."
  // One for the directory and for each one that holds it, innermost first. Two paths lead to one
  // directory if their first identities are equal, however they are written.
  std::vector<std::string> identities{};
};

// A name space of directories.
class SEALPOINT_EXPORT Storage {
 public:
  virtual ~Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // Errors: NotFound, Io (also for what is not a directory); of PosixStorage Unsupported for what
  // begins with a scheme, such as "s3://bucket"; of an object store InvalidArgument for what does
  // not begin with its own.
  virtual Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const = 0;
  // Makes the directory and missing parents and syncs the parent of each level that it made, so
  // that the path is durable after success. Existing levels are fine. Errors: Io, NoSpace; those of
  // a path with a scheme as above.
  virtual Status CreateDirectories(std::string_view path) = 0;
  // What is unfinished below the directory `path` and below those in it, be they there or not. A
  // file system has none: there a file is an entry from the first byte. Errors: Io; Unsupported if
  // the client of the store cannot list them (obstore's cannot).
  virtual Result<std::vector<UnfinishedFile>> ListUnfinished(std::string_view path) const;
  // Gives one of them up: it never becomes a file, and its parts are freed. Success if it is
  // complete or gone by now. Errors: Io, Unsupported.
  virtual Status AbortUnfinished(std::string_view path, const UnfinishedFile& file);
  // Makes a file durable that another program wrote, or a directory with all its content. Follows
  // no link in it. Success where files are durable once they are written. Errors: NotFound, Io.
  virtual Status SyncAll(std::string_view path);
  // Gives the file or directory `from` the path `to` in one step, durably. An empty directory may
  // be replaced by a directory; nothing else is. Errors: AlreadyExists, NotFound, Unsupported
  // (object stores; a file on a file system without links), Io (also: on another file system).
  virtual Status Move(std::string_view from, std::string_view to);
  // Nothing needs to be there. Without an override a path is its text. Errors: Io, those of a path
  // with a scheme as above.
  virtual Result<Location> Locate(std::string_view path) const;
  // What each file that is written below `path` holds in memory at least while it is open: a part
  // of its upload. 0 where files hold nothing, and where nothing is known of the path.
  virtual std::uint64_t part_size_bytes(std::string_view /*path*/) const { return 0; }

 protected:
  Storage() = default;
};

// The operating system's file systems. Stateless; one instance may be shared by all threads.
SEALPOINT_EXPORT std::shared_ptr<Storage> PosixStorage();

// Files in this process's memory, for tests and for tools that hold a checkpoint in memory. Every
// effect is durable at once. Paths are absolute or relative alike: "a/b" and "/a/b" are the same.
SEALPOINT_EXPORT std::shared_ptr<Storage> MemoryStorage();

// Makes the storage of one authority: of "s3://bucket" for "s3://bucket/runs/7/step-000000000001".
using StorageFactory =
    std::function<Result<std::shared_ptr<Storage>>(std::string_view scheme_and_authority)>;

// From now on paths that begin with `<scheme>://` are those of storages that `factory` makes, one
// for each authority, kept as long as the process. Replaces the factory of an earlier call, and
// forgets the storages that it made. Errors: InvalidArgument (no scheme of RFC 3986 section 3.1,
// or "file"). Thread safety: any.
SEALPOINT_EXPORT Status RegisterStorage(std::string_view scheme, StorageFactory factory);

// The storage of a path: PosixStorage() for what has no scheme and for "file:///…", else what was
// registered for the scheme. The path is given to it whole. Errors: Unsupported (nothing is
// registered for the scheme; the message says what would), those of the factory.
SEALPOINT_EXPORT Result<std::shared_ptr<Storage>> StorageFor(std::string_view path);

// Each call goes to StorageFor(its path): what is used where no storage is named.
SEALPOINT_EXPORT std::shared_ptr<Storage> DefaultStorage();

// What a path leads to; nothing if nothing is there. A link that leads to neither a file nor a
// directory is kSymlink. Errors: those of a storage that cannot look.
SEALPOINT_EXPORT Result<std::optional<EntryInfo>> StatPath(const Storage& storage,
                                                           std::string_view path);

// Removes the file, link or directory at `path`, a directory with all its content, durably. Follows
// no link. Success if nothing is there. A checkpoint goes by RemoveCheckpoint (series.h) first.
// Errors: InvalidArgument (a root), Io.
SEALPOINT_EXPORT Status RemoveAll(Storage& storage, std::string_view path);

// Joins with one '/' between.
SEALPOINT_EXPORT std::string JoinPath(std::string_view directory, std::string_view name);

}  // namespace sealpoint

#endif  // SEALPOINT_STORAGE_H_
