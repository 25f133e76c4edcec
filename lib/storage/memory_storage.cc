// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/first_error.h"
#include "lib/storage/path.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint {
namespace internal::storage {
namespace {

// The content of a file, shared by its names and by everything that has it open, like an inode.
struct MemoryNode {
  mutable std::shared_mutex mutex;
  Bytes content;
  std::uint64_t name_count = 1;  // guarded by MemoryTree::mutex
};

// A directory. Guarded by MemoryTree::mutex.
struct MemoryFolder {
  std::map<std::string, std::shared_ptr<MemoryNode>, std::less<>> files;
  std::map<std::string, std::shared_ptr<MemoryFolder>, std::less<>> folders;
  bool is_removed = false;

  bool Has(std::string_view name) const {
    return files.find(name) != files.end() || folders.find(name) != folders.end();
  }
};

// The state of one MemoryStorage. Lives as long as the storage or one of its directories. One mutex
// guards all names: there are few, and it makes operations on two names atomic.
struct MemoryTree {
  mutable std::mutex mutex;
  std::shared_ptr<MemoryFolder> root = std::make_shared<MemoryFolder>();
};

// As CheckName; also Io for a name that is longer than file systems allow.
Status CheckMemoryName(std::string_view directory, std::string_view name) {
  constexpr std::size_t kNameMaxBytes = 255;
  SEALPOINT_RETURN_IF_ERROR(CheckName(directory, name));
  if (name.size() <= kNameMaxBytes) return {};
  return ErrnoError("name", ENAMETOOLONG).AtPath(JoinPath(directory, name));
}

// The folder at `path`, resolved from the root. Errors: InvalidArgument, NotFound, Io (a file is
// there). The tree's mutex must be held.
Result<std::shared_ptr<MemoryFolder>> FindFolder(const MemoryTree& tree, std::string_view path) {
  SEALPOINT_RETURN_IF_ERROR(CheckPath(path));
  std::shared_ptr<MemoryFolder> folder = tree.root;
  for (const std::string& level : PathPrefixes(path)) {
    const std::string_view name = LastComponent(level);
    if (name == ".") continue;
    const auto found = folder->folders.find(name);
    if (found == folder->folders.end()) {
      return ErrnoError("open", folder->Has(name) ? ENOTDIR : ENOENT).AtPath(level);
    }
    folder = found->second;
  }
  return folder;
}

// Direct I/O is always refused here, so these files are never direct.
class MemoryWritableFile final : public WritableFile {
 public:
  MemoryWritableFile(std::shared_ptr<MemoryNode> node, std::string path)
      : node_(std::move(node)), path_(std::move(path)) {}

  Status WriteAt(std::uint64_t offset, ByteSpan data) override;
  Status Preallocate(std::uint64_t size_bytes) override;
  Status Sync() override { return CheckUsable(); }
  Status Close() override;
  bool is_direct() const override { return false; }

 private:
  Status CheckUsable() const;
  Status WriteAll(std::uint64_t offset, ByteSpan data);

  const std::shared_ptr<MemoryNode> node_;
  const std::string path_;
  std::atomic<bool> is_closed_ = false;
  FirstError first_error_;
};

class MemoryReadableFile final : public ReadableFile {
 public:
  MemoryReadableFile(std::shared_ptr<const MemoryNode> node, std::string path, IoMode mode);

  std::uint64_t size_bytes() const override { return size_bytes_; }
  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override;
  bool is_direct() const override { return false; }

 private:
  const std::shared_ptr<const MemoryNode> node_;
  const std::string path_;
  const IoMode mode_;
  std::uint64_t size_bytes_ = 0;
};

// Offsets are limited to signed 64-bit numbers, as in POSIX.
Status CheckMemoryRange(std::uint64_t offset, std::uint64_t size_bytes) {
  if (RangeFits(offset, size_bytes, std::numeric_limits<std::int64_t>::max())) return {};
  return InvalidArgument("offset ", offset, " and size ", size_bytes,
                         " exceed the greatest file offset");
}

// False if out of memory. The only place that catches an exception of a container: a test may write
// files as large as memory. A range ends at most at the greatest signed offset, which is the
// greatest size of a vector.
bool GrowTo(Bytes& content, std::uint64_t size_bytes) {
  if (size_bytes <= content.size()) return true;
  try {
    content.resize(static_cast<std::size_t>(size_bytes));
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

Status MemoryWritableFile::CheckUsable() const {
  SEALPOINT_RETURN_IF_ERROR(first_error_.Get());
  if (is_closed_.load()) return InvalidArgument("file is closed").AtPath(path_);
  return {};
}

Status MemoryWritableFile::WriteAt(std::uint64_t offset, ByteSpan data) {
  SEALPOINT_RETURN_IF_ERROR(CheckUsable());
  Status status = WriteAll(offset, data);
  return first_error_.Note(std::move(status).AtPath(path_).AtOffset(offset));
}

Status MemoryWritableFile::WriteAll(std::uint64_t offset, ByteSpan data) {
  SEALPOINT_RETURN_IF_ERROR(CheckMemoryRange(offset, data.size()));
  if (data.empty()) return {};  // as pwrite(2): does not make the file longer
  const std::unique_lock lock(node_->mutex);
  if (!GrowTo(node_->content, offset + data.size())) {
    return MakeError(Code::kNoSpace, "out of memory for a file of ", offset + data.size(),
                     " bytes");
  }
  std::copy(data.begin(), data.end(), node_->content.begin() + static_cast<std::ptrdiff_t>(offset));
  return {};
}

Status MemoryWritableFile::Preallocate(std::uint64_t size_bytes) {
  SEALPOINT_RETURN_IF_ERROR(CheckUsable());
  return CheckMemoryRange(0, size_bytes).AtPath(path_);
}

Status MemoryWritableFile::Close() {
  SEALPOINT_RETURN_IF_ERROR(CheckUsable());
  is_closed_.store(true);
  return {};
}

MemoryReadableFile::MemoryReadableFile(std::shared_ptr<const MemoryNode> node, std::string path,
                                       IoMode mode)
    : node_(std::move(node)), path_(std::move(path)), mode_(mode) {
  const std::shared_lock lock(node_->mutex);
  size_bytes_ = node_->content.size();
}

Status MemoryReadableFile::ReadAt(std::uint64_t offset, MutableByteSpan out) const {
  if (Status status = CheckMemoryRange(offset, out.size()); !status.ok()) {
    return std::move(status).AtPath(path_).AtOffset(offset);
  }
  const std::uint64_t limit =
      mode_ == IoMode::kDirect ? AlignUp(size_bytes_, kDirectIoAlignmentBytes) : size_bytes_;
  if (!RangeFits(offset, out.size(), limit)) {
    return MakeError(Code::kIncomplete, "file has ", size_bytes_, " bytes, expected at least ",
                     offset, " + ", out.size())
        .AtPath(path_)
        .AtOffset(size_bytes_);
  }
  const std::shared_lock lock(node_->mutex);
  const std::uint64_t begin = std::min(offset, size_bytes_);
  const std::uint64_t end = std::min(offset + out.size(), size_bytes_);
  const auto first = node_->content.begin();
  const auto rest = std::copy(first + static_cast<std::ptrdiff_t>(begin),
                              first + static_cast<std::ptrdiff_t>(end), out.begin());
  std::fill(rest, out.end(), std::byte{0});
  return {};
}

class MemoryDirectory final : public Directory {
 public:
  MemoryDirectory(std::shared_ptr<MemoryTree> tree, std::shared_ptr<MemoryFolder> folder,
                  std::string_view path)
      : tree_(std::move(tree)), folder_(std::move(folder)), path_(path) {}

  const std::string& path() const override { return path_; }
  Result<std::unique_ptr<WritableFile>> CreateExclusive(std::string_view name,
                                                        CreateOptions options) override;
  Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name,
                                                    IoMode mode) const override;
  Result<EntryInfo> Stat(std::string_view name) const override;
  Result<std::vector<EntryInfo>> List() const override;
  Result<Bytes> ReadFileIn(std::string_view subdirectory, std::string_view name,
                           std::size_t size_max) const override;
  Result<std::unique_ptr<Directory>> OpenSubdirectory(std::string_view name) const override;
  Status Remove(std::string_view name) override;
  Status RemoveSubdirectory(std::string_view name) override;
  Status PublishExclusive(std::string_view from, std::string_view to,
                          PublishMethod method) override;
  Status Replace(std::string_view name, ByteSpan content) override;
  Status LinkFrom(std::string_view directory, std::string_view name,
                  std::uint64_t name_count_max) override;
  Status Sync() override { return {}; }
  Result<SpaceInfo> FreeSpace() const override;
  Result<Capabilities> Probe(std::string_view probe_name) override;

 private:
  Status ErrorAt(std::string_view operation, int error_number, std::string_view name) const;

  const std::shared_ptr<MemoryTree> tree_;
  const std::shared_ptr<MemoryFolder> folder_;
  const std::string path_;
};

EntryInfo DescribeFile(std::string_view name, const MemoryNode& node) {
  const std::shared_lock lock(node.mutex);
  return {.name = std::string(name),
          .kind = EntryKind::kFile,
          .size_bytes = node.content.size(),
          .file_number = reinterpret_cast<std::uintptr_t>(&node)};
}

EntryInfo DescribeFolder(std::string_view name) {
  return {.name = std::string(name), .kind = EntryKind::kDirectory};
}

Status MemoryDirectory::ErrorAt(std::string_view operation, int error_number,
                                std::string_view name) const {
  return ErrnoError(operation, error_number).AtPath(JoinPath(path_, name));
}

Result<std::unique_ptr<WritableFile>> MemoryDirectory::CreateExclusive(std::string_view name,
                                                                       CreateOptions /*options*/) {
  SEALPOINT_RETURN_IF_ERROR(CheckMemoryName(path_, name));
  auto node = std::make_shared<MemoryNode>();
  const std::lock_guard lock(tree_->mutex);
  if (folder_->is_removed) return ErrorAt("create", ENOENT, name);
  if (folder_->Has(name)) return ErrorAt("create", EEXIST, name);
  folder_->files.emplace(name, node);
  std::unique_ptr<WritableFile> file =
      std::make_unique<MemoryWritableFile>(std::move(node), JoinPath(path_, name));
  return file;
}

Result<std::unique_ptr<ReadableFile>> MemoryDirectory::OpenForRead(std::string_view name,
                                                                   IoMode mode) const {
  SEALPOINT_RETURN_IF_ERROR(CheckMemoryName(path_, name));
  const std::lock_guard lock(tree_->mutex);
  const auto found = folder_->files.find(name);
  if (found == folder_->files.end()) {
    if (!folder_->Has(name)) return ErrorAt("open", ENOENT, name);
    return MakeError(Code::kIo, "not a regular file").AtPath(JoinPath(path_, name));
  }
  std::unique_ptr<ReadableFile> file =
      std::make_unique<MemoryReadableFile>(found->second, JoinPath(path_, name), mode);
  return file;
}

Result<std::unique_ptr<Directory>> MemoryDirectory::OpenSubdirectory(std::string_view name) const {
  SEALPOINT_RETURN_IF_ERROR(CheckMemoryName(path_, name));
  const std::lock_guard lock(tree_->mutex);
  const auto found = folder_->folders.find(name);
  if (found == folder_->folders.end()) {
    return ErrorAt("open", folder_->Has(name) ? ENOTDIR : ENOENT, name);
  }
  std::unique_ptr<Directory> directory =
      std::make_unique<MemoryDirectory>(tree_, found->second, JoinPath(path_, name));
  return directory;
}

Result<Bytes> MemoryDirectory::ReadFileIn(std::string_view subdirectory, std::string_view name,
                                          std::size_t size_max) const {
  SEALPOINT_ASSIGN_OR_RETURN(const auto directory, OpenSubdirectory(subdirectory));
  SEALPOINT_ASSIGN_OR_RETURN(const auto file, directory->OpenForRead(name, IoMode::kBuffered));
  Bytes bytes(std::min<std::uint64_t>(file->size_bytes(), size_max));
  SEALPOINT_RETURN_IF_ERROR(file->ReadAt(0, bytes));
  return bytes;
}

Result<EntryInfo> MemoryDirectory::Stat(std::string_view name) const {
  SEALPOINT_RETURN_IF_ERROR(CheckMemoryName(path_, name));
  const std::lock_guard lock(tree_->mutex);
  const auto file = folder_->files.find(name);
  if (file != folder_->files.end()) return DescribeFile(name, *file->second);
  if (!folder_->Has(name)) return ErrorAt("stat", ENOENT, name);
  return DescribeFolder(name);
}

Result<std::vector<EntryInfo>> MemoryDirectory::List() const {
  std::vector<EntryInfo> entries;
  const std::lock_guard lock(tree_->mutex);
  for (const auto& [name, node] : folder_->files) entries.push_back(DescribeFile(name, *node));
  for (const auto& [name, folder] : folder_->folders) entries.push_back(DescribeFolder(name));
  std::sort(entries.begin(), entries.end(),
            [](const EntryInfo& a, const EntryInfo& b) { return a.name < b.name; });
  return entries;
}

Status MemoryDirectory::Remove(std::string_view name) {
  SEALPOINT_RETURN_IF_ERROR(CheckMemoryName(path_, name));
  const std::lock_guard lock(tree_->mutex);
  const auto found = folder_->files.find(name);
  if (found == folder_->files.end()) {
    return ErrorAt("unlink", folder_->Has(name) ? EISDIR : ENOENT, name);
  }
  --found->second->name_count;
  folder_->files.erase(found);
  return {};
}

Status MemoryDirectory::RemoveSubdirectory(std::string_view name) {
  SEALPOINT_RETURN_IF_ERROR(CheckMemoryName(path_, name));
  const std::lock_guard lock(tree_->mutex);
  const auto found = folder_->folders.find(name);
  if (found == folder_->folders.end()) {
    return ErrorAt("rmdir", folder_->Has(name) ? ENOTDIR : ENOENT, name);
  }
  if (!found->second->files.empty() || !found->second->folders.empty()) {
    return ErrorAt("rmdir", ENOTEMPTY, name);
  }
  found->second->is_removed = true;
  folder_->folders.erase(found);
  return {};
}

Status MemoryDirectory::PublishExclusive(std::string_view from, std::string_view to,
                                         PublishMethod method) {
  SEALPOINT_RETURN_IF_ERROR(CheckMemoryName(path_, from));
  SEALPOINT_RETURN_IF_ERROR(CheckMemoryName(path_, to));
  if (method == PublishMethod::kNone) {
    return MakeError(Code::kUnsupported, "no method of publication given")
        .AtPath(JoinPath(path_, to));
  }
  const std::lock_guard lock(tree_->mutex);
  const auto source = folder_->files.find(from);
  if (source == folder_->files.end()) {
    return ErrorAt("publish", folder_->Has(from) ? EPERM : ENOENT, to);
  }
  if (folder_->Has(to)) return ErrorAt("publish", EEXIST, to);
  folder_->files.emplace(to, source->second);
  if (method == PublishMethod::kRenameNoReplace) {
    folder_->files.erase(source);
  } else {
    ++source->second->name_count;
  }
  return {};
}

Status MemoryDirectory::Replace(std::string_view name, ByteSpan content) {
  SEALPOINT_RETURN_IF_ERROR(CheckMemoryName(path_, name));
  auto node = std::make_shared<MemoryNode>();
  node->content.assign(content.begin(), content.end());
  const std::lock_guard lock(tree_->mutex);
  if (folder_->is_removed) return ErrorAt("replace", ENOENT, name);
  const auto found = folder_->files.find(name);
  if (found == folder_->files.end() && folder_->Has(name)) return ErrorAt("replace", EISDIR, name);
  folder_->files.insert_or_assign(std::string(name), std::move(node));
  return {};
}

Status MemoryDirectory::LinkFrom(std::string_view directory, std::string_view name,
                                 std::uint64_t name_count_max) {
  SEALPOINT_RETURN_IF_ERROR(CheckMemoryName(path_, name));
  const std::lock_guard lock(tree_->mutex);
  SEALPOINT_ASSIGN_OR_RETURN(const auto from, FindFolder(*tree_, directory));
  const auto source = from->files.find(name);
  if (source == from->files.end()) return ErrorAt("link", ENOENT, name);
  if (folder_->Has(name)) return ErrorAt("link", EEXIST, name);
  if (source->second->name_count >= name_count_max) {
    return MakeError(Code::kUnsupported, "cannot link: the file has ", source->second->name_count,
                     " names")
        .AtPath(JoinPath(directory, name));
  }
  ++source->second->name_count;
  folder_->files.emplace(name, source->second);
  return {};
}

Result<SpaceInfo> MemoryDirectory::FreeSpace() const {
  // Free memory is not known; the greatest length that a file may have serves as a bound.
  return SpaceInfo{.free_bytes = std::numeric_limits<std::int64_t>::max(),
                   .free_inodes = std::numeric_limits<std::uint64_t>::max()};
}

Result<Capabilities> MemoryDirectory::Probe(std::string_view probe_name) {
  SEALPOINT_RETURN_IF_ERROR(CheckMemoryName(path_, probe_name));
  return Capabilities{.publish = PublishMethod::kLink,
                      .direct_io = false,
                      .preallocate = false,
                      .directory_sync = true};
}

class MemoryStorageImpl final : public Storage {
 public:
  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override;
  Status CreateDirectories(std::string_view path) override;

 private:
  const std::shared_ptr<MemoryTree> tree_ = std::make_shared<MemoryTree>();
};

Result<std::unique_ptr<Directory>> MemoryStorageImpl::OpenDirectory(std::string_view path) const {
  const std::lock_guard lock(tree_->mutex);
  SEALPOINT_ASSIGN_OR_RETURN(auto folder, FindFolder(*tree_, path));
  std::unique_ptr<Directory> directory =
      std::make_unique<MemoryDirectory>(tree_, std::move(folder), path);
  return directory;
}

Status MemoryStorageImpl::CreateDirectories(std::string_view path) {
  SEALPOINT_RETURN_IF_ERROR(CheckPath(path));
  const std::lock_guard lock(tree_->mutex);
  std::shared_ptr<MemoryFolder> folder = tree_->root;
  for (const std::string& level : PathPrefixes(path)) {
    const std::string_view name = LastComponent(level);
    if (name == ".") continue;
    SEALPOINT_RETURN_IF_ERROR(CheckMemoryName(ParentPath(level), name));
    if (folder->files.find(name) != folder->files.end()) {
      return MakeError(Code::kIo, "not a directory").AtPath(level);
    }
    std::shared_ptr<MemoryFolder>& next = folder->folders[std::string(name)];
    if (!next) next = std::make_shared<MemoryFolder>();
    folder = next;
  }
  return {};
}

}  // namespace
}  // namespace internal::storage

std::shared_ptr<Storage> MemoryStorage() {
  return std::make_shared<internal::storage::MemoryStorageImpl>();
}

}  // namespace sealpoint
