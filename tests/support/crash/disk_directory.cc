// SPDX-License-Identifier: Apache-2.0
#include "tests/support/crash/disk_directory.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/macros.h"
#include "lib/storage/first_error.h"
#include "lib/storage/path.h"

namespace sealpoint::testing {

class CrashDisk::Writer final : public WritableFile {
 public:
  Writer(std::shared_ptr<State> state, int actor, CrashNodeId node, std::string name)
      : state_(std::move(state)), actor_(actor), node_(node), name_(std::move(name)) {}

  Status WriteAt(std::uint64_t offset, ByteSpan data) override {
    CrashOp op = Op(CrashOpKind::kWrite);
    op.offset = offset;
    op.data.assign(data.begin(), data.end());
    return Run(std::move(op), [this](CrashOp& done) {
      Bytes& content = state_->at(node_).written;
      content.resize(std::max<std::size_t>(content.size(), done.offset + done.data.size()));
      std::copy(done.data.begin(), done.data.end(),
                content.begin() + static_cast<std::ptrdiff_t>(done.offset));
      return Status();
    });
  }
  Status Preallocate(std::uint64_t) override { return first_error_.Get(); }
  Status Sync() override {
    return Run(Op(CrashOpKind::kSyncFile), [](CrashOp&) { return Status(); });
  }
  Status Close() override {
    return Run(Op(CrashOpKind::kClose), [](CrashOp&) { return Status(); });
  }
  bool is_direct() const override { return false; }

 private:
  CrashOp Op(CrashOpKind kind) const {
    return {.actor = actor_, .kind = kind, .node = node_, .name = name_};
  }
  Status Run(CrashOp op, const std::function<Status(CrashOp&)>& effect) {
    SEALPOINT_RETURN_IF_ERROR(first_error_.Get());
    return first_error_.Note(state_->Change(std::move(op), effect));
  }

  const std::shared_ptr<State> state_;
  const int actor_;
  const CrashNodeId node_;
  const std::string name_;
  internal::storage::FirstError first_error_;
};

class CrashDisk::Reader final : public ReadableFile {
 public:
  Reader(std::shared_ptr<State> state, int actor, CrashNodeId node, std::string path)
      : state_(std::move(state)), actor_(actor), node_(node), path_(std::move(path)) {
    size_bytes_ = state_->at(node_).content().size();
  }

  std::uint64_t size_bytes() const override { return size_bytes_; }
  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override {
    state_->Wait(actor_, internal::storage::LastComponent(path_));
    const std::lock_guard lock(state_->mutex);
    if (!internal::RangeFits(offset, out.size(), size_bytes_)) {
      return internal::MakeError(Code::kIncomplete, "the file ends before the range")
          .AtPath(path_)
          .AtOffset(size_bytes_);
    }
    const Bytes& content = state_->at(node_).content();
    std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return {};
  }
  bool is_direct() const override { return false; }

 private:
  const std::shared_ptr<State> state_;
  const int actor_;
  const CrashNodeId node_;
  const std::string path_;
  std::uint64_t size_bytes_ = 0;
};

Result<std::unique_ptr<WritableFile>> CrashDisk::OpenedDirectory::CreateExclusive(
    std::string_view name, CreateOptions) {
  SEALPOINT_RETURN_IF_ERROR(internal::storage::CheckName(path_, name));
  CrashNodeId made = 0;
  const Status status = state_->Change({.actor = actor_,
                                        .kind = CrashOpKind::kCreate,
                                        .directory = node_,
                                        .name = std::string(name)},
                                       [&](CrashOp& op) {
                                         if (state_->at(node_).is_removed)
                                           return ErrorAt("create", ENOENT, name);
                                         if (state_->at(node_).entries.contains(op.name))
                                           return ErrorAt("create", EEXIST, name);
                                         made = op.node = state_->Add({});
                                         state_->at(node_).entries.emplace(op.name, op.node);
                                         return Status();
                                       });
  SEALPOINT_RETURN_IF_ERROR(status);
  std::unique_ptr<WritableFile> file =
      std::make_unique<Writer>(state_, actor_, made, std::string(name));
  return file;
}

Result<std::unique_ptr<ReadableFile>> CrashDisk::OpenedDirectory::OpenForRead(std::string_view name,
                                                                              IoMode) const {
  state_->Wait(actor_, name);
  const std::lock_guard lock(state_->mutex);
  const auto& entries = state_->at(node_).entries;
  const auto found = entries.find(name);
  if (found == entries.end()) return ErrorAt("open", ENOENT, name);
  if (state_->at(found->second).is_directory) return ErrorAt("open", EISDIR, name);
  std::unique_ptr<ReadableFile> file =
      std::make_unique<Reader>(state_, actor_, found->second, JoinPath(path_, name));
  return file;
}

Result<CrashNodeId> CrashDisk::OpenedDirectory::FindSubdirectory(std::string_view operation,
                                                                 std::string_view name) const {
  const auto& entries = state_->at(node_).entries;
  const auto found = entries.find(name);
  if (found == entries.end()) return ErrorAt(operation, ENOENT, name);
  if (!state_->at(found->second).is_directory) return ErrorAt(operation, ENOTDIR, name);
  return found->second;
}

// As if all were read at once, by a server that has it in memory.
Result<Bytes> CrashDisk::OpenedDirectory::ReadFileIn(std::string_view subdirectory,
                                                     std::string_view name,
                                                     std::size_t size_max) const {
  state_->Wait(actor_, name);
  const std::lock_guard lock(state_->mutex);
  SEALPOINT_ASSIGN_OR_RETURN(const CrashNodeId folder, FindSubdirectory("open", subdirectory));
  const auto& entries = state_->at(folder).entries;
  const auto found = entries.find(name);
  if (found == entries.end()) return ErrorAt("open", ENOENT, JoinPath(subdirectory, name));
  if (state_->at(found->second).is_directory) {
    return ErrorAt("open", EISDIR, JoinPath(subdirectory, name));
  }
  const Bytes& content = state_->at(found->second).content();
  return Bytes(content.begin(),
               content.begin() + static_cast<std::ptrdiff_t>(std::min(content.size(), size_max)));
}

Result<std::unique_ptr<Directory>> CrashDisk::OpenedDirectory::OpenSubdirectory(
    std::string_view name) const {
  state_->Wait(actor_, name);
  const std::lock_guard lock(state_->mutex);
  SEALPOINT_ASSIGN_OR_RETURN(const CrashNodeId node, FindSubdirectory("open", name));
  std::unique_ptr<Directory> opened =
      std::make_unique<OpenedDirectory>(state_, actor_, node, JoinPath(path_, name));
  return opened;
}

Status CrashDisk::OpenedDirectory::RemoveSubdirectory(std::string_view name) {
  const Status removed =
      state_->Change({.actor = actor_,
                      .kind = CrashOpKind::kRemoveDirectory,
                      .directory = node_,
                      .name = std::string(name)},
                     [&](CrashOp& op) -> Status {
                       SEALPOINT_ASSIGN_OR_RETURN(op.node, FindSubdirectory("rmdir", name));
                       if (!state_->at(op.node).entries.empty())
                         return ErrorAt("rmdir", ENOTEMPTY, name);
                       state_->at(node_).entries.erase(op.name);
                       state_->at(op.node).is_removed = true;
                       return Status();
                     });
  return removed.ok() ? Sync() : removed;
}

Result<EntryInfo> CrashDisk::OpenedDirectory::Stat(std::string_view name) const {
  state_->Wait(actor_, name);
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->at(node_).entries.find(name);
  if (found == state_->at(node_).entries.end()) return ErrorAt("stat", ENOENT, name);
  return Describe(name, found->second);
}

Result<std::vector<EntryInfo>> CrashDisk::OpenedDirectory::List() const {
  state_->Wait(actor_, path_);
  const std::lock_guard lock(state_->mutex);
  std::vector<EntryInfo> entries;
  for (const auto& [name, node] : state_->at(node_).entries) {
    entries.push_back(Describe(name, node));
  }
  return entries;
}

Status CrashDisk::OpenedDirectory::Remove(std::string_view name) {
  return state_->Change({.actor = actor_,
                         .kind = CrashOpKind::kRemove,
                         .directory = node_,
                         .name = std::string(name)},
                        [&](CrashOp& op) {
                          auto& entries = state_->at(node_).entries;
                          const auto found = entries.find(name);
                          if (found == entries.end()) return ErrorAt("unlink", ENOENT, name);
                          op.node = found->second;
                          if (state_->at(op.node).is_directory)
                            return ErrorAt("unlink", EISDIR, name);
                          entries.erase(found);
                          return Status();
                        });
}

Status CrashDisk::OpenedDirectory::PublishExclusive(std::string_view from, std::string_view to,
                                                    PublishMethod method) {
  const bool renames = method == PublishMethod::kRenameNoReplace;
  CrashOp request{.actor = actor_,
                  .kind = renames ? CrashOpKind::kRename : CrashOpKind::kLink,
                  .directory = node_,
                  .name = std::string(to),
                  .from = std::string(from)};
  return state_->Change(std::move(request), [&](CrashOp& op) {
    auto& entries = state_->at(node_).entries;
    const auto source = entries.find(from);
    if (source == entries.end()) return ErrorAt("publish", ENOENT, to);
    const bool is_taken = entries.contains(op.name);
    if (is_taken && state_->options.publishes_exclusively) return ErrorAt("publish", EEXIST, to);
    op.node = source->second;
    if (renames) entries.erase(source);
    entries.insert_or_assign(op.name, op.node);
    return Status();
  });
}

Status CrashDisk::OpenedDirectory::LinkFrom(std::string_view directory, std::string_view name,
                                            std::uint64_t /*name_count_max*/) {
  CrashOp request{.actor = actor_,
                  .kind = CrashOpKind::kLink,
                  .directory = node_,
                  .name = std::string(name),
                  .from = JoinPath(directory, name)};
  return state_->Change(std::move(request), [&](CrashOp& op) -> Status {
    SEALPOINT_ASSIGN_OR_RETURN(const CrashNodeId from, state_->FindDirectory(directory));
    const auto source = state_->at(from).entries.find(name);
    if (source == state_->at(from).entries.end()) return ErrorAt("link", ENOENT, name);
    if (state_->at(node_).entries.contains(name)) return ErrorAt("link", EEXIST, name);
    op.node = source->second;
    state_->at(node_).entries.emplace(op.name, op.node);
    return Status();
  });
}

}  // namespace sealpoint::testing
