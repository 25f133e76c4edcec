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
#include "sealpoint/limits.h"
#include "sealpoint/phases.h"
#include "sealpoint/read_plan.h"
#include "sealpoint/status.h"

namespace sealpoint {

struct CollectiveLoadOptions {
  // Maximum memory of one rank for chunks in three states: read but not yet sent, being sent, and
  // received but not yet copied. One chunk in each state may be in memory even if the maximum is
  // then exceeded. OpenOptions::memory_budget_bytes separately limits the memory that threads need
  // to read and verify chunks.
  std::uint64_t memory_budget_bytes = 256 * kMiB;
  int threads = kThreadsAuto;  // number of threads per rank that read and verify chunks
  // Read each chunk on one rank only, and send it to the other ranks that need it. All ranks then
  // read about the same number of bytes. If false, each rank reads every chunk that it needs, and
  // no chunk is sent. False is faster if the storage serves every rank at memory speed, for example
  // from a shared page cache. All ranks must pass the same value.
  bool share_chunks = true;
  // After the load, compute the fingerprints of the destinations on all ranks, and compare their
  // sums with the fingerprints that the checkpoint stores. This detects elements that were changed
  // or misplaced after their chunk was verified: in the network, in staging memory or during the
  // copy to a device. All requested tensors need stored fingerprints (SaverOptions::fingerprints),
  // and the requests must not have steps or conversions. The ranks together must request each
  // element of these tensors exactly once; equal regions on several ranks are replicas and count
  // once. All ranks must pass the same value.
  bool verify_arrival = false;
  PhaseCallback on_progress{};
  // Set this status if this rank has already failed. Load and Plan then fail with this status on
  // every rank, before any payload is read, and no rank waits for this rank. This rank's request
  // and contract are ignored. See SaveOptions::failure.
  Status failure{};
};

struct CollectiveLoadReport {
  // The cost that this rank's request would have in a load without other ranks.
  PlanSummary plan{};
  // Differences that the contract reports for the requests of all ranks. All ranks get the same
  // list.
  std::vector<LoadFinding> findings{};
  std::uint64_t bytes_read = 0;      // stored bytes of chunks that this rank read
  std::uint64_t bytes_received = 0;  // decoded bytes that came from other ranks
  // Totals over all ranks: the stored bytes of the chunks that were read, and the stored bytes of
  // the distinct chunks that were requested. If share_chunks is true, no two ranks read the same
  // chunk, so the totals are equal.
  std::uint64_t all_bytes_read = 0;
  std::uint64_t all_bytes_requested = 0;
  std::uint64_t exchange_count = 0;  // number of chunk exchanges between the ranks
  PhaseReport phases{};
};

// Cost of a collective load on one rank.
struct RankLoad {
  std::string host{};
  PlanSummary alone{};  // cost of the rank's request in a load without other ranks
  // Reads of this rank in the collective load, for its own request and for other ranks.
  std::uint64_t bytes_read = 0;
  std::uint64_t requests = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes_received = 0;  // decoded bytes that come from other ranks
  friend bool operator==(const RankLoad&, const RankLoad&) = default;
};

// Predicted cost of a collective load. All ranks get the same plan.
struct SEALPOINT_EXPORT CollectiveLoadPlan {
  std::vector<RankLoad> ranks{};
  std::vector<LoadFinding> findings{};  // differences that the contract reports, for all ranks
  // Sums over the ranks.
  std::uint64_t bytes_requested = 0;
  std::uint64_t bytes_read_alone = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_received = 0;  // bytes sent between ranks
  // bytes_read / bytes_requested. The ratio is below 1 if ranks request the same data, and 0 if
  // nothing is requested.
  double amplification = 0;

  // Returns readable text: one line with the sums, then one line per rank.
  std::string ToString() const;
  friend bool operator==(const CollectiveLoadPlan&, const CollectiveLoadPlan&) = default;
};

// Reads a committed checkpoint with all ranks of a communicator. The checkpoint may have been saved
// by a different number of ranks and with a different layout. Rank 0 reads the marker and the index
// and sends them to all ranks. If several ranks need a chunk, exactly one of them reads and
// verifies the chunk, and sends it to the others. Each rank reads about the same number of bytes,
// in batches of bounded size. While the ranks exchange and copy one batch, a separate thread reads
// the next batch. This thread never calls the communicator. If no two ranks need the same chunk,
// each rank reads its own chunks and no chunk is sent. This is the case, for example, if the
// checkpoint was saved with the same mesh.
//
// All ranks of the communicator call Open, Plan, Load and ReadObject in the same order. Within
// these functions, every rank runs the same sequence of collective operations, even if the rank
// itself has an error. If an error occurs on one rank, all ranks return this error, which names
// that rank.
//
// Thread safety: one call at a time. The communicator must outlive the reader.
class SEALPOINT_EXPORT CollectiveReader {
 public:
  // Opens a checkpoint. All ranks pass exactly the same path. If the paths differ, all ranks get
  // InvalidArgument, and the message shows two of the paths. Only rank 0 checks the files. If this
  // rank has already failed, pass the error as `failure`: all ranks then get this error, and this
  // rank's path is ignored. A program that compares its calls itself
  // (Communicator::calls_are_compared) must also exchange such errors itself. Errors: Comm,
  // Timeout, and the errors of Checkpoint::Open.
  static Result<std::unique_ptr<CollectiveReader>> Open(Communicator& comm, const std::string& path,
                                                        const OpenOptions& options = {},
                                                        const Status& failure = {});
  virtual ~CollectiveReader() = default;
  CollectiveReader(const CollectiveReader&) = delete;
  CollectiveReader& operator=(const CollectiveReader&) = delete;

  // The open checkpoint, for reads that this rank makes alone.
  virtual const Checkpoint& checkpoint() const = 0;

  // Fills the destinations on every rank. Each rank passes its own request; the requests of
  // different ranks may overlap, nest, be equal or be empty. The contract applies to all requests
  // together. A tensor is unexpected if no rank requests it. A tensor is covered if the ranks
  // together request all of its elements. All ranks pass the same contract; if they do not, all
  // ranks get InvalidArgument. After an error the content of destinations is unspecified. Errors:
  // Comm, Timeout; the errors of Checkpoint::Plan and Checkpoint::Read; with
  // CollectiveLoadOptions::verify_arrival also Corrupt, and Unsupported (before anything is read).
  virtual Result<CollectiveLoadReport> Load(const ReadRequest& request,
                                            const LoadContract& contract = {},
                                            const CollectiveLoadOptions& options = {}) = 0;

  // Predicts the cost of a Load with the same arguments. The result describes the request and the
  // reads of each rank. The ranks read tables and exchange messages as in Load, but read and send
  // no payload. Errors: the errors that Load may return before it reads payload.
  virtual Result<CollectiveLoadPlan> Plan(const ReadRequest& request,
                                          const LoadContract& contract = {},
                                          const CollectiveLoadOptions& options = {}) = 0;

  // Returns the verified bytes of an object. One rank reads the bytes and sends them to all ranks.
  // All ranks pass the same name; if they do not, all ranks get InvalidArgument. Errors: NotFound,
  // Comm, Timeout, and the errors of Checkpoint::Read. All ranks return the same error.
  virtual Result<Bytes> ReadObject(std::string_view name) = 0;

 protected:
  CollectiveReader() = default;
};

struct OpenNewestOptions {
  // Options for opening the checkpoint. check_files is ignored: the files are always checked.
  OpenOptions open{};
  // If the newest checkpoint is damaged, open an older checkpoint and report the skipped
  // checkpoints. Do the same if a marker is damaged, unreadable or of an unknown version, so that
  // the newest checkpoint is unknown. If false, both cases are errors. Pass the same value on all
  // ranks; only rank 0's value has an effect.
  bool allow_fallback = false;
  // Set this status if this rank has already failed; see CollectiveReader::Open.
  Status failure{};
};

// A skipped checkpoint that may be newer than the opened one.
struct SkippedCheckpoint {
  std::string name{};  // name of its directory in the series
  Status problem{};
  friend bool operator==(const SkippedCheckpoint&, const SkippedCheckpoint&) = default;
};

struct NewestCheckpoint {
  // Null if no checkpoint was ever committed in this series: start training from the beginning. If
  // an error occurs, OpenNewest returns the error instead of a null `reader`.
  std::unique_ptr<CollectiveReader> reader{};
  std::string name{};  // directory name in the series; empty if `reader` is null
  std::vector<SkippedCheckpoint> skipped{};
};

// Opens the newest checkpoint of a series on all ranks, after checking its marker, its index and
// the lengths of its blobs (Series::Newest). Collective: all ranks pass the same directory, rank 0
// chooses the checkpoint, and all ranks get the same result. If the series directory does not
// exist, the series counts as empty. If another process deletes the checkpoint during the call, the
// series is read again. Errors: the errors of Series::Newest (except NotFound) and of
// CollectiveReader::Open; InvalidArgument (the ranks pass different directories); Comm, Timeout.
SEALPOINT_EXPORT Result<NewestCheckpoint> OpenNewest(Communicator& comm,
                                                     const std::string& series_directory,
                                                     const OpenNewestOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_COLLECTIVE_READER_H_
