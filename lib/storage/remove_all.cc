// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/path.h"
#include "sealpoint/storage.h"

namespace sealpoint {
namespace internal {
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
}  // namespace internal

Status RemoveAll(Storage& storage, std::string_view path) {
  const std::string name(internal::LastComponent(path));
  if (name.empty()) return internal::InvalidArgument("a root is not removed").AtPath(path);
  const auto parent = storage.OpenDirectory(internal::ParentPath(path));
  if (!parent.ok()) return internal::UnlessMissing(parent.error());
  const auto entry = (*parent)->Stat(name);
  if (!entry.ok()) return internal::UnlessMissing(entry.error());
  SEALPOINT_RETURN_IF_ERROR(internal::RemoveEntry(**parent, *entry));
  // RemoveSubdirectory has synced.
  return entry->kind == EntryKind::kDirectory ? Status() : (*parent)->Sync();
}

}  // namespace sealpoint
