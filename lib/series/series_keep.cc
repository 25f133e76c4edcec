// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/series/series_scan.h"
#include "sealpoint/series.h"

namespace sealpoint {
namespace {

bool HasKeepOfDeltas(const Directory& directory) {
  const Result<bool> found = internal::series::IsKeepOfDeltas(directory);
  return found.ok() && *found;
}

// True if there was none of a person.
Result<bool> MakeKeep(Directory& directory) {
  if (HasKeepOfDeltas(directory)) {
    SEALPOINT_RETURN_IF_ERROR(directory.Replace(internal::format::kKeepName, {}));
    return true;
  }
  auto file = directory.CreateExclusive(internal::format::kKeepName, {});
  if (file.error().code() == Code::kAlreadyExists) return false;
  SEALPOINT_RETURN_IF_ERROR(file.status());
  SEALPOINT_RETURN_IF_ERROR((*file)->Sync());
  SEALPOINT_RETURN_IF_ERROR((*file)->Close());
  return true;
}

Result<bool> RemoveKeep(Directory& directory) {
  if (HasKeepOfDeltas(directory)) return false;
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
