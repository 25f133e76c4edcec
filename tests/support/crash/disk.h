// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CRASH_DISK_H_
#define SEALPOINT_TESTS_SUPPORT_CRASH_DISK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sealpoint/storage.h"
#include "tests/support/crash/history.h"
#include "tests/support/crash/image.h"

// A disk that keeps what programs see apart from what a crash would leave.
//
// Programs see every operation at once, as on any file system. Beside that each operation is
// written into a history, with the actor (the process, here the rank) that made it and what
// happened before it. From the history crash_states.h makes what may be found after a power cut at
// any moment, without running the program again. The model is the pessimistic one
// (docs/crash-model.md):
//
// - What was written and not synced survives sector by sector (512 bytes), as it was written, as
//   zeros or as garbage; the length survives before the data, or not at all.
// - The sync of a file makes its data and length durable, and not its name.
// - Names appear and go in any order, each for itself, until their directory was synced; so does
//   the name of a directory in its parent.
// - The sync of a directory makes durable what *this actor* did to it. What other actors did may
//   still be in the memory of other machines.
// - Publication is one effect: both names of a rename change or neither. It may be lost like any.
//
// A probe (Directory::Probe) answers from CrashDiskOptions and leaves nothing behind.

namespace sealpoint::testing {

struct CrashDiskOptions {
  PublishMethod publish = PublishMethod::kLink;
  // Off: a publication replaces what has the name, as rename(2) does.
  bool publishes_exclusively = true;
};

// An operation that is to report an error.
struct CrashFault {
  int actor = 0;
  int nth = 1;                // from 1, among the actor's operations that change something
  bool takes_effect = false;  // done all the same; a sync that fails never is
};

using CrashGate = std::function<void(int actor, std::string_view name)>;

// One disk under any number of actors. Thread safety: all functions.
class CrashDisk {
 public:
  explicit CrashDisk(int actor_count, const CrashImage& start = {}, CrashDiskOptions options = {});
  ~CrashDisk();
  CrashDisk(const CrashDisk&) = delete;
  CrashDisk& operator=(const CrashDisk&) = delete;

  int actor_count() const;
  // The disk as this actor mounts it. May outlive the disk object.
  std::shared_ptr<Storage> View(int actor) const;
  // From now on View gives this one, such as a FailingStorage around the view. Set it before the
  // actors begin.
  void SetView(int actor, std::shared_ptr<Storage> view);

  // For the history: the actor's caller learned the outcome. That it is unknown is no news.
  void Tell(int actor, const Status& outcome);
  CrashHistory history() const;
  std::size_t op_count() const;  // of the history
  // What the actor's caller was told last; nothing yet: null.
  std::optional<bool> told_success(int actor) const;
  // What programs see now.
  CrashImage Now() const;

  void Fail(CrashFault fault);
  // Called before each operation of an actor, looks included, without a lock held. `name` is that
  // of the entry or file, of a listing and of what concerns a directory its path. Set it before
  // the actors begin.
  void SetGate(CrashGate gate);
  // Changes of this actor so far, those that were told to fail included.
  int change_count(int actor) const;

  // All that `from` did until now happens before what `to` will do: a message without a
  // communicator.
  void PutBefore(int from, int to);
  // For CrashCommunicator: the actor enters its next collective; the answer is passed to Leave,
  // which makes all that `sources` did before they entered happen before what follows.
  std::size_t EnterCollective(int actor);
  void LeaveCollective(int actor, std::size_t collective, const std::vector<int>& sources);

 private:
  struct State;
  class Mount;
  class OpenedDirectory;
  class Reader;
  class Writer;
  std::shared_ptr<State> state_;
  std::vector<std::shared_ptr<Storage>> views_;  // by actor
};

// A storage that holds this image, for readers.
std::shared_ptr<Storage> StorageOf(const CrashImage& image);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CRASH_DISK_H_
