// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/memory_directory.h"
#include "lib/storage/memory_tree.h"
#include "lib/storage/path.h"

namespace sealpoint {
namespace internal::storage {
namespace {

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
