// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_MEMORY_DIRECTORY_H_
#define SEALPOINT_LIB_STORAGE_MEMORY_DIRECTORY_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/storage/memory_tree.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::storage {

class MemoryDirectory final : public Directory {
 public:
  MemoryDirectory(std::shared_ptr<MemoryTree> tree, std::shared_ptr<MemoryFolder> folder,
                  std::string_view path)
      : tree_(std::move(tree)), folder_(std::move(folder)), path_(path) {}

  const std::string& path() const override { return path_; }
  Result<std::unique_ptr<WritableFile>> CreateExclusive(std::string_view name,
                                                        CreateOptions options) override;
  Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name,
                                                    IoMode mode) const override;
  Result<EntryInfo> Stat(std::string_view name) const override;
  Result<std::vector<EntryInfo>> List() const override;
  Result<Bytes> ReadFileIn(std::string_view subdirectory, std::string_view name,
                           std::size_t size_max) const override;
  Result<std::unique_ptr<Directory>> OpenSubdirectory(std::string_view name) const override;
  Status Remove(std::string_view name) override;
  Status RemoveSubdirectory(std::string_view name) override;
  Status PublishExclusive(std::string_view from, std::string_view to,
                          PublishMethod method) override;
  Status LinkFrom(std::string_view directory, std::string_view name,
                  std::uint64_t name_count_max) override;
  Status Sync() override { return {}; }
  Result<SpaceInfo> FreeSpace() const override;
  Result<Capabilities> Probe(std::string_view probe_name) override;

 private:
  Status ErrorAt(std::string_view operation, int error_number, std::string_view name) const;

  const std::shared_ptr<MemoryTree> tree_;
  const std::shared_ptr<MemoryFolder> folder_;
  const std::string path_;
};

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_MEMORY_DIRECTORY_H_
