// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/path.h"
#include "sealpoint/storage.h"

namespace sealpoint {
namespace internal::storage {
namespace {

Status UnlessMissing(const Status& status) {
  return status.code() == Code::kNotFound ? Status() : status;
}

// Another process may remove the same at the same time.
Status RemoveEntry(Directory& parent, const EntryInfo& entry) {
  if (entry.kind != EntryKind::kDirectory) return UnlessMissing(parent.Remove(entry.name));
  const auto directory = parent.OpenSubdirectory(entry.name);
  if (!directory.ok()) return UnlessMissing(directory.error());
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<EntryInfo> entries, (*directory)->List());
  for (const EntryInfo& inner : entries) {
    SEALPOINT_RETURN_IF_ERROR(RemoveEntry(**directory, inner));
  }
  return UnlessMissing(parent.RemoveSubdirectory(entry.name));
}

}  // namespace
}  // namespace internal::storage

Result<std::optional<EntryInfo>> StatPath(const Storage& storage, std::string_view path) {
  const std::string parent = internal::storage::ParentPath(path);
  const std::string_view name = internal::storage::LastComponent(path);
  const auto directory = storage.OpenDirectory(parent);
  auto entry = directory.ok() ? (*directory)->Stat(name) : directory.error();
  if (!entry.ok() && entry.error().code() == Code::kNotFound) return std::optional<EntryInfo>();
  if (entry.ok() && entry->kind != EntryKind::kSymlink) return std::optional(*std::move(entry));
  if (!directory.ok() && parent != path) {
    const auto above = StatPath(storage, parent);
    const bool is_below_file = above.ok() && *above && (*above)->kind != EntryKind::kDirectory;
    if (is_below_file) return std::optional<EntryInfo>();
  }
  // A root has no name, and what is below an unreadable directory can be opened.
  if (storage.OpenDirectory(path).ok()) {
    return std::optional(EntryInfo{.name = std::string(name), .kind = EntryKind::kDirectory});
  }
  if (!entry.ok()) return entry.error();
  if ((*directory)->OpenForRead(name, IoMode::kBuffered).ok()) entry->kind = EntryKind::kFile;
  return std::optional(*std::move(entry));
}

Status RemoveAll(Storage& storage, std::string_view path) {
  const std::string name(internal::storage::LastComponent(path));
  if (name.empty()) return internal::InvalidArgument("a root is not removed").AtPath(path);
  const auto parent = storage.OpenDirectory(internal::storage::ParentPath(path));
  if (!parent.ok()) return internal::storage::UnlessMissing(parent.error());
  const auto entry = (*parent)->Stat(name);
  if (!entry.ok()) return internal::storage::UnlessMissing(entry.error());
  SEALPOINT_RETURN_IF_ERROR(internal::storage::RemoveEntry(**parent, *entry));
  // RemoveSubdirectory has synced.
  return entry->kind == EntryKind::kDirectory ? Status() : (*parent)->Sync();
}

}  // namespace sealpoint
