// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CRASH_TURNS_H_
#define SEALPOINT_TESTS_SUPPORT_CRASH_TURNS_H_

#include <string>
#include <vector>

#include "tests/support/crash/disk.h"
#include "tests/support/crash/schedule.h"

namespace sealpoint::testing {

// An actor works alone until it comes to where its turn ends: to its own end, if neither is said.
struct Turn {
  int actor = 0;
  // Behind the n-th operation of its own with this description, without the actor: "publish
  // COMMIT".
  std::string after{};
  int nth = 1;
  // Or before it makes, or looks for, a file that is not there and whose name ends like this.
  std::string before{};
};

// One order of the operations of actors that know nothing of each other; crash_schedule.h has all.
// Turns of an actor that came to its end are passed by. Each actor needs a last turn to its end.
void PlayTurns(CrashDisk& disk, const std::vector<CrashActor>& actors,
               const std::vector<Turn>& turns);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CRASH_TURNS_H_
