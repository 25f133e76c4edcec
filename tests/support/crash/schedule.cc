// SPDX-License-Identifier: Apache-2.0
#include "tests/support/crash/schedule.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

namespace sealpoint::testing {
namespace {

constexpr int kNobody = -1;

// One choice that was made: the actors that could have gone on, and the one that did.
struct Choice {
  std::vector<int> able{};
  int chosen = kNobody;
};

// Holds every actor before each operation until it is its turn. Whose turn it is decides the thread
// that comes to rest last, so that an actor that goes on costs no switch of threads.
class Turns {
 public:
  // `decide` gets the actors that are able, with no actor running; none at the end, when the answer
  // does not matter.
  using Decide = std::function<int(const std::vector<int>& able)>;
  Turns(std::size_t actors, Decide decide)
      : decide_(std::move(decide)),
        granted_(actors),
        waiting_(actors, 0),
        is_finished_(actors, false) {}

  void Wait(int actor) {
    std::unique_lock lock(mutex_);
    ++waiting_[At(actor)];
    GrantIfAtRest();
    granted_[At(actor)].wait(lock, [&] { return turn_ == actor; });
    turn_ = kNobody;
    --waiting_[At(actor)];
    GrantIfAtRest();  // another thread of this actor may wait
  }
  void Finish(int actor) {
    const std::lock_guard lock(mutex_);
    is_finished_[At(actor)] = true;
    GrantIfAtRest();
  }

 private:
  static std::size_t At(int actor) { return static_cast<std::size_t>(actor); }
  // Whether each actor waits or has finished.
  bool AllAreAtRest() const {
    if (turn_ != kNobody) return false;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (waiting_[i] == 0 && !is_finished_[i]) return false;
    }
    return true;
  }
  void GrantIfAtRest() {
    if (!AllAreAtRest()) return;
    std::vector<int> able;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (waiting_[i] > 0) able.push_back(static_cast<int>(i));
    }
    const int chosen = decide_(able);
    if (able.empty()) return;
    turn_ = chosen;
    granted_[At(turn_)].notify_one();
  }

  const Decide decide_;
  std::mutex mutex_;
  std::deque<std::condition_variable> granted_;  // by actor
  std::vector<int> waiting_;                     // threads of each actor
  std::vector<bool> is_finished_;
  int turn_ = kNobody;
};

using IsChoice = std::function<bool(std::string_view name)>;
// One of the actors that are able, given the one that ran last.
using Chooser = std::function<int(const std::vector<int>& able, int last)>;

bool Contains(const std::vector<int>& actors, int actor) {
  return std::find(actors.begin(), actors.end(), actor) != actors.end();
}

// Returns all choices.
std::vector<Choice> Play(const ScheduledWorld& world, const IsChoice& is_choice,
                         const Chooser& choose) {
  std::vector<Choice> choices;
  int current = kNobody;
  Turns turns(world.actors.size(), [&](const std::vector<int>& able) {
    if (world.at_rest) world.at_rest();
    if (able.empty()) return kNobody;
    current = choose(able, current);
    choices.push_back({able, current});
    return current;
  });
  world.disk.SetGate([&](int actor, std::string_view name) {
    if (!is_choice || is_choice(name)) turns.Wait(actor);
  });
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < world.actors.size(); ++i) {
    threads.emplace_back([&, actor = static_cast<int>(i)] {
      world.actors[static_cast<std::size_t>(actor)](actor);
      turns.Finish(actor);
    });
  }
  for (std::thread& thread : threads) thread.join();
  world.disk.SetGate(nullptr);
  return choices;
}

// Follows `prefix`, then lets the actor that ran last go on.
std::vector<Choice> PlayFrom(const std::vector<int>& prefix, const ScheduledWorld& world,
                             const IsChoice& is_choice) {
  std::size_t made = 0;
  return Play(world, is_choice, [&](const std::vector<int>& able, int last) {
    const std::size_t at = made++;
    if (at < prefix.size()) return prefix[at];
    return Contains(able, last) ? last : able.front();
  });
}

bool IsPreemption(const std::vector<Choice>& choices, std::size_t at, int chosen) {
  if (at == 0 || choices[at - 1].chosen == chosen) return false;
  return Contains(choices[at].able, choices[at - 1].chosen);
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
    goes_on = run(
        [&](const ScheduledWorld& world) { choices = PlayFrom(prefix, world, options.is_choice); });
    AddAlternatives(choices, prefix.size(), options.preemptions_max, prefixes);
  }
  return count;
}

void PlayAtRandom(const ScheduledWorld& world, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::uint64_t stay = 1 + random() % 16;  // operations of one actor in a row, on average
  Play(world, {}, [&](const std::vector<int>& able, int last) {
    if (Contains(able, last) && random() % stay != 0) return last;
    return able[random() % able.size()];
  });
}

}  // namespace sealpoint::testing
