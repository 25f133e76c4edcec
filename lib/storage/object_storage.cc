// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/object_directory.h"
#include "lib/storage/part_buffers.h"
#include "lib/storage/path.h"
#include "sealpoint/object_store.h"

namespace sealpoint {
namespace internal {
namespace {

class ObjectStorageImpl final : public Storage {
 public:
  explicit ObjectStorageImpl(std::shared_ptr<ObjectTree> tree) : tree_(std::move(tree)) {}

  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override {
    SEALPOINT_ASSIGN_OR_RETURN(std::string prefix, PrefixOf(path));
    return ObjectDirectory::Open(tree_, std::string(path), std::move(prefix));
  }

  // Nothing is made in the store: a prefix is there as soon as an object below it is.
  Status CreateDirectories(std::string_view path) override {
    SEALPOINT_ASSIGN_OR_RETURN(const std::string prefix, PrefixOf(path));
    const std::lock_guard lock(tree_->mutex);
    for (std::size_t end = prefix.find('/'); end != std::string::npos;
         end = prefix.find('/', end + 1)) {
      tree_->made.insert(prefix.substr(0, end + 1));
    }
    return {};
  }

 private:
  // "s3://bucket/a//b" -> "a/b/".
  Result<std::string> PrefixOf(std::string_view path) const {
    const std::string& root = tree_->store->uri();
    const bool is_below =
        path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
    if (!is_below) {
      return InvalidArgument("path is not of this object store, expected ", root, "/…")
          .AtPath(path);
    }
    std::string prefix;
    std::string_view rest = path.substr(root.size());
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find('/'));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
      if (name.empty()) continue;
      SEALPOINT_RETURN_IF_ERROR(CheckName(path, name));
      prefix.append(name).push_back('/');
    }
    return prefix;
  }

  const std::shared_ptr<ObjectTree> tree_;
};

}  // namespace
}  // namespace internal

Result<std::shared_ptr<Storage>> ObjectStorage(std::shared_ptr<ObjectStore> store,
                                               ObjectStorageOptions options) {
  if (store == nullptr) return internal::InvalidArgument("the object store is null");
  const std::string& uri = store->uri();
  if (internal::SchemeOf(uri).empty() || internal::AuthorityOf(uri) != uri) {
    return internal::InvalidArgument("the object store's uri is '", uri,
                                     "', expected one as 's3://bucket'");
  }
  if (store->part_size_bytes() == 0) {
    return internal::InvalidArgument("the object store's part size is 0");
  }
  auto tree = std::make_shared<internal::ObjectTree>();
  tree->buffers = std::make_shared<internal::PartBuffers>(store->part_size_bytes(),
                                                          options.upload_memory_bytes);
  tree->store = std::move(store);
  return std::shared_ptr<Storage>(std::make_shared<internal::ObjectStorageImpl>(std::move(tree)));
}

}  // namespace sealpoint
