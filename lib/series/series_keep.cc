// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "sealpoint/series.h"

namespace sealpoint {
namespace {

// True if there was none.
Result<bool> MakeKeep(Directory& directory) {
  auto file = directory.CreateExclusive(internal::format::kKeepName, {});
  if (file.error().code() == Code::kAlreadyExists) return false;
  SEALPOINT_RETURN_IF_ERROR(file.status());
  SEALPOINT_RETURN_IF_ERROR((*file)->Sync());
  SEALPOINT_RETURN_IF_ERROR((*file)->Close());
  return true;
}

Result<bool> RemoveKeep(Directory& directory) {
  const Status removed = directory.Remove(internal::format::kKeepName);
  if (removed.code() == Code::kNotFound) return false;
  SEALPOINT_RETURN_IF_ERROR(removed);
  return true;
}

}  // namespace

// Synced also if nothing was changed: what somebody else did may not be durable yet.
Result<bool> SetKept(Storage& storage, const std::string& path, bool is_kept) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto directory, storage.OpenDirectory(path));
  SEALPOINT_ASSIGN_OR_RETURN(const bool is_changed,
                             is_kept ? MakeKeep(*directory) : RemoveKeep(*directory));
  SEALPOINT_RETURN_IF_ERROR(directory->Sync());
  return is_changed;
}

}  // namespace sealpoint
