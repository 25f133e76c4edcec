// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_FAULTS_TINY_STATE_H_
#define SEALPOINT_TESTS_FAULTS_TINY_STATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sealpoint/saver.h"
#include "tests/support/state/saved_state.h"

// A state of a few KiB that exercises every path of a save: a tensor cut over the ranks, one held
// by all, one that is compressed into a separate blob, an empty one, a scalar, objects.

namespace sealpoint::testing {

struct TinyState {
  int rank_count = 1;
  std::uint64_t generation = 0;  // another one has other bytes

  Declaration Declare(int rank) const;
  // All bytes of a tensor or an object.
  Bytes Content(const std::string& name) const;
};

// All ranks together.
Result<CommitInfo> SaveState(Saver& saver, const SaveTarget& target, const TinyState& state,
                             int rank, std::uint64_t step);
// One rank, with BlobWriter and Commit. Cleans up after a failure, which they leave to the caller.
Result<CommitInfo> SaveByHand(Engine& engine, const std::string& directory, const TinyState& state,
                              const CommitOptions& options = {});

// "" if every byte of the state is read back and a full verification finds no damage; else what
// is wrong. An unpublished marker that was left over is no damage.
std::string FindDifference(const std::shared_ptr<Storage>& storage, const std::string& directory,
                           const TinyState& state);
// The same for an open checkpoint, without the verification: loads tensors and objects on `threads`
// threads, and returns what differs. An error of a read is the Status.
Result<std::string> LoadAndCompare(const Checkpoint& checkpoint, const TinyState& state,
                                   int threads = 1);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_FAULTS_TINY_STATE_H_
