// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "lib/format/constants.h"
#include "tests/crash/counterexample_play.h"

namespace sealpoint::testing {

Stage::Stage(int actors, const CrashImage& start, CrashDiskOptions options)
    : disk_(actors, start, options) {
  for (int actor = 0; actor < actors; ++actor) {
    honest_.push_back(disk_.View(actor));
    storages_.push_back(std::make_shared<FailingStorage>(honest_.back()));
    storages_.back()->SetHook(
        [this, actor](StorageOp op, std::string_view name) { Meet(actor, op, name); });
    disk_.SetView(actor, storages_.back());
  }
}

void Stage::Before(int actor, StorageOp op, std::string part, int nth,
                   std::function<void()> action) {
  hooks_.push_back({actor, op, std::move(part), nth, std::move(action)});
}

// Only the actor's own thread counts its hooks down.
void Stage::Meet(int actor, StorageOp op, std::string_view name) {
  for (Hook& hook : hooks_) {
    if (hook.actor != actor || hook.op != op || name.find(hook.part) == name.npos) continue;
    if (--hook.left == 0) hook.action();
  }
}

void Stage::HideMarker(int actor) {
  Before(actor, StorageOp::kPublish, "", 1, [this, actor] {
    storage(actor).Fail({.op = StorageOp::kOpenForRead,
                         .name = "COMMIT",
                         .nth = 0,
                         .error = {Code::kNotFound, ""}});
  });
}

void Stage::ShowOwnMarker(int actor) {
  Before(actor, StorageOp::kPublish, "", 1, [this, actor] {
    const CrashHistory history = disk_.history();
    const auto made = std::find_if(history.ops.rbegin(), history.ops.rend(), [&](const auto& op) {
      return op.actor == actor && op.kind == CrashOpKind::kWrite && op.name.ends_with(".commit");
    });
    storage(actor).SetReadHook(
        [own = made->data](std::string_view name, std::uint64_t offset, MutableByteSpan out) {
          if (name != internal::format::kMarkerName) return;
          std::copy_n(own.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
        });
  });
}

void Stage::PublishLate(int actor) {
  static_cast<void>(honest(actor).OpenDirectory(""));  // waits for the actor's turn
  for (const auto& [path, folder] : disk_.Now().folders) {
    for (const auto& [name, content] : folder.files) {
      if (!name.ends_with(".commit")) continue;
      static_cast<void>(honest(actor).OpenDirectory(path).value()->PublishExclusive(
          name, internal::format::kMarkerName, PublishMethod::kLink));
    }
  }
}

void Stage::RemoveOwnBlobs(int actor) {
  const CrashHistory history = disk_.history();
  for (const auto& [path, folder] : disk_.Now().folders) {
    for (const CrashOp& op : history.ops) {
      const bool is_own = op.actor == actor && op.kind == CrashOpKind::kCreate &&
                          op.name.ends_with(".blob") && folder.files.contains(op.name);
      if (is_own) {
        static_cast<void>(honest(actor).OpenDirectory(path).value()->Remove(op.name));
      }
    }
  }
}

void Stage::RemoveFiles(int actor, const std::string& directory) {
  const auto opened = honest(actor).OpenDirectory(directory).value();
  for (const EntryInfo& entry : opened->List().value()) {
    if (entry.name != internal::format::kMarkerName) static_cast<void>(opened->Remove(entry.name));
  }
}

Played Stage::Finish(std::vector<Status> results, std::vector<std::uint64_t> steps) {
  return {.history = disk_.history(),
          .end = disk_.Now(),
          .results = std::move(results),
          .steps = std::move(steps)};
}

StorageFault Lie(StorageOp op, std::string name, int nth) {
  return {.op = op, .name = std::move(name), .nth = nth, .is_lie = true};
}

StorageFault Error(StorageOp op, std::string name, int nth, Code code) {
  return {.op = op, .name = std::move(name), .nth = nth, .error = {code, "injected"}};
}

StorageFault LostReply(StorageOp op, std::string name, Code code) {
  return {.op = op, .name = std::move(name), .error = {code, "injected"}, .takes_effect = true};
}

std::function<bool(const CrashOp&)> DroppingOf(const CrashHistory& history,
                                               const std::vector<NamedSync>& syncs) {
  using Key = std::pair<int, std::uint32_t>;  // an actor and the number of its operation
  const auto key_of = [](const CrashOp& op) {
    return Key(op.actor, op.clock[static_cast<std::size_t>(op.actor)]);
  };
  std::set<Key> dropped;
  for (const NamedSync& sync : syncs) {
    int nth = 0;
    for (const CrashOp& op : history.ops) {
      if (op.Describe() != sync.description) continue;
      ++nth;
      if (sync.nth == 0 || sync.nth == nth) dropped.insert(key_of(op));
    }
  }
  return [dropped, key_of](const CrashOp& op) { return dropped.contains(key_of(op)); };
}

}  // namespace sealpoint::testing
