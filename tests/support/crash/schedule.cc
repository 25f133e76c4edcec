// SPDX-License-Identifier: Apache-2.0
#include "tests/support/crash/schedule.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace sealpoint::testing {
namespace {

constexpr int kNobody = -1;

// One choice that was made: the actors that could have gone on, and the one that did.
struct Choice {
  std::vector<int> able{};
  int chosen = kNobody;
};

// Holds every actor before each operation until it is its turn.
class Turns {
 public:
  explicit Turns(std::size_t actors) : waiting_(actors, 0), is_finished_(actors, false) {}

  void Wait(int actor) {
    std::unique_lock lock(mutex_);
    ++waiting_[At(actor)];
    changed_.notify_all();
    changed_.wait(lock, [&] { return turn_ == actor; });
    turn_ = kNobody;
    --waiting_[At(actor)];
    changed_.notify_all();
  }
  void Finish(int actor) {
    const std::lock_guard lock(mutex_);
    is_finished_[At(actor)] = true;
    changed_.notify_all();
  }
  // Waits until each actor waits or has finished. Returns those that wait.
  std::vector<int> WhoIsAble() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == kNobody && AllAreAtRest(); });
    std::vector<int> able;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (waiting_[i] > 0) able.push_back(static_cast<int>(i));
    }
    return able;
  }
  void Grant(int actor) {
    const std::lock_guard lock(mutex_);
    turn_ = actor;
    changed_.notify_all();
  }

 private:
  static std::size_t At(int actor) { return static_cast<std::size_t>(actor); }
  bool AllAreAtRest() const {
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (waiting_[i] == 0 && !is_finished_[i]) return false;
    }
    return true;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> waiting_;  // threads of each actor
  std::vector<bool> is_finished_;
  int turn_ = kNobody;
};

// Follows `prefix`, then lets the actor that ran last go on. Returns all choices.
std::vector<Choice> Play(const ScheduledWorld& world, const ScheduleOptions& options,
                         const std::vector<int>& prefix) {
  Turns turns(world.actors.size());
  world.disk.SetGate([&](int actor, std::string_view name) {
    if (!options.is_choice || options.is_choice(name)) turns.Wait(actor);
  });
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < world.actors.size(); ++i) {
    threads.emplace_back([&, actor = static_cast<int>(i)] {
      world.actors[static_cast<std::size_t>(actor)](actor);
      turns.Finish(actor);
    });
  }
  std::vector<Choice> choices;
  int current = kNobody;
  for (;;) {
    Choice choice{.able = turns.WhoIsAble()};
    if (world.at_rest) world.at_rest();
    if (choice.able.empty()) break;
    const bool goes_on =
        std::find(choice.able.begin(), choice.able.end(), current) != choice.able.end();
    choice.chosen = choices.size() < prefix.size() ? prefix[choices.size()]
                    : goes_on                      ? current
                                                   : choice.able.front();
    current = choice.chosen;
    choices.push_back(choice);
    turns.Grant(current);
  }
  for (std::thread& thread : threads) thread.join();
  world.disk.SetGate(nullptr);
  return choices;
}

bool IsPreemption(const std::vector<Choice>& choices, std::size_t at, int chosen) {
  if (at == 0 || choices[at - 1].chosen == chosen) return false;
  const auto& able = choices[at].able;
  return std::find(able.begin(), able.end(), choices[at - 1].chosen) != able.end();
}

// Each other choice that was possible after the prefix begins another schedule.
void AddAlternatives(const std::vector<Choice>& choices, std::size_t prefix_size,
                     int preemptions_max, std::vector<std::vector<int>>& prefixes) {
  std::vector<int> path;
  int preemptions = 0;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    for (const int other : choices[i].able) {
      const bool is_new = i >= prefix_size && other != choices[i].chosen;
      const int cost = IsPreemption(choices, i, other) ? 1 : 0;
      if (!is_new || preemptions + cost > preemptions_max) continue;
      prefixes.push_back(path);
      prefixes.back().push_back(other);
    }
    if (IsPreemption(choices, i, choices[i].chosen)) ++preemptions;
    path.push_back(choices[i].chosen);
  }
}

}  // namespace

std::uint64_t ForEachSchedule(const ScheduleOptions& options,
                              const std::function<bool(const SchedulePlayer& play)>& run) {
  std::uint64_t count = 0;
  std::vector<std::vector<int>> prefixes{{}};
  for (bool goes_on = true; goes_on && !prefixes.empty(); ++count) {
    const std::vector<int> prefix = std::move(prefixes.back());
    prefixes.pop_back();
    std::vector<Choice> choices;
    goes_on = run([&](const ScheduledWorld& world) { choices = Play(world, options, prefix); });
    AddAlternatives(choices, prefix.size(), options.preemptions_max, prefixes);
  }
  return count;
}

}  // namespace sealpoint::testing
