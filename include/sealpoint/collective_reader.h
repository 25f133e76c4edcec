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
  // Maximum memory on one rank for three kinds of chunks: chunks that were read but not yet sent,
  // chunks that are being sent, and chunks that were received but not yet copied. One chunk of each
  // kind may be in memory even if that exceeds the maximum. The memory that threads need to read
  // and verify is limited separately, by OpenOptions::memory_budget_bytes.
  std::uint64_t memory_budget_bytes = 256 * kMiB;
  int threads = kThreadsAuto;  // number of threads per rank that read and verify
  // Read each chunk on one rank only, and send it to the other ranks that need it. All ranks then
  // read about the same number of bytes. If false, each rank reads every chunk that it needs, and
  // no chunk is sent. This is faster if the storage serves every rank at memory speed, for example
  // from a shared page cache. Must be the same on all ranks.
  bool share_chunks = true;
  // After the load, compute the fingerprints of the destinations on all ranks, and compare their
  // sums with the fingerprints that the checkpoint stores. This detects elements that changed, or
  // went to a wrong place, between the verified chunk and the destination: in the network, in
  // staging memory or on the way to a device. All requested tensors need stored fingerprints
  // (SaverOptions::fingerprints), no steps and no conversion, and the ranks together must request
  // each of their elements once; equal regions on several ranks are replicas. Must be the same on
  // all ranks.
  bool verify_arrival = false;
  PhaseCallback on_progress{};
};

struct CollectiveLoadReport {
  // The cost of this rank's request if the rank executed it alone.
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
  std::uint64_t exchange_count = 0;  // number of times that ranks exchanged chunks
  PhaseReport phases{};
};

// Cost of a collective load on one rank.
struct RankLoad {
  std::string host{};
  PlanSummary alone{};  // cost of the rank's request if the rank read it alone
  // What this rank reads in the collective load, for its own request and for other ranks.
  std::uint64_t bytes_read = 0;
  std::uint64_t requests = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes_received = 0;  // decoded bytes that come from other ranks
  friend bool operator==(const RankLoad&, const RankLoad&) = default;
};

// Predicted cost of a collective load. All ranks have the same plan.
struct SEALPOINT_EXPORT CollectiveLoadPlan {
  std::vector<RankLoad> ranks{};
  std::vector<LoadFinding> findings{};  // differences that the contract reports, all ranks together
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

// Reads a committed checkpoint with all ranks of a communicator. The number of ranks and their
// layout may differ from those of the save. Rank 0 reads the marker and the index and sends them to
// all ranks. Of the ranks that need a chunk, exactly one reads and verifies the chunk, and sends it
// to the others. Each rank reads about the same number of bytes, in batches of bounded memory.
// While the ranks exchange and copy one batch, a thread that never calls the communicator reads the
// next batch. If no two ranks need the same chunk, for example because the checkpoint was saved
// with the same mesh, each rank reads its own chunks and no chunk is sent.
//
// All ranks of the communicator call Open, Plan, Load and ReadObject in the same order. Every rank
// makes the same sequence of collective calls, even if it has an error itself. If one rank has an
// error, all ranks return this error, which names the rank where it occurred.
//
// Thread safety: one call at a time. The communicator must outlive the reader.
class SEALPOINT_EXPORT CollectiveReader {
 public:
  // Opens a checkpoint. All ranks pass exactly the same path; if they do not, all ranks get
  // InvalidArgument with two of the paths. Only rank 0 checks the files. Errors: Comm, Timeout, and
  // those of Checkpoint::Open.
  static Result<std::unique_ptr<CollectiveReader>> Open(Communicator& comm, const std::string& path,
                                                        const OpenOptions& options = {});
  virtual ~CollectiveReader() = default;
  CollectiveReader(const CollectiveReader&) = delete;
  CollectiveReader& operator=(const CollectiveReader&) = delete;

  // The open checkpoint, for reads that this rank makes alone.
  virtual const Checkpoint& checkpoint() const = 0;

  // Fills the destinations on every rank. Each rank passes its own request; the requests of
  // different ranks may overlap, nest, be equal or be empty. The contract applies to all requests
  // together: a tensor is unexpected if no rank requests it, and covered if the ranks together
  // request all of its elements. All ranks pass the same contract; if they do not, all ranks get
  // InvalidArgument. After an error the content of destinations is unspecified. Errors: Comm,
  // Timeout, Unsupported (before anything is read) and Corrupt for
  // CollectiveLoadOptions::verify_arrival, and those of Checkpoint::Plan and Checkpoint::Read.
  virtual Result<CollectiveLoadReport> Load(const ReadRequest& request,
                                            const LoadContract& contract = {},
                                            const CollectiveLoadOptions& options = {}) = 0;

  // Predicts the cost of a Load with the same arguments: for each rank, its request and its reads.
  // Like Load, this call reads tables and the ranks exchange messages, but no payload is read or
  // sent. Errors: the errors that Load may return before it reads payload.
  virtual Result<CollectiveLoadPlan> Plan(const ReadRequest& request,
                                          const LoadContract& contract = {},
                                          const CollectiveLoadOptions& options = {}) = 0;

  // Returns the verified bytes of an object. One rank reads them and sends them to all ranks. All
  // ranks pass the same name; if they do not, all ranks get InvalidArgument. Errors, which are the
  // same on all ranks: NotFound, Comm, Timeout, and those of Checkpoint::Read.
  virtual Result<Bytes> ReadObject(std::string_view name) = 0;

 protected:
  CollectiveReader() = default;
};

struct OpenNewestOptions {
  // Options for opening the checkpoint. check_files is ignored: the files are always checked.
  OpenOptions open{};
  // If the newest checkpoint is damaged or cannot be identified, open an older checkpoint and
  // report the skipped checkpoints. If false, a damaged or unidentified checkpoint is an error.
  // Pass the same value on all ranks; only rank 0's value has an effect.
  bool allow_fallback = false;
};

// A skipped checkpoint that may be newer than the opened one.
struct SkippedCheckpoint {
  std::string name{};  // name of its directory in the series
  Status problem{};
  friend bool operator==(const SkippedCheckpoint&, const SkippedCheckpoint&) = default;
};

struct NewestCheckpoint {
  // Null if no checkpoint was ever committed in this series: start training from the beginning.
  // `reader` is never null because of an error.
  std::unique_ptr<CollectiveReader> reader{};
  std::string name{};  // directory name in the series; empty if `reader` is null
  std::vector<SkippedCheckpoint> skipped{};
};

// Opens the newest checkpoint of a series on all ranks, after checking its marker, its index and
// the lengths of its blobs (Series::Newest). Collective: all ranks pass the same directory, rank 0
// chooses the checkpoint, and all ranks get the same result. A series whose directory does not
// exist counts as empty. If another process deletes the checkpoint during the call, the series is
// read again. Errors: the errors of Series::Newest (except NotFound) and of CollectiveReader::Open;
// InvalidArgument (the ranks pass different directories); Comm, Timeout.
SEALPOINT_EXPORT Result<NewestCheckpoint> OpenNewest(Communicator& comm,
                                                     const std::string& series_directory,
                                                     const OpenNewestOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_COLLECTIVE_READER_H_
