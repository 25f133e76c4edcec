// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CRASH_SCHEDULE_H_
#define SEALPOINT_TESTS_SUPPORT_CRASH_SCHEDULE_H_

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "tests/support/crash/disk.h"

// Runs actors that know nothing of each other, one operation at a time, in every order.

namespace sealpoint::testing {

// The program of an actor. It runs on a thread of its own.
using CrashActor = std::function<void(int actor)>;

struct ScheduleOptions {
  // The largest number of times that an actor that could go on is made to wait for another. The
  // search is complete for the schedules with at most so many preemptions.
  int preemptions_max = 2;
  // The operations before which there is a choice, by name (CrashGate); empty: all. Operations
  // that are left out must not concern another actor.
  std::function<bool(std::string_view name)> is_choice{};
};

// The world of one schedule: a disk with actors, and the checks on it.
struct ScheduledWorld {
  CrashDisk& disk;
  std::vector<CrashActor> actors{};
  std::function<void()> at_rest{};  // before each operation and at the end; no actor runs
};

using SchedulePlayer = std::function<void(const ScheduledWorld&)>;

// Calls `run` once per schedule, until it returns false. `run` makes a new world and passes it to
// the player that it is given, which runs the actors to their end in the next order. Returns the
// number of schedules.
std::uint64_t ForEachSchedule(const ScheduleOptions& options,
                              const std::function<bool(const SchedulePlayer& play)>& run);

// Runs the actors to their end once, in an order that is drawn from the seed.
void PlayAtRandom(const ScheduledWorld& world, std::uint64_t seed);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CRASH_SCHEDULE_H_
