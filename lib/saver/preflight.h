// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_PREFLIGHT_H_
#define SEALPOINT_LIB_SAVER_PREFLIGHT_H_

#include <memory>
#include <string>
#include <vector>

#include "sealpoint/communicator.h"
#include "sealpoint/saver.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::saver {

// Data shared by all ranks of an attempt after the preflight.
struct Attempt {
  AttemptId id{};
  std::string directory{};        // of a staged save: of this rank, on local storage
  std::string final_directory{};  // of a staged save, else empty
  std::optional<ParentRef> parent{};
  // Its blobs may be linked. Empty if unknown, or for a staged save, because promotion copies the
  // blobs that each rank wrote.
  std::string parent_directory{};
  PublishMethod publish = PublishMethod::kNone;
  std::unique_ptr<Directory> opened{};  // this rank's handle
  // On rank 0, in a staged save on each rank: the levels of its path that were made for this
  // attempt, by name, outermost first; and the directory in which they were made, which was there
  // before.
  std::vector<std::string> made_levels{};
  std::unique_ptr<Directory> made_in{};
};

// Collective (spec/commit.md, step "preflight"): rank 0 creates the directory and the attempt,
// checks for a marker, probes the file system's capabilities and writes a probe file, which every
// rank reads back. `local_status` is this rank's own outcome so far (bad arguments); the rank takes
// part regardless of it. After a failure the directory is removed if it was created here.
Result<Attempt> RunPreflight(Storage& storage, Communicator& comm, const SaveTarget& target,
                             const SaveOptions& options, const Status& local_status);

// The same for a staged save: each rank creates the directory on its own local storage and probes
// it (R-STG-01); nothing is created in the final directory.
Result<Attempt> RunStagedPreflight(Storage& storage, Communicator& comm, const SaveTarget& target,
                                   const SaveOptions& options, const Status& local_status);

// AgreeOnStatus for work of this rank in the directory of an attempt. `is_missing`: the work failed
// because the directory, or a file of the attempt in it, does not exist. After a failure of the
// communicator rank 0 does not wait for the others and removes the directory, so a slower rank may
// find it missing; that rank gets the failure of the communicator, which is the cause, as its
// error.
Status AgreeOnAttempt(Communicator& comm, const Status& local_status, bool is_missing);

// Rank 0 (in a staged save each rank) removes the attempt's directory and its parents, if they were
// created for it and are empty. Not collective.
void RemoveEmptyDirectories(const Attempt& attempt);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_PREFLIGHT_H_
