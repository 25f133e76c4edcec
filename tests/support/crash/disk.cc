// SPDX-License-Identifier: Apache-2.0
#include "tests/support/crash/disk.h"

#include <algorithm>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/path.h"
#include "sealpoint/commit.h"
#include "tests/support/crash/disk_directory.h"
#include "tests/support/crash/disk_state.h"

namespace sealpoint::testing {

class CrashDisk::Mount final : public Storage {
 public:
  Mount(std::shared_ptr<State> state, int actor) : state_(std::move(state)), actor_(actor) {}

  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override {
    state_->Wait(actor_, path);
    const std::lock_guard lock(state_->mutex);
    SEALPOINT_ASSIGN_OR_RETURN(const CrashNodeId node, state_->FindDirectory(path));
    std::unique_ptr<Directory> opened =
        std::make_unique<OpenedDirectory>(state_, actor_, node, path);
    return opened;
  }
  Status CreateDirectories(std::string_view path) override;

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
  state_->Wait(actor_, path);
  const std::lock_guard lock(state_->mutex);
  CrashNodeId parent = 0;
  for (const std::string& level : internal::storage::PathPrefixes(path)) {
    const std::string name(internal::storage::LastComponent(level));
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
    SEALPOINT_RETURN_IF_ERROR(SyncLocked(parent, internal::storage::ParentPath(level)));
    parent = made;
  }
  return Status();
}

CrashDisk::CrashDisk(int actor_count, const CrashImage& start, CrashDiskOptions options)
    : state_(std::make_shared<State>(actor_count, start, options)) {
  for (int actor = 0; actor < actor_count; ++actor) {
    views_.push_back(start.is_bucket ? ViewOfBucket(state_, actor)
                                     : std::make_shared<Mount>(state_, actor));
  }
}

CrashDisk::~CrashDisk() = default;

int CrashDisk::actor_count() const { return state_->history.actor_count; }

std::shared_ptr<Storage> CrashDisk::View(int actor) const {
  return views_[static_cast<std::size_t>(actor)];
}

void CrashDisk::SetView(int actor, std::shared_ptr<Storage> view) {
  views_[static_cast<std::size_t>(actor)] = std::move(view);
}

void CrashDisk::Tell(int actor, const Status& outcome) {
  if (OutcomeIsUnknown(outcome)) return;
  const std::lock_guard lock(state_->mutex);
  state_->Note({.actor = actor,
                .kind = CrashOpKind::kReported,
                .name = std::string(outcome.ok() ? kReportedSuccess : kReportedFailure)});
}

std::size_t CrashDisk::op_count() const {
  const std::lock_guard lock(state_->mutex);
  return state_->history.ops.size();
}

std::optional<bool> CrashDisk::told_success(int actor) const {
  const std::lock_guard lock(state_->mutex);
  const auto& ops = state_->history.ops;
  const auto reported = std::find_if(ops.rbegin(), ops.rend(), [&](const CrashOp& op) {
    return op.actor == actor && op.kind == CrashOpKind::kReported;
  });
  if (reported == ops.rend()) return std::nullopt;
  return reported->name == kReportedSuccess;
}

CrashHistory CrashDisk::history() const {
  const std::lock_guard lock(state_->mutex);
  return state_->history;
}

void CrashDisk::Fail(CrashFault fault) {
  const std::lock_guard lock(state_->mutex);
  state_->faults.push_back(fault);
}

void CrashDisk::SetGate(CrashGate gate) {
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
  CrashImage image{.is_bucket = state_->history.is_bucket};
  if (image.is_bucket) {
    for (const auto& [key, content] : FolderOf(state_->nodes, state_->nodes[0]).files) {
      image.Add(key, content);
    }
    return image;
  }
  AddFolders(state_->nodes, 0, "", image);
  return image;
}

std::shared_ptr<Storage> StorageOf(const CrashImage& image) { return CrashDisk(1, image).View(0); }

}  // namespace sealpoint::testing
