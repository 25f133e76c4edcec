// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/posix_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/durable.h"
#include "lib/storage/path.h"

namespace sealpoint::internal::storage {
namespace {

constexpr mode_t kFileMode = 0666;  // narrowed by the umask

EntryKind KindOf(mode_t mode) {
  if (S_ISREG(mode)) return EntryKind::kFile;
  if (S_ISDIR(mode)) return EntryKind::kDirectory;
  if (S_ISLNK(mode)) return EntryKind::kSymlink;
  return EntryKind::kOther;
}

struct CloseStream {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

}  // namespace

Result<std::unique_ptr<PosixDirectory>> PosixDirectory::Open(std::string_view path) {
  SEALPOINT_RETURN_IF_ERROR(CheckPath(path));
  SEALPOINT_ASSIGN_OR_RETURN(UniqueFd fd,
                             OpenAt(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0, std::string(path)));
  return std::unique_ptr<PosixDirectory>(new PosixDirectory(std::move(fd), path));
}

Result<std::unique_ptr<PosixWritableFile>> PosixDirectory::CreatePosixFile(std::string_view name,
                                                                           IoMode mode) {
  SEALPOINT_RETURN_IF_ERROR(CheckName(path_, name));
  std::string path = JoinPath(path_, name);
  // O_EXCL does not follow a symbolic link either.
  SEALPOINT_ASSIGN_OR_RETURN(UniqueFd fd,
                             OpenAt(fd_.get(), name, O_WRONLY | O_CREAT | O_EXCL, kFileMode, path));
  return std::make_unique<PosixWritableFile>(std::move(fd), std::move(path), mode);
}

Result<std::unique_ptr<WritableFile>> PosixDirectory::CreateExclusive(std::string_view name,
                                                                      CreateOptions options) {
  SEALPOINT_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                             CreatePosixFile(name, options.mode));
  return file;
}

Result<std::unique_ptr<ReadableFile>> PosixDirectory::OpenForRead(std::string_view name,
                                                                  IoMode mode) const {
  SEALPOINT_RETURN_IF_ERROR(CheckName(path_, name));
  SEALPOINT_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, OpenFile(std::string(name), mode));
  return file;
}

Result<Bytes> PosixDirectory::ReadFileIn(std::string_view subdirectory, std::string_view name,
                                         std::size_t size_max) const {
  SEALPOINT_RETURN_IF_ERROR(CheckName(path_, subdirectory));
  SEALPOINT_RETURN_IF_ERROR(CheckName(path_, name));
  SEALPOINT_ASSIGN_OR_RETURN(const auto file,
                             OpenFile(JoinPath(subdirectory, name), IoMode::kBuffered));
  Bytes bytes(std::min<std::uint64_t>(file->size_bytes(), size_max));
  SEALPOINT_RETURN_IF_ERROR(file->ReadAt(0, bytes));
  return bytes;
}

// `name` may have one component more, for a file in a subdirectory.
Result<std::unique_ptr<PosixReadableFile>> PosixDirectory::OpenFile(const std::string& name,
                                                                    IoMode mode) const {
  std::string path = JoinPath(path_, name);
  // O_NONBLOCK: opening a FIFO would otherwise wait for its writer. It does not affect regular
  // files.
  SEALPOINT_ASSIGN_OR_RETURN(UniqueFd fd,
                             OpenAt(fd_.get(), name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, path));
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return ErrnoError("fstat", errno).AtPath(path);
  if (!S_ISREG(info.st_mode)) return MakeError(Code::kIo, "not a regular file").AtPath(path);
  return std::make_unique<PosixReadableFile>(std::move(fd), std::move(path),
                                             static_cast<std::uint64_t>(info.st_size), mode);
}

Result<std::unique_ptr<Directory>> PosixDirectory::OpenSubdirectory(std::string_view name) const {
  SEALPOINT_RETURN_IF_ERROR(CheckName(path_, name));
  const std::string path = JoinPath(path_, name);
  SEALPOINT_ASSIGN_OR_RETURN(UniqueFd fd,
                             OpenAt(fd_.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, path));
  return std::unique_ptr<Directory>(new PosixDirectory(std::move(fd), path));
}

Result<EntryInfo> PosixDirectory::Stat(std::string_view name) const {
  return StatEntry(name, OnLostTarget::kError);
}

Result<EntryInfo> PosixDirectory::StatEntry(std::string_view name, OnLostTarget on_lost) const {
  SEALPOINT_RETURN_IF_ERROR(CheckName(path_, name));
  EntryInfo entry{.name = std::string(name)};
  struct stat info = {};
  if (::fstatat(fd_.get(), entry.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return ErrnoError("fstatat", errno).AtPath(JoinPath(path_, name));
  }
  entry.kind = KindOf(info.st_mode);
  if (entry.kind == EntryKind::kSymlink &&
      ::fstatat(fd_.get(), entry.name.c_str(), &info, 0) != 0) {
    const bool leads_nowhere = errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
    if (leads_nowhere || on_lost == OnLostTarget::kNoSize) return entry;
    return ErrnoError("fstatat", errno).AtPath(JoinPath(path_, name));
  }
  if (!S_ISREG(info.st_mode)) return entry;
  entry.size_bytes = static_cast<std::uint64_t>(info.st_size);
  // A series lies on one device, but links may lead to others.
  constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;
  entry.file_number = info.st_ino ^ (info.st_dev * kSpread);
  return entry;
}

Status PosixDirectory::ForEachEntry(
    const std::function<bool(const EntryInfo& entry)>& visit) const {
  // A new descriptor for each listing: one that is shared has one read position for all threads.
  SEALPOINT_ASSIGN_OR_RETURN(UniqueFd fd, OpenAt(fd_.get(), ".", O_RDONLY | O_DIRECTORY, 0, path_));
  const std::unique_ptr<DIR, CloseStream> stream(::fdopendir(fd.get()));
  if (!stream) return ErrnoError("fdopendir", errno).AtPath(path_);
  (void)fd.Release();  // the stream owns it now
  for (;;) {
    errno = 0;
    const dirent* const found = ::readdir(stream.get());
    if (found == nullptr) break;
    const std::string_view name = found->d_name;
    if (name == "." || name == "..") continue;
    const Result<EntryInfo> entry = StatEntry(name, OnLostTarget::kNoSize);
    if (entry.error().code() == Code::kNotFound) continue;  // removed since it was listed
    if (!entry.ok()) return entry.error();
    if (!visit(*entry)) return {};
  }
  return errno == 0 ? Status() : ErrnoError("readdir", errno).AtPath(path_);
}

Result<std::vector<EntryInfo>> PosixDirectory::List() const {
  std::vector<EntryInfo> entries;
  SEALPOINT_RETURN_IF_ERROR(ForEachEntry([&](const EntryInfo& entry) {
    entries.push_back(entry);
    return true;
  }));
  std::sort(entries.begin(), entries.end(),
            [](const EntryInfo& a, const EntryInfo& b) { return a.name < b.name; });
  return entries;
}

Status PosixDirectory::Remove(std::string_view name) {
  SEALPOINT_RETURN_IF_ERROR(CheckName(path_, name));
  if (::unlinkat(fd_.get(), std::string(name).c_str(), 0) == 0) return {};
  return ErrnoError("unlinkat", errno).AtPath(JoinPath(path_, name));
}

Status PosixDirectory::RemoveSubdirectory(std::string_view name) {
  SEALPOINT_RETURN_IF_ERROR(CheckName(path_, name));
  if (::unlinkat(fd_.get(), std::string(name).c_str(), AT_REMOVEDIR) == 0) return Sync();
  return ErrnoError("unlinkat", errno).AtPath(JoinPath(path_, name));
}

Status PosixDirectory::PublishExclusive(std::string_view from, std::string_view to,
                                        PublishMethod method) {
  SEALPOINT_RETURN_IF_ERROR(CheckName(path_, from));
  SEALPOINT_RETURN_IF_ERROR(CheckName(path_, to));
  const std::string source(from);
  const std::string target(to);
  switch (method) {
    case PublishMethod::kLink:
      if (::linkat(fd_.get(), source.c_str(), fd_.get(), target.c_str(), 0) == 0) return {};
      return ErrnoError("linkat", errno).AtPath(JoinPath(path_, to));
    case PublishMethod::kRenameNoReplace:
      if (::renameat2(fd_.get(), source.c_str(), fd_.get(), target.c_str(), RENAME_NOREPLACE) ==
          0) {
        return {};
      }
      return ErrnoError("renameat2", errno).AtPath(JoinPath(path_, to));
    case PublishMethod::kPutIfAbsent:
    case PublishMethod::kNone:
      break;
  }
  return MakeError(Code::kUnsupported, "file system offers no exclusive publication")
      .AtPath(JoinPath(path_, to));
}

Status PosixDirectory::Replace(std::string_view name, ByteSpan content) {
  SEALPOINT_RETURN_IF_ERROR(CheckName(path_, name));
  SEALPOINT_ASSIGN_OR_RETURN(const Id128 id, Id128::Random());
  const std::string temporary = StrCat(name, ".", id.ToHex(), ".tmp");
  Status status = WriteFileDurably(*this, temporary, content);
  if (status.ok() &&
      ::renameat(fd_.get(), temporary.c_str(), fd_.get(), std::string(name).c_str()) != 0) {
    status = ErrnoError("renameat", errno).AtPath(JoinPath(path_, name));
  }
  if (!status.ok()) {
    if (status.code() != Code::kAlreadyExists) static_cast<void>(Remove(temporary));
    return status;
  }
  // Where directories cannot be synced a crash brings the older file back, at most.
  Status synced = Sync();
  return synced.code() == Code::kUnsupported ? Status() : synced;
}

Status PosixDirectory::LinkFrom(std::string_view directory, std::string_view name,
                                std::uint64_t name_count_max) {
  SEALPOINT_RETURN_IF_ERROR(CheckName(path_, name));
  const std::string target(name);
  const std::string source = JoinPath(directory, name);
  const auto refuse = [&](const auto&... why) {
    return MakeError(Code::kUnsupported, "cannot link: ", why...).AtPath(source);
  };
  struct stat found = {};
  if (::lstat(source.c_str(), &found) != 0) return ErrnoError("lstat", errno).AtPath(source);
  if (!S_ISREG(found.st_mode)) return refuse("this is not a regular file");
  if (found.st_nlink >= name_count_max) return refuse("the file has ", found.st_nlink, " names");
  if (::linkat(AT_FDCWD, source.c_str(), fd_.get(), target.c_str(), 0) == 0) return {};
  const int error_number = errno;
  if (error_number == EXDEV || error_number == EPERM || error_number == EMLINK ||
      error_number == EACCES || error_number == EOPNOTSUPP || error_number == ENOSYS) {
    return refuse("errno ", error_number);
  }
  return ErrnoError("linkat", error_number).AtPath(JoinPath(path_, name));
}

Status PosixDirectory::Sync() { return SyncDirectoryFd(fd_.get(), path_); }

Result<SpaceInfo> PosixDirectory::FreeSpace() const {
  struct statvfs info = {};
  if (::fstatvfs(fd_.get(), &info) != 0) return ErrnoError("fstatvfs", errno).AtPath(path_);
  constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
  SpaceInfo space;
  // Many FUSE and network mounts tell nothing: their zeros are no full disk.
  const bool tells_bytes = info.f_blocks != 0;
  space.free_bytes =
      !tells_bytes ? kNoLimit
                   : CheckedMul<std::uint64_t>(info.f_bavail, info.f_frsize).value_or(kNoLimit);
  space.free_inodes = info.f_files == 0 ? kNoLimit : info.f_favail;
  return space;
}

}  // namespace sealpoint::internal::storage
