// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CRASH_DISK_DIRECTORY_H_
#define SEALPOINT_TESTS_SUPPORT_CRASH_DISK_DIRECTORY_H_

#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "tests/support/crash/disk_state.h"

namespace sealpoint::testing {

class CrashDisk::OpenedDirectory final : public Directory {
 public:
  OpenedDirectory(std::shared_ptr<State> state, int actor, CrashNodeId node, std::string_view path)
      : state_(std::move(state)), actor_(actor), node_(node), path_(path) {}

  const std::string& path() const override { return path_; }
  Result<std::unique_ptr<WritableFile>> CreateExclusive(std::string_view name,
                                                        CreateOptions) override;
  Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name, IoMode) const override;
  Result<EntryInfo> Stat(std::string_view name) const override;
  Result<std::vector<EntryInfo>> List() const override;
  Result<Bytes> ReadFileIn(std::string_view subdirectory, std::string_view name,
                           std::size_t size_max) const override;
  Result<std::unique_ptr<Directory>> OpenSubdirectory(std::string_view name) const override;
  Status Remove(std::string_view name) override;
  Status RemoveSubdirectory(std::string_view name) override;
  Status PublishExclusive(std::string_view from, std::string_view to, PublishMethod) override;
  Status LinkFrom(std::string_view directory, std::string_view name,
                  std::uint64_t name_count_max) override;
  Status Sync() override {
    return state_->Change({.actor = actor_,
                           .kind = CrashOpKind::kSyncDirectory,
                           .directory = node_,
                           .node = node_,
                           .name = path_},
                          [](CrashOp&) { return Status(); });
  }
  Result<SpaceInfo> FreeSpace() const override {
    return SpaceInfo{.free_bytes = std::numeric_limits<std::int64_t>::max(),
                     .free_inodes = std::numeric_limits<std::uint64_t>::max()};
  }
  Result<Capabilities> Probe(std::string_view) override {
    return Capabilities{.publish = state_->options.publish, .directory_sync = true};
  }

 private:
  // With the mutex held. Errors: NotFound, Io.
  Result<CrashNodeId> FindSubdirectory(std::string_view operation, std::string_view name) const;
  Status ErrorAt(std::string_view operation, int number, std::string_view name) const {
    return internal::ErrnoError(operation, number).AtPath(JoinPath(path_, name));
  }
  EntryInfo Describe(std::string_view name, CrashNodeId node) const {
    const VolatileNode& found = state_->at(node);
    return {.name = std::string(name),
            .kind = found.is_directory ? EntryKind::kDirectory : EntryKind::kFile,
            .size_bytes = found.is_directory ? 0 : found.content().size()};
  }

  const std::shared_ptr<State> state_;
  const int actor_;
  const CrashNodeId node_;
  const std::string path_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CRASH_DISK_DIRECTORY_H_
