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
  // Memory for chunks on one rank: chunks that are read but not sent, being sent, or received but
  // not copied. One chunk of each kind is always held. Threads read and verify within
  // OpenOptions::memory_budget_bytes.
  std::uint64_t memory_budget_bytes = 256 * kMiB;
  int threads = kThreadsAuto;  // read and verify threads per rank
  // Read each chunk on one rank only and send it to the other ranks that need it; all ranks read
  // about the same number of bytes. If false, each rank reads every chunk it needs and nothing is
  // sent. This is faster if the storage serves every rank at memory speed, such as a shared page
  // cache. Must be the same on all ranks.
  bool share_chunks = true;
  PhaseCallback on_progress{};
};

struct CollectiveLoadReport {
  // This rank's request, and the cost of reading it alone.
  PlanSummary plan{};
  // Differences that the contract reports, over all ranks; the same on each rank.
  std::vector<LoadFinding> findings{};
  std::uint64_t bytes_read = 0;      // stored bytes of chunks that this rank read
  std::uint64_t bytes_received = 0;  // decoded bytes that came from other ranks
  // Totals over all ranks: stored bytes of the chunks that were read, and of the chunks that any
  // rank requested. They are equal unless share_chunks is false, because no chunk is read twice.
  std::uint64_t all_bytes_read = 0;
  std::uint64_t all_bytes_requested = 0;
  std::uint64_t exchange_count = 0;  // exchanges of chunks between ranks
  PhaseReport phases{};
};

// Cost of a collective load on one rank.
struct RankLoad {
  std::string host{};
  PlanSummary alone{};  // its request, and the cost of reading it alone
  // Reads of this rank in the collective load, for itself and for other ranks.
  std::uint64_t bytes_read = 0;
  std::uint64_t requests = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes_received = 0;  // decoded bytes that come from other ranks
  friend bool operator==(const RankLoad&, const RankLoad&) = default;
};

// Predicted cost of a collective load. The same on all ranks.
struct SEALPOINT_EXPORT CollectiveLoadPlan {
  std::vector<RankLoad> ranks{};
  std::vector<LoadFinding> findings{};  // differences that the contract reports, over all ranks
  // Sums over the ranks.
  std::uint64_t bytes_requested = 0;
  std::uint64_t bytes_read_alone = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_received = 0;  // bytes sent between ranks
  // bytes_read / bytes_requested: below 1 if ranks request the same data; 0 if nothing is
  // requested.
  double amplification = 0;

  // Human-readable: one line with the sums, then one line per rank.
  std::string ToString() const;
  friend bool operator==(const CollectiveLoadPlan&, const CollectiveLoadPlan&) = default;
};

// Reads a committed checkpoint with all ranks of a communicator. Marker and index are read once and
// sent to all ranks. Each requested chunk is read and verified by exactly one of the ranks that
// need it, which sends it to the others. Reads are balanced by bytes and run in batches of bounded
// memory. While one batch is exchanged and copied, a thread that never calls the communicator reads
// the next. If no two ranks need the same chunk, as on the mesh that saved, each rank reads its own
// chunks and nothing is sent. The number of ranks and their layout may differ from the save.
//
// All ranks of the communicator call Open, Plan, Load and ReadObject in the same order. Every rank
// makes the same sequence of collective calls regardless of its own outcome. An error on one rank
// becomes the same error on all ranks and names the rank on which it happened first.
//
// Thread safety: one call at a time. The communicator must outlive the reader.
class SEALPOINT_EXPORT CollectiveReader {
 public:
  // All ranks pass exactly the same path; otherwise all get InvalidArgument, which names two of the
  // paths. Rank 0 alone checks the files. Errors: those of Checkpoint::Open, Comm, Timeout.
  static Result<std::unique_ptr<CollectiveReader>> Open(Communicator& comm, const std::string& path,
                                                        const OpenOptions& options = {});
  virtual ~CollectiveReader() = default;
  CollectiveReader(const CollectiveReader&) = delete;
  CollectiveReader& operator=(const CollectiveReader&) = delete;

  // The checkpoint, for operations that one rank performs alone.
  virtual const Checkpoint& checkpoint() const = 0;

  // Fills the destinations of every rank's own request. Requests may overlap, nest, be equal or be
  // empty. The contract applies to all requests together: a tensor is unexpected if no rank
  // requests it, and covered if the ranks together request all its elements. All ranks pass the
  // same contract; otherwise all get InvalidArgument. After an error the content of destinations is
  // unspecified. Errors: those of Checkpoint::Plan and Read, Comm, Timeout.
  virtual Result<CollectiveLoadReport> Load(const ReadRequest& request,
                                            const LoadContract& contract = {},
                                            const CollectiveLoadOptions& options = {}) = 0;

  // Computes the cost of Load with the same arguments: the request and the reads of each rank.
  // Tables are read and ranks exchange messages as in Load; no payload is read or sent. Errors:
  // those that Load returns before reading payload.
  virtual Result<CollectiveLoadPlan> Plan(const ReadRequest& request,
                                          const LoadContract& contract = {},
                                          const CollectiveLoadOptions& options = {}) = 0;

  // Returns the verified bytes of an object, read by one rank and sent to all. All ranks pass the
  // same name; otherwise all get InvalidArgument. Errors, the same on all ranks: NotFound, those of
  // Read, Comm, Timeout.
  virtual Result<Bytes> ReadObject(std::string_view name) = 0;

 protected:
  CollectiveReader() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_COLLECTIVE_READER_H_
