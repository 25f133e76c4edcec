// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
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

}  // namespace
}  // namespace internal::storage

std::shared_ptr<Storage> PosixStorage() {
  // Never destroyed: a saver that the end of the program destroys later may be at work.
  static const auto& storage =
      *new std::shared_ptr<Storage>(std::make_shared<internal::storage::PosixStorageImpl>());
  return storage;
}

}  // namespace sealpoint
