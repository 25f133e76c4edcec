// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_PREFLIGHT_H_
#define SEALPOINT_LIB_SAVER_PREFLIGHT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/comm/agree.h"
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
  // True if the planned bytes of all ranks certainly fit into the free space.
  bool is_sure_to_fit = false;
};

// Instead of a number of bytes that a rank will write at most, if it has no plan yet.
inline constexpr std::uint64_t kNotPlanned = ~std::uint64_t{0};

// Collective (spec/commit.md, step "preflight"): rank 0 creates the directory and the attempt,
// checks for a marker, probes the file system's capabilities and writes a probe file, which every
// rank reads back. `local_status` is this rank's own outcome so far (bad arguments); the rank takes
// part regardless of it. After a failure the directory is removed if it was created here.
Result<Attempt> RunPreflight(Storage& storage, Communicator& comm, const SaveTarget& target,
                             const SaveOptions& options, const Status& local_status,
                             std::uint64_t planned_bytes);

// Files that a save needs space for: a blob per rank, index, marker and probe.
std::uint64_t FileCount(int rank_count);

// The same for a staged save: each rank creates the directory on its own local storage and probes
// it (R-STG-01); nothing is created in the final directory.
Result<Attempt> RunStagedPreflight(Storage& storage, Communicator& comm, const SaveTarget& target,
                                   const SaveOptions& options, const Status& local_status);

// What this rank returns after an agreement on work in the directory of an attempt. `is_missing`:
// the work failed because the directory, or a file of the attempt in it, does not exist. After a
// failure of the communicator rank 0 does not wait for the others and removes the directory, so a
// slower rank may find it missing; that rank gets the failure of the communicator, which is the
// cause, as its error.
Status OutcomeOf(comm::Agreement agreement, const Status& local_status, bool is_missing);

// Rank 0 (in a staged save each rank) removes the attempt's directory and its parents, if they were
// created for it and are empty. Not collective.
void RemoveEmptyDirectories(const Attempt& attempt);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_PREFLIGHT_H_
