// SPDX-License-Identifier: Apache-2.0
#include "tests/support/crash_disk.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/first_error.h"
#include "lib/storage/path.h"
#include "sealpoint/commit.h"
#include "tests/support/crash_disk_state.h"

namespace sealpoint::testing {

using internal::ErrnoError;

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
  internal::FirstError first_error_;
};

class CrashDisk::Reader final : public ReadableFile {
 public:
  Reader(std::shared_ptr<State> state, int actor, CrashNodeId node, std::string path)
      : state_(std::move(state)), actor_(actor), node_(node), path_(std::move(path)) {
    size_bytes_ = state_->at(node_).content().size();
  }

  std::uint64_t size_bytes() const override { return size_bytes_; }
  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override {
    state_->Wait(actor_);
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

class CrashDisk::OpenedDirectory final : public Directory {
 public:
  OpenedDirectory(std::shared_ptr<State> state, int actor, CrashNodeId node, std::string_view path)
      : state_(std::move(state)), actor_(actor), node_(node), path_(path) {}

  const std::string& path() const override { return path_; }
  Result<std::unique_ptr<WritableFile>> CreateExclusive(std::string_view name, IoMode) override;
  Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name, IoMode) const override;
  Result<EntryInfo> Stat(std::string_view name) const override;
  Result<std::vector<EntryInfo>> List() const override;
  Status Remove(std::string_view name) override;
  Status PublishExclusive(std::string_view from, std::string_view to, PublishMethod) override;
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
  Status ErrorAt(std::string_view operation, int number, std::string_view name) const {
    return ErrnoError(operation, number).AtPath(JoinPath(path_, name));
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

Result<std::unique_ptr<WritableFile>> CrashDisk::OpenedDirectory::CreateExclusive(
    std::string_view name, IoMode) {
  SEALPOINT_RETURN_IF_ERROR(internal::CheckName(path_, name));
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
  state_->Wait(actor_);
  const std::lock_guard lock(state_->mutex);
  const auto& entries = state_->at(node_).entries;
  const auto found = entries.find(name);
  if (found == entries.end()) return ErrorAt("open", ENOENT, name);
  if (state_->at(found->second).is_directory) return ErrorAt("open", EISDIR, name);
  std::unique_ptr<ReadableFile> file =
      std::make_unique<Reader>(state_, actor_, found->second, JoinPath(path_, name));
  return file;
}

Result<EntryInfo> CrashDisk::OpenedDirectory::Stat(std::string_view name) const {
  state_->Wait(actor_);
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->at(node_).entries.find(name);
  if (found == state_->at(node_).entries.end()) return ErrorAt("stat", ENOENT, name);
  return Describe(name, found->second);
}

Result<std::vector<EntryInfo>> CrashDisk::OpenedDirectory::List() const {
  state_->Wait(actor_);
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

class CrashDisk::Mount final : public Storage {
 public:
  Mount(std::shared_ptr<State> state, int actor) : state_(std::move(state)), actor_(actor) {}

  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override {
    state_->Wait(actor_);
    const std::lock_guard lock(state_->mutex);
    SEALPOINT_ASSIGN_OR_RETURN(const CrashNodeId node, state_->FindDirectory(path));
    std::unique_ptr<Directory> opened =
        std::make_unique<OpenedDirectory>(state_, actor_, node, path);
    return opened;
  }
  Status CreateDirectories(std::string_view path) override;
  Status RemoveDirectory(std::string_view path) override;

 private:
  Status SyncLocked(CrashNodeId node, std::string path) {
    return state_->ChangeLocked({.actor = actor_,
                                 .kind = CrashOpKind::kSyncDirectory,
                                 .directory = node,
                                 .node = node,
                                 .name = std::move(path)},
                                [](CrashOp&) { return Status(); });
  }

  const std::shared_ptr<State> state_;
  const int actor_;
};

Status CrashDisk::Mount::CreateDirectories(std::string_view path) {
  state_->Wait(actor_);
  const std::lock_guard lock(state_->mutex);
  CrashNodeId parent = 0;
  for (const std::string& level : internal::PathPrefixes(path)) {
    const std::string name(internal::LastComponent(level));
    const auto found = state_->at(parent).entries.find(name);
    if (found != state_->at(parent).entries.end()) {
      parent = found->second;
      continue;
    }
    CrashNodeId made = 0;
    CrashOp request{
        .actor = actor_, .kind = CrashOpKind::kMakeDirectory, .directory = parent, .name = name};
    SEALPOINT_RETURN_IF_ERROR(state_->ChangeLocked(std::move(request), [&](CrashOp& op) {
      made = op.node = state_->Add({.is_directory = true});
      state_->at(parent).entries.emplace(op.name, op.node);
      return Status();
    }));
    SEALPOINT_RETURN_IF_ERROR(SyncLocked(parent, internal::ParentPath(level)));
    parent = made;
  }
  return Status();
}

Status CrashDisk::Mount::RemoveDirectory(std::string_view path) {
  state_->Wait(actor_);
  const std::lock_guard lock(state_->mutex);
  SEALPOINT_ASSIGN_OR_RETURN(const CrashNodeId node, state_->FindDirectory(path));
  const std::string parent_path = internal::ParentPath(path);
  SEALPOINT_ASSIGN_OR_RETURN(const CrashNodeId parent, state_->FindDirectory(parent_path));
  CrashOp request{.actor = actor_,
                  .kind = CrashOpKind::kRemoveDirectory,
                  .directory = parent,
                  .node = node,
                  .name = std::string(internal::LastComponent(path))};
  SEALPOINT_RETURN_IF_ERROR(state_->ChangeLocked(std::move(request), [&](CrashOp& op) {
    if (!state_->at(node).entries.empty()) return ErrnoError("rmdir", ENOTEMPTY).AtPath(path);
    state_->at(parent).entries.erase(op.name);
    state_->at(node).is_removed = true;
    return Status();
  }));
  return SyncLocked(parent, parent_path);
}

CrashDisk::CrashDisk(int actor_count, const CrashImage& start, CrashDiskOptions options)
    : state_(std::make_shared<State>(actor_count, start, options)) {}

CrashDisk::~CrashDisk() = default;

int CrashDisk::actor_count() const { return state_->history.actor_count; }

std::shared_ptr<Storage> CrashDisk::View(int actor) const {
  return std::make_shared<Mount>(state_, actor);
}

void CrashDisk::Tell(int actor, const Status& outcome) {
  if (OutcomeIsUnknown(outcome)) return;
  const std::lock_guard lock(state_->mutex);
  state_->Note({.actor = actor,
                .kind = CrashOpKind::kTold,
                .name = std::string(outcome.ok() ? kToldSuccess : kToldFailure)});
}

CrashHistory CrashDisk::history() const {
  const std::lock_guard lock(state_->mutex);
  return state_->history;
}

void CrashDisk::Fail(CrashFault fault) {
  const std::lock_guard lock(state_->mutex);
  state_->faults.push_back(fault);
}

void CrashDisk::SetGate(std::function<void(int actor)> gate) {
  const std::lock_guard lock(state_->mutex);
  state_->gate = std::move(gate);
}

int CrashDisk::change_count(int actor) const {
  const std::lock_guard lock(state_->mutex);
  return state_->changes[static_cast<std::size_t>(actor)];
}

void CrashDisk::PutBefore(int from, int to) {
  const std::lock_guard lock(state_->mutex);
  const auto source = state_->clocks[static_cast<std::size_t>(from)];
  state_->Join(source, to);
}

std::size_t CrashDisk::EnterCollective(int actor) {
  const std::lock_guard lock(state_->mutex);
  const auto mine = static_cast<std::size_t>(actor);
  const std::size_t number = state_->collectives[mine]++;
  if (state_->entered.size() <= number) {
    state_->entered.resize(number + 1,
                           std::vector<std::vector<std::uint32_t>>(state_->clocks.size()));
  }
  state_->entered[number][mine] = state_->clocks[mine];
  return number;
}

void CrashDisk::LeaveCollective(int actor, std::size_t collective,
                                const std::vector<int>& sources) {
  const std::lock_guard lock(state_->mutex);
  for (const int source : sources) {
    state_->Join(state_->entered[collective][static_cast<std::size_t>(source)], actor);
  }
}

namespace {

CrashFolder FolderOf(const std::vector<VolatileNode>& nodes, const VolatileNode& directory) {
  CrashFolder folder;
  for (const auto& [name, id] : directory.entries) {
    const VolatileNode& node = nodes[static_cast<std::size_t>(id)];
    if (node.is_directory) continue;
    folder.files[name] = node.fixed ? node.fixed : std::make_shared<CrashContent>(node.written);
  }
  return folder;
}

void AddFolders(const std::vector<VolatileNode>& nodes, CrashNodeId id, const std::string& path,
                CrashImage& image) {
  const VolatileNode& directory = nodes[static_cast<std::size_t>(id)];
  image.folders[path] = FolderOf(nodes, directory);
  for (const auto& [name, child] : directory.entries) {
    if (!nodes[static_cast<std::size_t>(child)].is_directory) continue;
    AddFolders(nodes, child, path.empty() ? name : path + "/" + name, image);
  }
}

}  // namespace

CrashImage CrashDisk::Now() const {
  const std::lock_guard lock(state_->mutex);
  CrashImage image;
  AddFolders(state_->nodes, 0, "", image);
  return image;
}

std::shared_ptr<Storage> StorageOf(const CrashImage& image) { return CrashDisk(1, image).View(0); }

}  // namespace sealpoint::testing
