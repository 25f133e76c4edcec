// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/memory_tree.h"

#include <cerrno>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/path.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::storage {

Status CheckMemoryName(std::string_view directory, std::string_view name) {
  constexpr std::size_t kNameMaxBytes = 255;
  SEALPOINT_RETURN_IF_ERROR(CheckName(directory, name));
  if (name.size() <= kNameMaxBytes) return {};
  return ErrnoError("name", ENAMETOOLONG).AtPath(JoinPath(directory, name));
}

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

}  // namespace sealpoint::internal::storage
