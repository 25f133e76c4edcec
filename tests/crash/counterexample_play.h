// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_CRASH_COUNTEREXAMPLE_PLAY_H_
#define SEALPOINT_TESTS_CRASH_COUNTEREXAMPLE_PLAY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/crash/disk.h"
#include "tests/support/crash/states.h"
#include "tests/support/storage/failing_storage.h"

// Replays the traces of spec/model/counterexamples.md: actors on one crash disk, each behind a
// storage that can be made to fail, to report a false success and to do something first.
//
// A step of the library is left out by a false answer: the storage does nothing and reports
// success, or shows the library less than there is. The library then does what it would do without
// the step.

namespace sealpoint::testing {

enum class Outcome : std::uint8_t { kSuccess, kFailure, kUnknown };

// A trace that was replayed to its end.
struct Played {
  CrashHistory history{};
  CrashImage end{};               // what programs see then
  std::vector<Status> results{};  // by actor
  CrashOptions options{.contents = CrashContents::kUniform};
  // By actor: the step that it commits; 0: it commits nothing.
  std::vector<std::uint64_t> steps{};
  bool keeps_old = true;               // step 1 must stay
  std::vector<std::string> damaged{};  // directories of which a file was lost
};

class Stage {
 public:
  explicit Stage(int actors, const CrashImage& start, CrashDiskOptions options = {});

  CrashDisk& disk() { return disk_; }
  FailingStorage& storage(int actor) { return *storages_[static_cast<std::size_t>(actor)]; }
  // The disk as the actor would see it without the storage between.
  Storage& honest(int actor) { return *honest_[static_cast<std::size_t>(actor)]; }

  // Before the actor's n-th operation of this kind on a name that holds `part`.
  void Before(int actor, StorageOp op, std::string part, int nth, std::function<void()> action);
  // Once it has asked for the publication, the actor finds no marker.
  void HideMarker(int actor);
  // Once it has asked for the publication, the actor reads its own bytes in any marker.
  void ShowOwnMarker(int actor);
  // A request to publish that was reported as failed takes effect, if its source still exists.
  void PublishLate(int actor);
  // Removes blobs that this actor made.
  void RemoveOwnBlobs(int actor);
  // Removes all files of a directory but its marker.
  void RemoveFiles(int actor, const std::string& directory);

  Played Finish(std::vector<Status> results, std::vector<std::uint64_t> steps);

 private:
  struct Hook {
    int actor;
    StorageOp op;
    std::string part;
    int left;
    std::function<void()> action;
  };
  void Meet(int actor, StorageOp op, std::string_view name);

  CrashDisk disk_;
  std::vector<std::shared_ptr<Storage>> honest_;
  std::vector<std::shared_ptr<FailingStorage>> storages_;
  std::vector<Hook> hooks_;
};

// Fault entries for FailingStorage, short: it happens once, at the n-th time.
StorageFault Lie(StorageOp op, std::string name, int nth = 1);
StorageFault Error(StorageOp op, std::string name, int nth = 1, Code code = Code::kIo);
// The operation happens and is reported as failed.
StorageFault LostReply(StorageOp op, std::string name, Code code = Code::kIo);

// Syncs of a history, by description and number; 0: all.
struct NamedSync {
  std::string description{};
  int nth = 0;
};
// True for these.
std::function<bool(const CrashOp&)> DroppingOf(const CrashHistory& history,
                                               const std::vector<NamedSync>& syncs);

// --- Ways and rows.

struct Ways {
  // With the protective step missing. Null if nobody goes on: no storage can show that.
  std::function<Played()> without{};
  // The library as it is, in the same order and with the same failures. Null if an axiom is
  // broken, and not a step left out.
  std::function<Played()> real{};
  // The outcomes that the library as it is reports to the actors.
  std::vector<Outcome> reported{};
};

// Replays the row of spec/model/counterexamples.md that belongs to the running test: the suite
// WritersCounterexample belongs to the model `writers`, and the test has the name of the mutant.
// Without the step, the state after the row's last step must be the one that the row describes.
// With it, the library must never reach a bad state.
void PlayCounterexample(const Ways& ways);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CRASH_COUNTEREXAMPLE_PLAY_H_
