// SPDX-License-Identifier: Apache-2.0
#include "tests/support/crash/disk_state.h"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "lib/base/errors.h"
#include "lib/storage/path.h"

namespace sealpoint::testing {

CrashDisk::State::State(int actor_count, const CrashImage& start, CrashDiskOptions disk_options)
    : options(disk_options) {
  const auto actors = static_cast<std::size_t>(actor_count);
  history.actor_count = actor_count;
  clocks.assign(actors, std::vector<std::uint32_t>(actors, 0));
  collectives.assign(actors, 0);
  changes.assign(actors, 0);
  Add({.is_directory = true});
  history.is_bucket = start.is_bucket;
  std::map<std::string, CrashNodeId, std::less<>> folders{{"", 0}};
  for (const auto& [path, folder] : start.folders) {
    if (start.is_bucket) {
      folders.emplace(path, 0);
    } else if (!path.empty()) {
      const auto slash = path.rfind('/');
      const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
      const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
      const CrashNodeId made = Add({.is_directory = true});
      at(folders.at(parent)).entries.emplace(name, made);
      folders.emplace(path, made);
    }
    for (const auto& [name, content] : folder.files) {
      const CrashNodeId made = Add({.fixed = content});
      const bool is_key = start.is_bucket && !path.empty();
      at(folders.at(path)).entries.emplace(is_key ? path + "/" + name : name, made);
    }
  }
  for (const VolatileNode& node : nodes) {
    history.nodes.push_back(
        {.is_directory = node.is_directory, .content = node.fixed, .entries = node.entries});
  }
}

void CrashDisk::State::Wait(int actor, std::string_view name) const {
  if (gate) gate(actor, name);
}

Status CrashDisk::State::Change(CrashOp op, const std::function<Status(CrashOp&)>& effect) {
  Wait(op.actor, op.name);
  const std::lock_guard lock(mutex);
  return ChangeLocked(std::move(op), effect);
}

Status CrashDisk::State::ChangeLocked(CrashOp op, const std::function<Status(CrashOp&)>& effect) {
  const int nth = ++changes[static_cast<std::size_t>(op.actor)];
  const auto fault = std::find_if(faults.begin(), faults.end(), [&](const CrashFault& one) {
    return one.actor == op.actor && one.nth == nth;
  });
  const bool fails = fault != faults.end();
  if (!fails || (fault->takes_effect && !op.is_sync())) {
    const Status status = effect(op);
    if (!status.ok()) return status;
    Note(op);
  }
  return fails ? Status(Code::kIo, "injected").AtPath(op.name) : Status();
}

void CrashDisk::State::Note(CrashOp op) {
  auto& clock = clocks[static_cast<std::size_t>(op.actor)];
  ++clock[static_cast<std::size_t>(op.actor)];
  op.clock = clock;
  history.ops.push_back(std::move(op));
}

void CrashDisk::State::Join(const std::vector<std::uint32_t>& clock, int actor) {
  auto& mine = clocks[static_cast<std::size_t>(actor)];
  std::transform(clock.begin(), clock.end(), mine.begin(), mine.begin(),
                 [](std::uint32_t a, std::uint32_t b) { return std::max(a, b); });
}

CrashNodeId CrashDisk::State::Add(VolatileNode node) {
  nodes.push_back(std::move(node));
  return static_cast<CrashNodeId>(nodes.size()) - 1;
}

Result<CrashNodeId> CrashDisk::State::FindDirectory(std::string_view path) const {
  CrashNodeId node = 0;
  for (const std::string& level : internal::storage::PathPrefixes(path)) {
    const std::string_view name = internal::storage::LastComponent(level);
    if (name == ".") continue;
    const auto& entries = nodes[static_cast<std::size_t>(node)].entries;
    const auto found = entries.find(name);
    if (found == entries.end()) return internal::ErrnoError("open", ENOENT).AtPath(level);
    node = found->second;
    if (!nodes[static_cast<std::size_t>(node)].is_directory) {
      return internal::ErrnoError("open", ENOTDIR).AtPath(level);
    }
  }
  return node;
}

}  // namespace sealpoint::testing
