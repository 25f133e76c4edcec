// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/path.h"
#include "lib/storage/posix_directory.h"

namespace sealpoint {
namespace internal::storage {
namespace {

constexpr mode_t kDirectoryMode = 0777;  // narrowed by the umask

class PosixStorageImpl final : public Storage {
 public:
  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override;
  Status CreateDirectories(std::string_view path) override;
  Status SyncAll(std::string_view path) override;
  Status Move(std::string_view from, std::string_view to) override;
  Result<Location> Locate(std::string_view path) const override;
};

Result<std::unique_ptr<Directory>> PosixStorageImpl::OpenDirectory(std::string_view path) const {
  SEALPOINT_ASSIGN_OR_RETURN(std::unique_ptr<Directory> directory, PosixDirectory::Open(path));
  return directory;
}

Status SyncParent(const std::string& path) {
  const std::string parent = ParentPath(path);
  SEALPOINT_ASSIGN_OR_RETURN(const UniqueFd fd,
                             OpenAt(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY, 0, parent));
  return SyncDirectoryFd(fd.get(), parent);
}

// A directory is its device and inode; what is not there yet, its name in the one that will hold
// it.
Result<Location> PosixStorageImpl::Locate(std::string_view path) const {
  SEALPOINT_RETURN_IF_ERROR(CheckPath(path));
  std::error_code error;
  const std::filesystem::path whole =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  if (error) return ErrnoError("realpath", error.value()).AtPath(std::string(path));
  Location place{.path = whole.string()};
  if (place.path.size() > 1 && place.path.back() == '/') place.path.pop_back();
  std::string missing;
  for (std::string at = place.path;; at = ParentPath(at)) {
    struct stat info = {};
    if (::stat(at.c_str(), &info) == 0) {
      const std::string identity = StrCat(info.st_dev, ":", info.st_ino);
      for (; !missing.empty(); missing.resize(missing.rfind('/'))) {
        place.identities.push_back(StrCat(identity, missing));
      }
      place.identities.push_back(identity);
    } else if (errno == ENOENT || errno == ENOTDIR) {
      missing = StrCat("/", LastComponent(at), missing);
    } else {
      return ErrnoError("stat", errno).AtPath(at);
    }
    if (at == "/") return place;
  }
}

// Success if `path` is a directory; NotFound if nothing is there.
Status CheckIsDirectory(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return ErrnoError("stat", errno).AtPath(path);
  if (!S_ISDIR(info.st_mode)) return MakeError(Code::kIo, "not a directory").AtPath(path);
  return {};
}

// The name of a new directory is durable only once its parent is synced. Another process may make
// the same level at the same time; its parent is synced here all the same, because that process may
// not have reached its sync yet.
Status MakeLevel(const std::string& path) {
  const bool made = ::mkdir(path.c_str(), kDirectoryMode) == 0;
  if (!made) {
    if (errno != EEXIST) return ErrnoError("mkdir", errno).AtPath(path);
    SEALPOINT_RETURN_IF_ERROR(CheckIsDirectory(path));
  }
  Status synced = SyncParent(path);
  // Removed again, so that a second call does not find it and take it for durable.
  if (!synced.ok() && made) (void)::rmdir(path.c_str());
  return synced;
}

Status PosixStorageImpl::CreateDirectories(std::string_view path) {
  SEALPOINT_RETURN_IF_ERROR(CheckPath(path));
  // The common case is that it exists. This also finds a path that is too long before a part of it
  // is made.
  Status whole = CheckIsDirectory(std::string(path));
  if (whole.code() != Code::kNotFound) return whole;
  for (const std::string& level : PathPrefixes(path)) {
    Status status = CheckIsDirectory(level);
    if (status.code() == Code::kNotFound) status = MakeLevel(level);
    SEALPOINT_RETURN_IF_ERROR(std::move(status));
  }
  return {};
}

Status PosixStorageImpl::SyncAll(std::string_view path) {
  const std::string text(path);
  SEALPOINT_RETURN_IF_ERROR(CheckPath(path));
  if (CheckIsDirectory(text).code() == Code::kIo) {
    SEALPOINT_ASSIGN_OR_RETURN(const UniqueFd fd,
                               OpenAt(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0, text));
    return ::fsync(fd.get()) == 0 ? Status() : ErrnoError("fsync", errno).AtPath(text);
  }
  SEALPOINT_ASSIGN_OR_RETURN(const auto directory, PosixDirectory::Open(path));
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<EntryInfo> entries, directory->List());
  for (const EntryInfo& entry : entries) {
    if (entry.kind != EntryKind::kFile && entry.kind != EntryKind::kDirectory) continue;
    SEALPOINT_RETURN_IF_ERROR(SyncAll(JoinPath(path, entry.name)));
  }
  return directory->Sync();
}

// For file systems without RENAME_NOREPLACE. Without links, too, another process could make the
// target between the look and the rename.
Status LinkAndUnlink(const std::string& source, const std::string& target) {
  if (::link(source.c_str(), target.c_str()) == 0) {
    return ::unlink(source.c_str()) == 0 ? Status() : ErrnoError("unlink", errno).AtPath(source);
  }
  if (errno != EPERM && errno != EOPNOTSUPP) return ErrnoError("link", errno).AtPath(target);
  struct stat info = {};
  if (::lstat(target.c_str(), &info) == 0) return ErrnoError("link", EEXIST).AtPath(target);
  if (::rename(source.c_str(), target.c_str()) == 0) return {};
  return ErrnoError("rename", errno).AtPath(target);
}

// rename(2) replaces files, but of directories only an empty one, and by a directory.
Status PosixStorageImpl::Move(std::string_view from, std::string_view to) {
  SEALPOINT_RETURN_IF_ERROR(CheckPath(from));
  SEALPOINT_RETURN_IF_ERROR(CheckPath(to));
  const std::string source(from);
  const std::string target(to);
  struct stat info = {};
  if (::lstat(source.c_str(), &info) != 0) return ErrnoError("lstat", errno).AtPath(source);
  if (S_ISDIR(info.st_mode)) {
    if (::rename(source.c_str(), target.c_str()) != 0) {
      const bool is_taken = errno == ENOTEMPTY || errno == ENOTDIR;
      return ErrnoError("rename", is_taken ? EEXIST : errno).AtPath(target);
    }
  } else if (::renameat2(AT_FDCWD, source.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) !=
             0) {
    if (errno != EINVAL && errno != ENOSYS) return ErrnoError("renameat2", errno).AtPath(target);
    SEALPOINT_RETURN_IF_ERROR(LinkAndUnlink(source, target));
  }
  SEALPOINT_RETURN_IF_ERROR(SyncParent(target));
  return ParentPath(source) == ParentPath(target) ? Status() : SyncParent(source);
}

}  // namespace
}  // namespace internal::storage

std::shared_ptr<Storage> PosixStorage() {
  // Never destroyed: a saver that the end of the program destroys later may be at work.
  static const auto& storage =
      *new std::shared_ptr<Storage>(std::make_shared<internal::storage::PosixStorageImpl>());
  return storage;
}

}  // namespace sealpoint
