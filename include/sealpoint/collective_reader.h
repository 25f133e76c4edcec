// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_COLLECTIVE_READER_H_
#define SEALPOINT_COLLECTIVE_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/communicator.h"
#include "sealpoint/export.h"
#include "sealpoint/phases.h"
#include "sealpoint/read_plan.h"
#include "sealpoint/status.h"
#include "sealpoint/threads.h"

namespace sealpoint {

struct CollectiveLoadOptions {
  // Bound on the chunks that one rank holds at a time: read but not sent to all, being sent, and
  // received but not copied. One chunk of each is always held. What threads read and
  // verify with is OpenOptions::memory_budget_bytes.
  std::uint64_t memory_budget_bytes = 256 * kMiB;
  int threads = kThreadsAuto;  // that read and verify, per rank; at most kThreadsMax
  // A chunk that several ranks need is read by one of them, which sends it to the others; all read
  // about the same number of bytes. Off: each rank reads all that it needs, and nothing is sent;
  // faster where the storage gives every rank the same bytes as fast as memory does, such as a page
  // cache that the ranks share. The same on all ranks.
  bool share_chunks = true;
  PhaseCallback on_phase{};
};

struct CollectiveLoadReport {
  // What this rank requested, and would have read alone.
  PlanSummary plan{};
  // What the contract said to report, over all ranks: the same on each.
  std::vector<LoadFinding> findings{};
  std::uint64_t bytes_read = 0;      // stored bytes of chunks that this rank fetched
  std::uint64_t bytes_received = 0;  // decoded, that came from other ranks
  // Over all ranks: stored bytes of chunks that were fetched, and of those that any rank requested.
  // They are equal, since no chunk is read twice, unless share_chunks is off.
  std::uint64_t all_bytes_read = 0;
  std::uint64_t all_bytes_requested = 0;
  std::uint64_t exchange_count = 0;  // of chunks between ranks
  PhaseReport phases{};
};

// What a collective load costs one rank.
struct RankLoad {
  std::string host{};
  PlanSummary alone{};  // its request, and what that costs if it reads alone
  // What it reads in the collective load for itself and for other ranks.
  std::uint64_t bytes_read = 0;
  std::uint64_t requests = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes_received = 0;  // decoded, that come from other ranks
  friend bool operator==(const RankLoad&, const RankLoad&) = default;
};

// What a collective load costs, before it runs: the same on all ranks.
struct SEALPOINT_EXPORT CollectiveLoadPlan {
  std::vector<RankLoad> ranks{};
  std::vector<LoadFinding> findings{};  // what the contract said to report, over all ranks
  // Sums over the ranks.
  std::uint64_t bytes_requested = 0;
  std::uint64_t bytes_read_alone = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_received = 0;  // what ranks send each other
  // bytes_read / bytes_requested; less than 1 if ranks request the same. 0 if nothing is requested.
  double amplification = 0;

  // A line with the sums, then one per rank. For people.
  std::string ToString() const;
  friend bool operator==(const CollectiveLoadPlan&, const CollectiveLoadPlan&) = default;
};

// A committed checkpoint, read by all ranks of a communicator together: marker and index are read
// once and sent to all; each requested chunk is read and verified by exactly one of the ranks that
// need it, which sends it to the others, balanced by bytes, in batches of bounded memory; while one
// is exchanged and copied, the next is read, on a thread that never calls the communicator. If no
// two ranks need the same chunk, as on the mesh that saved, each reads its own, and nothing is
// sent. The ranks may be another number, in another layout, than those that saved.
//
// All ranks of the communicator call Open, Plan, Load and ReadObject in the same order. Every rank
// makes the same sequence of collective calls whatever its own outcome; the error of one rank
// becomes the same error on all, naming the rank on which it happened first. Thread safety: one
// call at a time. The communicator outlives the reader.
class SEALPOINT_EXPORT CollectiveReader {
 public:
  // All ranks pass the same path, letter by letter; else all get InvalidArgument with two of them.
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
  // requests it, and covered if the ranks together touch all its elements. All ranks pass the same
  // contract; else all get InvalidArgument. After an error the content of destinations is
  // unspecified. Errors: those of Checkpoint::Plan and Read, Comm, Timeout.
  virtual Result<CollectiveLoadReport> Load(const ReadRequest& request,
                                            const LoadContract& contract = {},
                                            const CollectiveLoadOptions& options = {}) = 0;

  // What Load would cost with the same arguments: each rank's requests, and what each would read.
  // Tables are read and ranks agree as in Load; no payload is read or sent. Errors: those of Load
  // before its first byte.
  virtual Result<CollectiveLoadPlan> Plan(const ReadRequest& request,
                                          const LoadContract& contract = {},
                                          const CollectiveLoadOptions& options = {}) = 0;

  // The verified bytes of an object, read by one rank and sent to all. All ranks pass the same
  // name; else all get InvalidArgument. Errors: NotFound, those of Read, Comm, Timeout; the same on
  // all ranks.
  virtual Result<Bytes> ReadObject(std::string_view name) = 0;

 protected:
  CollectiveReader() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_COLLECTIVE_READER_H_
