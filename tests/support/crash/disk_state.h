// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CRASH_DISK_STATE_H_
#define SEALPOINT_TESTS_SUPPORT_CRASH_DISK_STATE_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/crash/disk.h"

namespace sealpoint::testing {

// A file or directory as programs see it.
struct VolatileNode {
  bool is_directory = false;
  bool is_removed = false;  // of a directory
  CrashContentPtr fixed{};  // the content of a file of the image, which is not written; else null
  Bytes written{};
  std::map<std::string, CrashNodeId, std::less<>> entries{};

  const Bytes& content() const { return fixed ? fixed->bytes : written; }
};

// The state that the views of a disk share. Everything but the gate is guarded by `mutex`.
struct CrashDisk::State {
  State(int actor_count, const CrashImage& start, CrashDiskOptions disk_options);

  const CrashDiskOptions options;
  mutable std::mutex mutex;
  CrashGate gate;
  std::vector<VolatileNode> nodes;               // 0 is the root
  std::map<std::uint64_t, std::string> uploads;  // of an object store: keys of the unfinished ones
  std::uint64_t upload_count = 0;                // begun so far
  CrashHistory history;
  std::vector<std::vector<std::uint32_t>> clocks;  // of each actor, now
  // By the number of the collective: the clock of each actor when it entered.
  std::vector<std::vector<std::vector<std::uint32_t>>> entered;
  std::vector<std::size_t> collectives;  // entered by each actor so far
  std::vector<CrashFault> faults;
  std::vector<int> changes;  // by actor

  void Wait(int actor, std::string_view name) const;
  // Waits at the gate, runs `effect`, which applies and completes the operation, unless a fault
  // prevents it, and records it in the history.
  Status Change(CrashOp op, const std::function<Status(CrashOp&)>& effect);
  // As Change, with the mutex held and the gate passed.
  Status ChangeLocked(CrashOp op, const std::function<Status(CrashOp&)>& effect);
  void Note(CrashOp op);
  void Join(const std::vector<std::uint32_t>& clock, int actor);

  CrashNodeId Add(VolatileNode node);
  VolatileNode& at(CrashNodeId node) { return nodes[static_cast<std::size_t>(node)]; }
  // Errors: NotFound, Io (a file is there).
  Result<CrashNodeId> FindDirectory(std::string_view path) const;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CRASH_DISK_STATE_H_
