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

// A disk that distinguishes what programs see from what a crash would leave.
//
// Programs see every operation at once, as on any file system. In addition each operation is
// recorded in a history, with the actor (the process, here the rank) that made it and what happened
// before it. From the history states.h makes every state that may be found after a power cut at any
// moment, without running the program again. The model is pessimistic
// (docs/evidence/crash-model.md):
//
// - Data that was written and not synced survives sector by sector (512 bytes) as it was written,
// as
//   zeros or as garbage; the length survives before the data, or not at all.
// - The sync of a file makes its data and length durable, but not its name.
// - Names appear and disappear in any order, independently, until their directory is synced; so
// does
//   the name of a directory in its parent.
// - The sync of a directory makes durable what *this actor* did to it. What other actors did may
//   still be in the memory of other machines.
// - A publication is one effect: both names of a rename change or neither. It may be lost like any
//   other change.
//
// A probe (Directory::Probe) answers from CrashDiskOptions and leaves nothing behind.
//
// A disk that starts from an image of an object store is one (CrashImage::is_bucket): its views are
// those of ObjectStorage, with parts of kBucketPartSize. A put is one step and durable, an upload
// is there when it is complete, and there are no directories and no syncs. A fault that takes
// effect is a reply that was lost. The probe makes its requests.

namespace sealpoint::testing {

inline constexpr std::uint64_t kBucketPartSize = 2048;

struct CrashDiskOptions {
  PublishMethod publish = PublishMethod::kLink;
  // If false, a publication replaces what has the name, as rename(2) does.
  bool publishes_exclusively = true;
};

// An operation that is to report an error.
struct CrashFault {
  int actor = 0;
  int nth = 1;                // from 1, among the actor's operations that change something
  bool takes_effect = false;  // done despite the error; a sync that fails never is
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

  // Records in the history that the actor's caller learned the outcome. An unknown outcome is not
  // recorded, since it says nothing.
  void Tell(int actor, const Status& outcome);
  CrashHistory history() const;
  std::size_t op_count() const;  // of the history
  // The outcome that was last reported to the actor's caller; null if none was.
  std::optional<bool> told_success(int actor) const;
  // What programs see now.
  CrashImage Now() const;

  void Fail(CrashFault fault);
  // Called before each operation of an actor, reads and listings included, with no lock held.
  // `name` is that of the entry or file; for a listing, and for operations on a directory, its
  // path. Set it before the actors begin.
  void SetGate(CrashGate gate);
  // Changes of this actor so far, those that a fault made fail included.
  int change_count(int actor) const;

  // Orders all that `from` has done so far before all that `to` will do, like a message without a
  // communicator.
  void PutBefore(int from, int to);
  // For CrashCommunicator. Enter: the actor enters its next collective, whose number is returned.
  // Leave: all that `sources` did before they entered it happens before what the actor does next.
  std::size_t EnterCollective(int actor);
  void LeaveCollective(int actor, std::size_t collective, const std::vector<int>& sources);

 private:
  struct State;
  class Mount;
  class OpenedDirectory;
  class Reader;
  class Writer;
  class Bucket;
  static std::shared_ptr<Storage> ViewOfBucket(std::shared_ptr<State> state, int actor);
  std::shared_ptr<State> state_;
  std::vector<std::shared_ptr<Storage>> views_;  // by actor
};

// A storage that holds this image, for readers.
std::shared_ptr<Storage> StorageOf(const CrashImage& image);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CRASH_DISK_H_
