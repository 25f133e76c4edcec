// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_OBJECT_DIRECTORY_H_
#define SEALPOINT_LIB_STORAGE_OBJECT_DIRECTORY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/storage/part_buffers.h"
#include "sealpoint/object_store.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::storage {

// State shared by the directories of an object storage.
struct ObjectTree {
  std::shared_ptr<ObjectStore> store;
  std::shared_ptr<PartBuffers> buffers;
  std::mutex mutex;
  std::set<std::string, std::less<>> made{};  // prefixes of CreateDirectories
};

// "s3://bucket/a//b" -> "a/b/". Errors: InvalidArgument (a path of another store).
Result<std::string> PrefixBelow(const ObjectStore& store, std::string_view path);

// The objects below a prefix. A zero-byte object with the prefix itself as key (as consoles create
// for folders) makes the directory exist but is not listed in it.
class ObjectDirectory final : public Directory {
 public:
  // `prefix` is empty or ends in '/'. NotFound if nothing exists there and it was not created.
  static Result<std::unique_ptr<Directory>> Open(std::shared_ptr<ObjectTree> tree, std::string path,
                                                 std::string prefix);

  const std::string& path() const override { return path_; }
  Result<std::unique_ptr<WritableFile>> CreateExclusive(std::string_view name,
                                                        CreateOptions options) override;
  Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name,
                                                    IoMode mode) const override;
  Result<EntryInfo> Stat(std::string_view name) const override;
  Result<std::vector<Result<EntryInfo>>> StatEach(
      std::span<const std::string> names) const override;
  Result<std::vector<EntryInfo>> List() const override;
  Status ForEachEntry(const std::function<bool(const EntryInfo& entry)>& visit) const override;
  Result<Bytes> ReadFileIn(std::string_view subdirectory, std::string_view name,
                           std::size_t size_max) const override;
  Result<std::unique_ptr<Directory>> OpenSubdirectory(std::string_view name) const override;
  Status Remove(std::string_view name) override;
  Status RemoveSubdirectory(std::string_view name) override;
  Status PublishExclusive(std::string_view from, std::string_view to,
                          PublishMethod method) override;
  Status PutIfAbsent(std::string_view name, ByteSpan content) override;
  Status Replace(std::string_view name, ByteSpan content) override;
  // Copies; `name_count_max` of 1 means not to.
  Status LinkFrom(std::string_view directory, std::string_view name,
                  std::uint64_t name_count_max) override;
  Status Sync() override { return {}; }
  Result<SpaceInfo> FreeSpace() const override;
  Result<Capabilities> Probe(std::string_view probe_name) override;

 private:
  using Listing = std::map<std::string, StoredObject, std::less<>>;  // objects by name

  ObjectDirectory(std::shared_ptr<ObjectTree> tree, std::string path, std::string prefix)
      : tree_(std::move(tree)), path_(std::move(path)), prefix_(std::move(prefix)) {}

  ObjectStore& store() const { return *tree_->store; }
  Status NothingBelow() const;
  bool IsMade() const;  // Created by this process: it exists, so opening it takes no request.
  Result<std::string> KeyOf(std::string_view name) const;
  Result<Listing> ListObjects() const;  // all pages
  void AddPage(ObjectPage page, Listing& listing) const;
  // Size from a listing, without another request to the store; empty if unknown.
  std::optional<StoredObject> KnownLarge(std::string_view name) const;
  void Forget(std::string_view name);
  std::set<std::string, std::less<>> MadeNames() const;

  const std::shared_ptr<ObjectTree> tree_;
  const std::string path_;
  const std::string prefix_;
  mutable std::mutex mutex_;
  mutable Listing listed_;  // entries of the latest listing not yet requested by StatEach
  mutable Listing large_;   // listed objects larger than kObjectFrontBytes
};

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_OBJECT_DIRECTORY_H_
