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
namespace internal::storage {
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
  std::uint64_t part_size_bytes(std::string_view /*path*/) const override {
    return tree_->store->part_size_bytes();
  }

  Result<std::vector<UnfinishedFile>> ListUnfinished(std::string_view path) const override {
    SEALPOINT_ASSIGN_OR_RETURN(const std::string prefix, PrefixOf(path));
    SEALPOINT_ASSIGN_OR_RETURN(const auto uploads, tree_->store->ListUploads(prefix));
    std::vector<UnfinishedFile> files;
    for (const UnfinishedUpload& upload : uploads) {
      if (!upload.key.starts_with(prefix)) continue;
      files.push_back({.name = upload.key.substr(prefix.size()),
                       .upload_id = upload.upload_id,
                       .begun_unix_s = upload.begun_unix_s});
    }
    return files;
  }

  Status AbortUnfinished(std::string_view path, const UnfinishedFile& file) override {
    SEALPOINT_ASSIGN_OR_RETURN(const std::string prefix, PrefixOf(path));
    return tree_->store->AbortUpload({.key = prefix + file.name,
                                      .upload_id = file.upload_id,
                                      .begun_unix_s = file.begun_unix_s});
  }

 private:
  Result<std::string> PrefixOf(std::string_view path) const {
    return PrefixBelow(*tree_->store, path);
  }

  const std::shared_ptr<ObjectTree> tree_;
};

}  // namespace
}  // namespace internal::storage

Result<std::string> ObjectStore::Copy(const StoredObject& from, const std::string& /*to*/) {
  return Status(Code::kUnsupported, "this client of an object store cannot copy objects")
      .AtPath(JoinPath(uri(), from.key));
}

Result<std::shared_ptr<Storage>> ObjectStorage(std::shared_ptr<ObjectStore> store,
                                               ObjectStorageOptions options) {
  if (store == nullptr) return internal::InvalidArgument("the object store is null");
  const std::string& uri = store->uri();
  if (internal::storage::SchemeOf(uri).empty() || internal::storage::AuthorityOf(uri) != uri) {
    return internal::InvalidArgument("the object store's uri is '", uri,
                                     "', expected one as 's3://bucket'");
  }
  if (store->part_size_bytes() == 0) {
    return internal::InvalidArgument("the object store's part size is 0");
  }
  auto tree = std::make_shared<internal::storage::ObjectTree>();
  tree->buffers = std::make_shared<internal::storage::PartBuffers>(store->part_size_bytes(),
                                                                   options.upload_memory_bytes);
  tree->store = std::move(store);
  return std::shared_ptr<Storage>(
      std::make_shared<internal::storage::ObjectStorageImpl>(std::move(tree)));
}

}  // namespace sealpoint
