// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_COLLECTIVE_READER_H_
#define SEALPOINT_COLLECTIVE_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/communicator.h"
#include "sealpoint/export.h"
#include "sealpoint/phases.h"
#include "sealpoint/read_plan.h"
#include "sealpoint/status.h"

namespace sealpoint {

struct CollectiveLoadOptions {
  // Bound on what one rank holds at a time of chunks on their way: read but not sent to all, being
  // sent, and received but not copied. One chunk of each is always held.
  std::uint64_t memory_budget_bytes = 256 * kMiB;
  int threads = 1;  // that read and verify, per rank
  PhaseCallback on_phase{};
};

struct CollectiveLoadReport {
  // What this rank wanted, and would have read alone.
  PlanSummary plan{};
  // Of the contract, over all ranks: the same on each.
  std::vector<LoadFinding> findings{};
  std::uint64_t bytes_read = 0;      // stored bytes of chunks that this rank fetched
  std::uint64_t bytes_received = 0;  // decoded bytes of chunks that came from other ranks
  // Over all ranks: stored bytes of chunks that were fetched, and of those that any rank wanted.
  // They are equal: no chunk is read twice.
  std::uint64_t all_bytes_read = 0;
  std::uint64_t all_bytes_wanted = 0;
  std::uint64_t rounds = 0;  // exchanges
  PhaseReport phases{};
};

// A committed checkpoint, read by all ranks of a communicator together: marker and index are read
// once and sent to all; each chunk that any rank wants is read and verified by exactly one rank
// and passed on, in rounds of bounded memory that are balanced by bytes and touch many files at a
// time. The ranks may be another number, in another layout, than those that saved.
//
// All ranks of the communicator call Open and Load in the same order. Every rank makes the same
// sequence of collective calls whatever its own outcome; the error of one rank becomes the same
// error on all, naming the rank on which it happened first. Thread safety: one call at a time. The
// communicator outlives the reader.
class SEALPOINT_EXPORT CollectiveReader {
 public:
  // Errors: those of Checkpoint::Open, Comm, Timeout. Files are checked by rank 0 alone.
  static Result<std::unique_ptr<CollectiveReader>> Open(Communicator& comm, const std::string& path,
                                                        const OpenOptions& options = {});
  virtual ~CollectiveReader() = default;
  CollectiveReader(const CollectiveReader&) = delete;
  CollectiveReader& operator=(const CollectiveReader&) = delete;

  // For all that one rank can do alone.
  virtual const Checkpoint& checkpoint() const = 0;

  // Fills the destinations of every rank's own request; requests may overlap, nest or be equal, and
  // be empty. The contract is that of all requests together: a tensor is unexpected if no rank
  // wants it, and covered if the ranks together touch all its elements. All ranks pass the same
  // contract. After an error the content of destinations is unspecified. Errors: those of
  // Checkpoint::Plan and Read, Comm, Timeout.
  virtual Result<CollectiveLoadReport> Load(const ReadRequest& request,
                                            const LoadContract& contract = {},
                                            const CollectiveLoadOptions& options = {}) = 0;

 protected:
  CollectiveReader() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_COLLECTIVE_READER_H_
