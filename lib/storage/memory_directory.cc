// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/memory_directory.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/memory_file.h"

namespace sealpoint::internal::storage {
namespace {

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

}  // namespace

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

}  // namespace sealpoint::internal::storage
