// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_POSIX_DIRECTORY_H_
#define SEALPOINT_LIB_STORAGE_POSIX_DIRECTORY_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/storage/posix_fd.h"
#include "lib/storage/posix_file.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::storage {

// All names are resolved relative to the open directory, so that it may be renamed meanwhile.
class PosixDirectory final : public Directory {
 public:
  static Result<std::unique_ptr<PosixDirectory>> Open(std::string_view path);

  const std::string& path() const override { return path_; }
  Result<std::unique_ptr<WritableFile>> CreateExclusive(std::string_view name,
                                                        CreateOptions options) override;
  Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name,
                                                    IoMode mode) const override;
  Result<EntryInfo> Stat(std::string_view name) const override;
  Result<std::vector<EntryInfo>> List() const override;
  Status ForEachEntry(const std::function<bool(const EntryInfo& entry)>& visit) const override;
  Result<Bytes> ReadFileIn(std::string_view subdirectory, std::string_view name,
                           std::size_t size_max) const override;
  Result<std::unique_ptr<Directory>> OpenSubdirectory(std::string_view name) const override;
  Status Remove(std::string_view name) override;
  Status RemoveSubdirectory(std::string_view name) override;
  Status PublishExclusive(std::string_view from, std::string_view to,
                          PublishMethod method) override;
  Status Replace(std::string_view name, ByteSpan content) override;
  Status LinkFrom(std::string_view directory, std::string_view name,
                  std::uint64_t name_count_max) override;
  Status Sync() override;
  Result<SpaceInfo> FreeSpace() const override;
  Result<Capabilities> Probe(std::string_view probe_name) override;

  // CreateExclusive with the type that the probe needs.
  Result<std::unique_ptr<PosixWritableFile>> CreatePosixFile(std::string_view name, IoMode mode);

 private:
  // Treatment of a link with a target that cannot be examined but may exist.
  enum class OnLostTarget : std::uint8_t { kError, kNoSize };

  PosixDirectory(UniqueFd fd, std::string_view path) : fd_(std::move(fd)), path_(path) {}

  Result<std::unique_ptr<PosixReadableFile>> OpenFile(const std::string& name, IoMode mode) const;
  Result<EntryInfo> StatEntry(std::string_view name, OnLostTarget on_lost) const;

  UniqueFd fd_;
  const std::string path_;
};

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_POSIX_DIRECTORY_H_
