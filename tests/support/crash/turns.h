// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CRASH_TURNS_H_
#define SEALPOINT_TESTS_SUPPORT_CRASH_TURNS_H_

#include <string>
#include <vector>

#include "tests/support/crash/disk.h"
#include "tests/support/crash/schedule.h"

namespace sealpoint::testing {

// An actor works alone until its turn ends: at its own end, if neither member is set.
struct Turn {
  int actor = 0;
  // The turn ends after the actor's n-th operation with this description, which is given without
  // the actor: "publish COMMIT".
  std::string after{};
  int nth = 1;
  // Or it ends before the actor creates, or looks for, a file that is not there and whose name ends
  // like this.
  std::string before{};
};

// Runs actors that know nothing of each other in one given order; schedule.h tries all orders.
// Turns of an actor that has ended are skipped. Each actor needs a last turn that goes to its end.
void PlayTurns(CrashDisk& disk, const std::vector<CrashActor>& actors,
               const std::vector<Turn>& turns);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CRASH_TURNS_H_
