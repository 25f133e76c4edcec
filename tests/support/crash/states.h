// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CRASH_STATES_H_
#define SEALPOINT_TESTS_SUPPORT_CRASH_STATES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/crash/history.h"
#include "tests/support/crash/image.h"

// Enumerates all states that may be found after a power cut, from a history.
//
// A *cut* says how far each actor has come: a number of operations per actor such that whatever
// happened before one of them is in the cut as well. All cuts together are a crash before and after
// every operation of every actor, in every order in which the actors could have run.
//
// For a cut, the *names* are enumerated completely: each name that has changed and was not synced
// is as it was, or as any of the changes left it; the two names of a rename change together. The
// *contents* of the unsynced files are enumerated within bounds (CrashContents).

namespace sealpoint::testing {

// The states of the data of an unsynced file that are enumerated. Each value includes those before.
enum class CrashContents : std::uint8_t {
  // Nothing survived; all did; all zeros; all garbage.
  kUniform,
  // And: without its first or its last sector; only the first half, with and without the length.
  kFew,
  // And: each prefix of sectors, with the short and with the full length; each sector alone missing
  // (zeros), alone garbage, and alone there.
  kEachSector,
};

// Whose effects the sync of a directory makes durable.
enum class SyncReach : std::uint8_t {
  kOwn,         // those of the actor itself: many machines
  kEverybodys,  // those of all actors so far, in the order of the run: one machine
};

struct CrashOptions {
  CrashContents contents = CrashContents::kEachSector;
  SyncReach reach = SyncReach::kOwn;
  // Syncs that report success and do nothing.
  std::function<bool(const CrashOp&)> is_lost{};
  // Only cuts of the order of the run, for actors that see each other through the disk alone.
  bool only_prefixes = false;
};

struct CrashCut {
  std::vector<std::uint32_t> done{};  // operations of each actor
  int success_count = 0;              // actors to which success was reported
  int failure_count = 0;              // and a failure whose outcome is known
  const CrashOp* last = nullptr;      // the last one in the order of the run; null: none
};

struct CrashCounts {
  std::uint64_t points = 0;    // cuts
  std::uint64_t states = 0;    // combinations of names and contents over all cuts
  std::uint64_t distinct = 0;  // images that differ in a byte, a name or in the reported outcomes

  CrashCounts& operator+=(const CrashCounts& other);
  // For RecordRun.
  std::vector<std::pair<std::string, std::uint64_t>> ForResults() const;
};

// False ends the enumeration.
using CrashVisitor = std::function<bool(const CrashImage&, const CrashCut&)>;

// Calls `visit` once for each distinct image. For each state of the names, the contents of the
// unsynced files are: every file in the same uniform way; and, while all others are lost, and while
// all others are whole, each file in each of its ways, and each two files in each two of the ways
// up to kFew.
CrashCounts ForEachCrash(const CrashHistory& history, const CrashOptions& options,
                         const CrashVisitor& visit);

// As ForEachCrash, at one cut.
CrashCounts ForEachCrashAt(const CrashHistory& history, const CrashCut& cut,
                           const CrashOptions& options, const CrashVisitor& visit);

// The cut with these numbers of operations.
CrashCut CutOf(const CrashHistory& history, const std::vector<std::uint32_t>& done);
std::vector<CrashCut> AllCuts(const CrashHistory& history, bool only_prefixes = false);

// One image of the whole product that ForEachCrash bounds, as the caller chooses.
struct CrashChoice {
  // Does the n-th pending change of a name survive? Beyond the end: yes.
  std::vector<bool> names{};
  // For the n-th unsynced sector over all files: 0 lost, 1 written, 2 zeros, 3 garbage. Beyond the
  // end: written.
  std::vector<std::uint8_t> sectors{};
};
CrashImage MakeImage(const CrashHistory& history, const CrashCut& cut, const CrashOptions& options,
                     const CrashChoice& choice);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CRASH_STATES_H_
