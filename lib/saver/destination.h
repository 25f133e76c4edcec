// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_DESTINATION_H_
#define SEALPOINT_LIB_SAVER_DESTINATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/saver/preflight.h"
#include "lib/saver/promotion_queue.h"
#include "lib/writer/commit_steps.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/commit.h"
#include "sealpoint/communicator.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::saver {

// The directory of one save, with the steps that depend on its kind. A direct save has one
// directory, which all ranks share. A staged save has a directory on the local storage of each rank
// and is promoted from there. The kind is chosen once, when the call is checked.
//
// The functions are in the order of the steps. They are local unless stated otherwise.
class Destination {
 public:
  // The steps of the commit on rank 0 (writer::RunCommit).
  using CommitSteps = std::function<Result<CommitInfo>(const writer::BeforePublication&)>;

  virtual ~Destination() = default;
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;

  // This rank writes below this path.
  const std::string& written_path() const { return written_path_; }
  // True if blobs of the parent may be linked. Promotion copies the blobs that each rank wrote, so
  // a staged save links none.
  bool may_link() const { return may_link_; }
  virtual Status CheckArguments() const { return {}; }

  // Before a save begins; `check` is called periodically. Errors: NoSpace, and any of `check`.
  virtual Status MakeRoom(const std::function<Status()>& /*check*/) { return {}; }
  // Collective. Makes the attempt; see preflight.h.
  virtual Status Preflight(Communicator& comm, const Status& local_status,
                           std::uint64_t planned_bytes) = 0;
  // Precondition: the preflight succeeded.
  const Attempt& attempt() const { return attempt_; }
  // Collective (R-CMT-08). `tensor_bytes`: that this rank writes.
  virtual Status CheckFreeSpace(Communicator& comm, std::uint64_t tensor_bytes) const = 0;
  // Takes note of this rank's blobs, which are durable.
  virtual Status NoteBlobs(const std::vector<BlobSummary>& /*summaries*/) { return {}; }
  // On rank 0, while the other ranks call FollowCommit.
  virtual Result<CommitInfo> CommitOnRoot(Communicator& comm, const CommitSteps& commit) = 0;
  // On the other ranks. Errors: Comm, Timeout. Rank 0 returns all others.
  virtual Status FollowCommit(Communicator& /*comm*/) { return {}; }
  // After the commit.
  virtual void Publish(int /*rank*/) {}
  virtual void Promote() {}

  // After a failure: removes the files that FollowCommit made.
  virtual void RemoveFiles() {}
  // Removes the directories that the preflight of this rank made, if they are empty.
  virtual void RemoveDirectories(int rank) = 0;

 protected:
  Destination(Storage& storage, const SaveTarget& target, const SaveOptions& options,
              const std::string& written_path, bool may_link)
      : storage_(storage),
        target_(target),
        options_(options),
        written_path_(written_path),
        may_link_(may_link) {}

  Storage& storage_;
  const SaveTarget& target_;
  const SaveOptions& options_;
  Attempt attempt_;

 private:
  const std::string& written_path_;
  const bool may_link_;
};

// Borrows its arguments; a staged save shares `promotions`.
std::unique_ptr<Destination> MakeDestination(Storage& storage, const SaveTarget& target,
                                             const SaveOptions& options,
                                             std::shared_ptr<PromotionQueue> promotions);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_DESTINATION_H_
