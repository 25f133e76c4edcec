// SPDX-License-Identifier: Apache-2.0
#include "tests/support/crash/cut.h"

#include <algorithm>
#include <set>

#include "lib/base/macros.h"

namespace sealpoint::testing {
namespace {

bool ChangesNames(const CrashOp& op) {
  switch (op.kind) {
    case CrashOpKind::kMakeDirectory:
    case CrashOpKind::kCreate:
    case CrashOpKind::kLink:
    case CrashOpKind::kRename:
    case CrashOpKind::kRemove:
    case CrashOpKind::kRemoveDirectory:
    case CrashOpKind::kPut:
      return true;
    default:
      return false;
  }
}

CrashNames EffectOf(const CrashOp& op) {
  const bool removes = op.kind == CrashOpKind::kRemove || op.kind == CrashOpKind::kRemoveDirectory;
  CrashNames effect{{{op.directory, op.name}, removes ? std::nullopt : std::optional(op.node)}};
  if (op.kind == CrashOpKind::kRename) effect[{op.directory, op.from}] = std::nullopt;
  return effect;
}

bool Covers(const CrashOp& sync, const CrashOp& op, SyncReach reach) {
  const bool is_write = op.kind == CrashOpKind::kWrite;
  if (is_write) {
    return sync.kind == CrashOpKind::kSyncFile && sync.node == op.node;
  }
  return ChangesNames(op) && sync.kind == CrashOpKind::kSyncDirectory &&
         sync.directory == op.directory &&
         (sync.actor == op.actor || reach == SyncReach::kEverybodys);
}

CrashNames StartNames(const CrashHistory& history) {
  CrashNames names;
  for (std::size_t i = 0; i < history.nodes.size(); ++i) {
    for (const auto& [name, node] : history.nodes[i].entries) {
      names[{static_cast<CrashNodeId>(i), name}] = node;
    }
  }
  return names;
}

void Apply(const CrashNames& effect, CrashNames& names) {
  for (const auto& [key, node] : effect) names.insert_or_assign(key, node);
}

}  // namespace

CrashTimeline::CrashTimeline(const CrashHistory& history, const CrashOptions& options)
    : history_(history), contents_(options.contents), covered_by_(history.ops.size()) {
  const auto& ops = history.ops;
  for (std::size_t s = 0; s < ops.size(); ++s) {
    const bool writes = ops[s].kind == CrashOpKind::kWrite || ops[s].kind == CrashOpKind::kPut;
    if (writes) writes_[ops[s].node].push_back(s);
    if (!ops[s].is_sync() || (options.is_lost && options.is_lost(ops[s]))) continue;
    for (std::size_t i = 0; i < s; ++i) {
      if (Covers(ops[s], ops[i], options.reach)) covered_by_[i].push_back(s);
    }
  }
}

bool CrashTimeline::IsIn(const CrashCut& cut, std::size_t op) const {
  const CrashOp& one = history_.ops[op];
  const auto actor = static_cast<std::size_t>(one.actor);
  return one.clock[actor] <= cut.done[actor];
}

bool CrashTimeline::IsDurable(const CrashCut& cut, std::size_t op) const {
  if (history_.is_bucket) return IsIn(cut, op);
  return std::any_of(covered_by_[op].begin(), covered_by_[op].end(),
                     [&](std::size_t sync) { return IsIn(cut, sync); });
}

CrashTimeline::Writes CrashTimeline::CountWrites(const CrashCut& cut, CrashNodeId node) const {
  Writes count;
  const auto found = writes_.find(node);
  if (found == writes_.end()) return count;
  for (const std::size_t write : found->second) {
    if (!IsIn(cut, write)) continue;
    ++count.done;
    if (IsDurable(cut, write)) ++count.durable;
  }
  return count;
}

FileStates CrashTimeline::StatesOf(const CrashCut& cut, CrashNodeId node) const {
  const auto id = static_cast<std::size_t>(node);
  Bytes start;
  if (id < history_.nodes.size()) start = history_.nodes[id].content->bytes;
  std::vector<const CrashOp*> durable;
  std::vector<const CrashOp*> pending;
  const auto found = writes_.find(node);
  if (found != writes_.end()) {
    for (const std::size_t write : found->second) {
      if (!IsIn(cut, write)) continue;
      (IsDurable(cut, write) ? durable : pending).push_back(&history_.ops[write]);
    }
  }
  const FileStates synced(std::move(start), durable);
  return FileStates(synced.Make(synced.whole_size(), {})->bytes, pending);
}

const std::vector<CrashContentPtr>* CrashTimeline::PendingStates(const CrashCut& cut,
                                                                 CrashNodeId node) {
  const Writes count = CountWrites(cut, node);
  if (count.durable == count.done) return nullptr;
  const auto [found, is_new] = states_.try_emplace({node, count.durable, count.done});
  if (is_new) found->second = StatesOf(cut, node).Enumerate(contents_);
  return &found->second;
}

CrashContentPtr CrashTimeline::WholeContent(const CrashCut& cut, CrashNodeId node) {
  const auto id = static_cast<std::size_t>(node);
  if (id < history_.nodes.size()) return history_.nodes[id].content;
  const auto [found, is_new] = wholes_.try_emplace({node, CountWrites(cut, node).done});
  if (is_new) {
    const FileStates states = StatesOf(cut, node);
    found->second = states.Make(states.whole_size(), {});
  }
  return found->second;
}

std::vector<std::size_t> PendingNames(const CrashTimeline& timeline, const CrashCut& cut) {
  const auto& ops = timeline.history().ops;
  std::vector<std::size_t> pending;
  std::set<CrashKey> completed;  // by a durable change further down
  for (std::size_t i = ops.size(); i-- > 0;) {
    if (!ChangesNames(ops[i]) || !timeline.IsIn(cut, i)) continue;
    const CrashNames effect = EffectOf(ops[i]);
    if (timeline.IsDurable(cut, i)) {
      for (const auto& [key, node] : effect) completed.insert(key);
    } else if (!std::all_of(effect.begin(), effect.end(),
                            [&](const auto& one) { return completed.contains(one.first); })) {
      pending.push_back(i);
    }
  }
  std::reverse(pending.begin(), pending.end());
  return pending;
}

CrashNames ApplyNames(const CrashTimeline& timeline, const CrashCut& cut,
                      const std::vector<std::size_t>& surviving) {
  const auto& ops = timeline.history().ops;
  CrashNames names = StartNames(timeline.history());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!ChangesNames(ops[i]) || !timeline.IsIn(cut, i)) continue;
    const bool survives =
        timeline.IsDurable(cut, i) || std::binary_search(surviving.begin(), surviving.end(), i);
    if (survives) Apply(EffectOf(ops[i]), names);
  }
  return names;
}

namespace {

// Pending changes that share a name, directly or through others, are one group.
std::vector<std::vector<std::size_t>> GroupByNames(const CrashHistory& history,
                                                   const std::vector<std::size_t>& pending) {
  std::vector<std::pair<std::set<CrashKey>, std::vector<std::size_t>>> groups;
  for (const std::size_t op : pending) {
    std::pair<std::set<CrashKey>, std::vector<std::size_t>> mine;
    for (const auto& [key, node] : EffectOf(history.ops[op])) mine.first.insert(key);
    for (auto group = groups.begin(); group != groups.end();) {
      const bool meets =
          std::any_of(mine.first.begin(), mine.first.end(),
                      [&](const CrashKey& key) { return group->first.contains(key); });
      if (!meets) {
        ++group;
        continue;
      }
      mine.first.merge(group->first);
      mine.second.insert(mine.second.end(), group->second.begin(), group->second.end());
      group = groups.erase(group);
    }
    mine.second.push_back(op);
    std::sort(mine.second.begin(), mine.second.end());
    groups.push_back(std::move(mine));
  }
  std::vector<std::vector<std::size_t>> out;
  for (auto& [keys, ops] : groups) out.push_back(std::move(ops));
  return out;
}

}  // namespace

CrashNameStates NameStatesOf(const CrashTimeline& timeline, const CrashCut& cut) {
  constexpr std::size_t kGroupMax = 16;  // changes of one name between two syncs
  const std::vector<std::size_t> pending = PendingNames(timeline, cut);
  CrashNameStates states{.certain = ApplyNames(timeline, cut, {})};
  for (const auto& group : GroupByNames(timeline.history(), pending)) {
    SEALPOINT_CHECK(group.size() <= kGroupMax);
    std::set<CrashKey> keys;
    for (const std::size_t op : group) {
      for (const auto& [key, node] : EffectOf(timeline.history().ops[op])) keys.insert(key);
    }
    std::set<CrashNames> alternatives;
    for (std::size_t mask = 0; mask < (std::size_t{1} << group.size()); ++mask) {
      std::vector<std::size_t> surviving;
      for (std::size_t i = 0; i < group.size(); ++i) {
        if ((mask >> i & 1) != 0) surviving.push_back(group[i]);
      }
      CrashNames outcome;
      const CrashNames names = ApplyNames(timeline, cut, surviving);
      for (const CrashKey& key : keys) {
        const auto found = names.find(key);
        outcome[key] = found == names.end() ? std::nullopt : found->second;
      }
      alternatives.insert(std::move(outcome));
    }
    states.groups.emplace_back(alternatives.begin(), alternatives.end());
  }
  return states;
}

namespace {

void AddFolder(const CrashNames& names, const std::set<CrashNodeId>& directories, CrashNodeId id,
               const std::string& path, CrashTree& tree) {
  tree.folders.push_back(path);
  tree.folders_hash += HashOf(AsBytes(path));
  const std::uint64_t path_hash = HashOf(AsBytes(path));
  for (auto entry = names.lower_bound({id, ""}); entry != names.end() && entry->first.first == id;
       ++entry) {
    const auto& [key, node] = *entry;
    if (!node) continue;
    if (directories.contains(*node)) {
      AddFolder(names, directories, *node, path.empty() ? key.second : path + "/" + key.second,
                tree);
    } else {
      tree.files.push_back({.folder = path,
                            .name = key.second,
                            .node = *node,
                            .name_hash = MixHashes(path_hash, HashOf(AsBytes(key.second)))});
    }
  }
}

// The keys of an object store, with the folders that they stand for.
CrashTree TreeOfKeys(const CrashNames& names) {
  CrashImage folders;
  std::vector<CrashFileRef> files;
  for (const auto& [key, node] : names) {
    if (!node) continue;
    folders.Add(key.second, nullptr);
    const auto slash = key.second.rfind('/') + 1;  // 0: there is none
    const std::string folder = key.second.substr(0, slash == 0 ? 0 : slash - 1);
    const std::string name = key.second.substr(slash);
    files.push_back({.folder = folder,
                     .name = name,
                     .node = *node,
                     .name_hash = MixHashes(HashOf(AsBytes(folder)), HashOf(AsBytes(name)))});
  }
  CrashTree tree{.files = std::move(files)};
  for (const auto& [path, folder] : folders.folders) {
    tree.folders.push_back(path);
    tree.folders_hash += HashOf(AsBytes(path));
  }
  return tree;
}

}  // namespace

CrashTree TreeOf(const CrashHistory& history, const CrashNames& names) {
  if (history.is_bucket) return TreeOfKeys(names);
  std::set<CrashNodeId> directories;
  for (std::size_t i = 0; i < history.nodes.size(); ++i) {
    if (history.nodes[i].is_directory) directories.insert(static_cast<CrashNodeId>(i));
  }
  for (const CrashOp& op : history.ops) {
    if (op.kind == CrashOpKind::kMakeDirectory) directories.insert(op.node);
  }
  CrashTree tree;
  AddFolder(names, directories, 0, "", tree);
  return tree;
}

}  // namespace sealpoint::testing
