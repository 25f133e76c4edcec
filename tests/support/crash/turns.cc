// SPDX-License-Identifier: Apache-2.0
#include "tests/support/crash/turns.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace sealpoint::testing {
namespace {

class Turns {
 public:
  Turns(const CrashDisk& disk, std::size_t actors, const std::vector<Turn>& turns)
      : disk_(disk), turns_(turns), is_finished_(actors, false) {}

  void Wait(int actor, std::string_view name) {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return at_ == turns_.size() || turns_[at_].actor == actor; });
      if (at_ == turns_.size() || !IsOver(turns_[at_], name)) return;
      Advance();
    }
  }
  void Finish(int actor) {
    const std::lock_guard lock(mutex_);
    is_finished_[static_cast<std::size_t>(actor)] = true;
    if (at_ < turns_.size() && turns_[at_].actor == actor) Advance();
  }

 private:
  bool IsOver(const Turn& turn, std::string_view name) const {
    if (!turn.before.empty()) return name.ends_with(turn.before) && !IsThere(name);
    if (turn.after.empty()) return false;
    const CrashHistory history = disk_.history();
    const std::string wanted = "rank " + std::to_string(turn.actor) + ": " + turn.after;
    return history.Find(wanted, turn.nth) < history.ops.size();
  }
  bool IsThere(std::string_view name) const {
    const CrashImage now = disk_.Now();
    return std::any_of(now.folders.begin(), now.folders.end(),
                       [&](const auto& one) { return one.second.files.contains(name); });
  }
  void Advance() {
    do {
      ++at_;
    } while (at_ < turns_.size() && is_finished_[static_cast<std::size_t>(turns_[at_].actor)]);
    changed_.notify_all();
  }

  const CrashDisk& disk_;
  const std::vector<Turn>& turns_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> is_finished_;
  std::size_t at_ = 0;
};

}  // namespace

void PlayTurns(CrashDisk& disk, const std::vector<CrashActor>& actors,
               const std::vector<Turn>& turns) {
  Turns order(disk, actors.size(), turns);
  disk.SetGate([&](int actor, std::string_view name) { order.Wait(actor, name); });
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < actors.size(); ++i) {
    threads.emplace_back([&, actor = static_cast<int>(i)] {
      actors[static_cast<std::size_t>(actor)](actor);
      order.Finish(actor);
    });
  }
  for (std::thread& thread : threads) thread.join();
  disk.SetGate(nullptr);
}

}  // namespace sealpoint::testing
