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

// What all ranks of an attempt share once the preflight has passed.
struct Attempt {
  AttemptId id{};
  std::string directory{};        // of a staged save: of this rank, on local storage
  std::string final_directory{};  // of a staged save, else empty
  std::optional<ParentRef> parent{};
  // Whose blobs may be linked. Empty: not known, or a staged save, which is promoted by what each
  // rank wrote.
  std::string parent_directory{};
  PublishMethod publish = PublishMethod::kNone;
  std::unique_ptr<Directory> opened{};  // this rank's handle
  // On rank 0, in a staged save on each rank: the levels of its path that were made for this
  // attempt, by name, outermost first; and the directory in which they were made, which was there
  // before.
  std::vector<std::string> made_levels{};
  std::unique_ptr<Directory> made_in{};
};

// Collective (spec/commit.md, step "preflight"): rank 0 makes the directory and the attempt, looks
// for a marker, probes what the file system offers and writes a probe file, which every rank reads
// back. `local_status` is this rank's own outcome so far (bad arguments); it takes part whatever
// that is. After a failure the directory is gone again if it was made here.
Result<Attempt> RunPreflight(Storage& storage, Communicator& comm, const SaveTarget& target,
                             const SaveOptions& options, const Status& local_status);

// The same for a staged save: each rank makes the directory on its own local storage and probes
// that (R-STG-01); nothing is made in the final place.
Result<Attempt> RunStagedPreflight(Storage& storage, Communicator& comm, const SaveTarget& target,
                                   const SaveOptions& options, const Status& local_status);

// Rank 0, in a staged save each rank, removes the attempt's directory, and those above it, as far
// as they were made for it and nothing is left in them. Not collective.
void RemoveEmptyDirectories(const Attempt& attempt);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_PREFLIGHT_H_
