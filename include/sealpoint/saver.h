// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_SAVER_H_
#define SEALPOINT_SAVER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/attributes.h"
#include "sealpoint/commit.h"
#include "sealpoint/communicator.h"
#include "sealpoint/declaration.h"
#include "sealpoint/engine.h"
#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/phases.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint {

// The promotion of one staged save, as seen by one rank.
struct Promotion {
  std::string directory{};  // final directory
  std::uint64_t step = 0;
  // Success if the final checkpoint is committed and durable. After an error, this rank does not
  // know whether the final checkpoint is committed, and the local checkpoint is kept.
  Status status{};
  std::uint64_t bytes_copied = 0;  // by this rank
};

// The two directories of staged saves.
struct StagedPlaces {
  std::string local{};
  std::string final_series{};
};

struct ResumePromotionsOptions {
  std::shared_ptr<Storage> storage{};             // for both locations; DefaultStorage() if null
  int threads = kThreadsAuto;                     // per rank; see PromoteOptions
  std::uint64_t memory_budget_bytes = 16 * kMiB;  // see PromoteOptions
  int keep_local = 0;                             // see SaverOptions
  std::chrono::milliseconds deadline = kDefaultBackgroundDeadline;
  Limits limits{};
  Status failure{};  // set if this rank has already failed; see CollectiveReader::Open
};

struct ResumedPromotions {
  std::vector<std::string> promoted{};  // directory names, newest first
  std::vector<Promotion> skipped{};     // failed, or not intact on the participating nodes
};

// Local copies of a series, as made by SaveTarget::Staged.
struct StagedCopies {
  std::string folder{};                 // below the local directory; may not exist
  std::string series{};                 // final directory, with links resolved
  std::optional<std::string> record{};  // series recorded in the folder
};

// Finds the folder with the local copies of a series. Errors: InvalidArgument (R-STG-12: the two
// directories are the same, or one contains the other), Io.
SEALPOINT_EXPORT Result<StagedCopies> FindStagedCopies(const StagedPlaces& places,
                                                       std::shared_ptr<Storage> storage = {});

// Completes the promotions of an earlier job, so that the final series has the newest intact
// checkpoint of the two locations. Promotes each local checkpoint that is newer than all
// checkpoints of the final series, provided that all nodes together have an intact copy of this
// checkpoint. Call this function before OpenNewest for the final series. The number of ranks may
// differ from the earlier job. Promotions of the earlier job may still be running.
//
// Collective. All ranks must name the same final series; `local` may differ by rank. Only copies of
// this series are promoted and removed (FindStagedCopies); other contents of the local directory
// are kept. A copy is skipped if it has no record of its series, or if its record names a different
// location with the same lineage (R-STG-13). The status of such a copy names a remedy. A checkpoint
// is also skipped if a node with some of its blobs does not participate. The status of such a
// checkpoint gives the reason. The result is the same on all ranks. Errors: errors from listing the
// final series, InvalidArgument (R-STG-12), Comm, Timeout.
SEALPOINT_EXPORT Result<ResumedPromotions> ResumePromotions(
    Communicator& comm, const StagedPlaces& places, const ResumePromotionsOptions& options = {});

// Destination of a save. A value type.
class SEALPOINT_EXPORT SaveTarget {
 public:
  // A new directory `step-<12 digits>-<8 hex of the attempt>` in this series. The parent of the new
  // checkpoint is the newest committed checkpoint of the series. If a marker in the series cannot
  // be read, the save is refused; see SaveOptions::allow_fallback.
  static SaveTarget InSeries(std::string series_directory);
  // Exactly this directory, which is created if it does not exist. The caller supplies the parent.
  static SaveTarget Directory(std::string directory, std::optional<ParentRef> parent = {});
  // Like the function above, but also names the directory of the parent, so that the save may link
  // frozen blobs of the parent (SaverOptions::frozen_groups). In a series, the saver finds the
  // parent's directory itself.
  static SaveTarget Directory(std::string directory, ParentRef parent,
                              std::string parent_directory);
  // A staged save. The save is complete once the checkpoint is committed in a subdirectory of
  // `local`. Afterwards, a thread of the saver copies the checkpoint to `final` in the background
  // and commits the copy (spec/staged.md). `local` may be private to this node or shared with other
  // nodes, and its path may differ by rank. The parent is the newest checkpoint of `local` and
  // `final` together.
  static SaveTarget Staged(std::string local, SaveTarget final);

  // Directory of the series or of the checkpoint. For a staged save, this is the final location.
  const std::string& path() const { return path_; }
  bool is_series() const { return is_series_; }
  const std::optional<ParentRef>& parent() const { return parent_; }
  const std::string& parent_directory() const { return parent_directory_; }  // empty if unknown
  bool is_staged() const { return local_.has_value(); }
  const std::string& local() const { return *local_; }  // precondition: is_staged()

 private:
  SaveTarget(std::string path, bool is_series) : path_(std::move(path)), is_series_(is_series) {}

  std::string path_;
  bool is_series_;
  std::optional<ParentRef> parent_;
  std::string parent_directory_;
  std::optional<std::string> local_;
};

// The base of a save that stores changes: a delta.
struct SaveBase {
  // A committed checkpoint on the engine's storage. It is found again if it is in the same series
  // as the new checkpoint and has the name SeriesDirectoryName; otherwise readers must name it
  // (OpenOptions::base_directories).
  std::string directory{};
  // The data of the base, bound to a declaration that declares the same tensors and regions as that
  // of the save, in the same order. Tensors are stored as changes if their base is bound to dense
  // host memory. Borrowed as the sources of the save are; objects are not used.
  const Sources* sources = nullptr;
};

struct SaveOptions {
  std::uint64_t step = kNoStep;  // required in a series
  MeshAxes mesh{};
  ProvenanceList provenance{};  // only rank 0's list is stored
  Attributes attributes{};      // of the checkpoint; only rank 0's are stored
  // Allows a checkpoint without tensors and objects; see CommitOptions. Must be the same on all
  // ranks.
  bool allow_empty = false;
  // Allows a save into a series that has a damaged marker, or a marker of an unknown format
  // version. The checkpoint with such a marker may be newer than every readable checkpoint. If
  // false, such a marker fails the save with the code of the marker's error (R-SER-26). If true,
  // the sequence of the new checkpoint is greater than all known sequences, including the sequence
  // in a marker of a different format version. Only rank 0's value counts. See
  // ResumeOptions::allow_fallback.
  bool allow_fallback = false;
  // Store the elements that differ from those of the base, instead of all data. Chunks whose
  // changes take more bytes than the data are stored as usual. The base must have each tensor of
  // the new checkpoint, with the same dtype and shape; if not, the save fails (InvalidArgument).
  // The save gives the base a KEEP file, and fails if the base is not whole. A wrong or damaged
  // base is detected when the delta is read. All ranks must pass a base, and the same directory, or
  // none of them. Not available for staged saves, and with stored cuts (InvalidArgument).
  std::optional<SaveBase> base{};
  // Set this status if this rank has already failed. The save then fails with this status on every
  // rank, before any file is created, and no rank waits for this rank. This rank's other arguments
  // are ignored. Errors of Declaration::Add and Sources::Bind need not be passed here, because Save
  // already knows these errors. If the code is Comm or Timeout, the save fails with Cancelled,
  // because other ranks would otherwise conclude that the communicator failed.
  Status failure{};
  // A digest over the results of Declaration::ComputeDigest() of all ranks. Must be the same on all
  // ranks. Set this digest only in a caller that compares each save and its options between the
  // ranks before the call (Communicator::calls_are_compared). Such a caller must also gather the
  // results of ComputeDigest() at that time. If `declarations` is set and
  // SaverOptions::find_replicas is true, the save skips its first exchange. `failure` may still be
  // set on any rank.
  std::optional<Digest> declarations{};
};

struct SaverOptions {
  // See BlobWriterOptions::size_max_bytes.
  std::uint64_t blob_size_max_bytes = 64 * kGiB;
  // Ranks that write payload, in ascending order (for example one per node). Empty: all ranks. Must
  // be the same on all ranks. Each region and object must be held by at least one of these ranks,
  // because payload is never sent to another rank.
  std::vector<int> writer_ranks{};
  // Detect ranks that hold the same region of the same tensor, so that DeclaredTensor::replicas may
  // stay empty. Several ranks may then also declare an object with the same name; one of these
  // ranks stores the object. The first save after a change of a declaration needs two exchanges of
  // 16 bytes per slot and object. Every other save needs one small reduction. Must be the same on
  // all ranks.
  bool find_replicas = false;
  // Before the first byte is written, compare the digests of replicas (declared or detected), and
  // of objects that several ranks declare. If digests differ, the save fails with InvalidArgument,
  // which names the tensor or object, the ranks and their digests. Each rank needs one more pass
  // over the data that it shares with other ranks, and one small exchange of digests. If false, a
  // detected replica is stored by one rank alone: the lowest writer rank that holds the replica.
  // Must be the same on all ranks.
  bool compare_replicas = false;
  // Verify copies from device memory. For dense device memory, the device computes digests before
  // the copy, and the save compares them with the digests of the copy. If they differ, the save
  // fails (Device). The digests cost the device one pass over this memory. If the device cannot
  // compute digests, the save fails (Unsupported).
  bool check_device_copies = false;
  // See BlobWriterOptions::fingerprints. Must be the same on all ranks.
  bool fingerprints = false;
  // Blob groups (TensorSpec::group) that rarely change, such as a base model that is not trained.
  // Before a save writes such a group, each rank computes the digests of its part. If the parent
  // stores exactly the same data in separate blobs, the save links these blobs (link(2)). In an
  // object store, the store itself copies the blobs instead. In both cases, no payload of the group
  // is written or sent, but each checkpoint is still complete. Each save costs one pass over the
  // memory of the group. Each run of the program also costs one pass over the parent's index. The
  // group is written as usual if anything differs (data, dtype, shape, chunk size, placement), or
  // if the save is staged. The group is also written if the storage can neither link nor copy the
  // blobs (a different file system). Damage to a shared file affects every checkpoint that shares
  // the file. Must be the same on all ranks.
  std::vector<std::string> frozen_groups{};
  // Maximum number of existing checkpoints that share one file of a frozen group (>= 1). When a
  // file reaches this number, the next save writes a new file. 1 means that files are never linked.
  // In an object store, every checkpoint has its own object.
  int frozen_full_every = 10;
  // Detect unchanged tensors outside frozen_groups. A shard with the same bytes in two successive
  // inspections becomes part of a frozen group. An inspection adds unchanged shards only if these
  // shards have at least kLearnedGroupSizeMinBytes bytes together. If a shard of such a group
  // changes later, the next save writes the shard and removes it from the group. Inspections take
  // place at saves 1, 2, 4, 8, … after the declaration changes; each inspection costs one pass over
  // all data that this rank writes. The saver does not remember detected shards after the process
  // ends. Staged saves are not inspected. Must be the same on all ranks.
  bool learn_frozen = false;
  // Each pair has a pattern of tensor names (Checkpoint::MatchTensors), and TensorSpec::stored_cuts
  // for the tensors that match the pattern. For each tensor, the first matching pair applies. A
  // tensor that declares its own stored_cuts keeps them. The save fails (InvalidArgument) if a
  // pattern matches no tensor of any rank, or matches a tensor with a different number of
  // dimensions. Must be the same on all ranks.
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> stored_cuts{};
  // Maximum time that one collective call may wait for the other ranks; kForever: no limit. When
  // this time has passed, the save returns Timeout on the waiting rank, and the saver refuses
  // further use. The error names the target, step, phase and rank. The deadline is set on the
  // communicator when the saver is created.
  std::chrono::milliseconds deadline = kDefaultDeadline;
  // Maximum duration of a background save; kForever: no limit. The duration begins when SaveAsync
  // queues the save, and includes the time for earlier saves in the queue. Each interval in which
  // the program neither polls nor waits counts as at most kPollGapMax. After the maximum duration,
  // Wait and the next call to the saver return Timeout, even if storage or ranks hang. The saver
  // then refuses further use. If the save had started, the error has OutcomeIsUnknown and Poll
  // returns kUnknown; if not, Poll returns kFailed.
  std::chrono::milliseconds background_deadline = kDefaultBackgroundDeadline;
  // Number of promoted staged saves to keep on local storage. Staged saves that are not promoted
  // yet are always kept, until a later save of this saver or ResumePromotions promotes them.
  int keep_local = 0;
  // Maximum number of staged saves that await promotion, including the new one (>= 1). Local
  // storage therefore holds at most unpromoted_max + keep_local staged saves of this saver. When
  // the limit is reached, a save retries failed promotions and waits for at most unpromoted_wait or
  // half of `deadline`, whichever is shorter. Save waits in the foreground, and SaveAsync waits in
  // the background. If the number is still at the limit after the wait, this save fails on all
  // ranks (NoSpace, R-STG-11). Other saves are not affected. Must be the same on all ranks.
  int unpromoted_max = 3;
  std::chrono::milliseconds unpromoted_wait = std::chrono::minutes(1);
  int promote_threads = kThreadsAuto;  // copy threads per rank; see PromoteOptions::threads
  // Maximum payload in memory for the `promote_threads` together, in addition to the engine's
  // memory; at least 4 KiB per thread.
  std::uint64_t promote_memory_bytes = 16 * kMiB;
  // Maximum time that a promotion waits for the promotions of other nodes; kForever: no limit.
  std::chrono::milliseconds promote_deadline = kDefaultBackgroundDeadline;
  Limits limits{};
  // Called for each phase, on the thread that runs the phase. In a background save, the thread that
  // calls SaveAsync runs the phases plan and snapshot, and a thread of the saver runs the other
  // phases.
  PhaseCallback on_progress{};
  // Called for failures that the program did not observe. First case: a background save has failed,
  // and its PendingSave is destroyed before Wait was called. The function is then called on the
  // destroying thread, and `save` is for example "save of step 7 to runs/a". Second case: a
  // promotion has failed, and the saver is destroyed before TakePromotions returned the promotion.
  // In the second case, `save` is for example "promotion of runs/a". Cancelled saves are not
  // reported. If this function is empty or throws, one line is written to stderr instead.
  std::function<void(std::string_view save, const Status& error)> on_unobserved_failure{};
};

// Minimum size in bytes of a group of unchanged tensors (SaverOptions::learn_frozen).
inline constexpr std::uint64_t kLearnedGroupSizeMinBytes = kMiB;

enum class SaveState : std::uint8_t {
  kRunning,
  kCommitted,  // durable
  kFailed,     // no checkpoint was created; training can continue and save again
  kUnknown,    // the error has OutcomeIsUnknown
};

// A background save. Destroying this object has the same effect on the save as Cancel. If the save
// has already failed and Wait was never called, destroying the object passes the error to
// SaverOptions::on_unobserved_failure.
//
// Thread safety: WaitFor and Cancel may be called from any thread. All other functions may be
// called only from the thread that calls the saver. In a child process after fork, every call fails
// (InvalidArgument, kFailed), and the destructor does nothing.
class SEALPOINT_EXPORT PendingSave {
 public:
  virtual ~PendingSave() = default;
  PendingSave(const PendingSave&) = delete;
  PendingSave& operator=(const PendingSave&) = delete;

  // Local. Advances the exchange with other ranks, which takes about 50 µs. If the exchange
  // advances, the call may take longer, in order to begin the next exchange as well. The call then
  // takes up to 1/100 of the time since the previous call to Poll, but at most 20 ms. The result
  // may differ between ranks. If the program calls Poll regularly (for example once per training
  // step), the save finishes while training continues. A save into one directory needs 6 to 11
  // calls to Poll on each rank (measured on 2 to 64 ranks). A save needs fewer calls if all ranks
  // call Poll at the same time.
  virtual SaveState Poll() = 0;
  // Collective. Waits for the save and returns its outcome, which is the same on all ranks. Errors:
  // the errors of Saver::Save, Cancelled, and Timeout (SaverOptions::background_deadline). Wait may
  // be called again. Once Poll no longer returns kRunning, Wait returns immediately and does not
  // depend on other ranks.
  virtual Result<CommitInfo> Wait() = 0;
  // Local. Waits for at most `longest` until the save is over, but does not advance the exchange.
  // Returns true if the save is over; Poll and Wait then return immediately, on any thread. May be
  // called from any thread, even while another call to the saver is in progress.
  virtual bool WaitFor(std::chrono::milliseconds longest) = 0;
  // True if the save finishes even if Poll is not called, because the saver's communicator needs no
  // progress (BackgroundCommunicator::needs_progress).
  virtual bool ends_by_itself() const = 0;
  // Local. Requests that the save fail with Cancelled on all ranks. The request has no effect if it
  // is too late to cancel the save. A request from one rank is enough. Call Wait to get the
  // outcome.
  virtual void Cancel() = 0;

 protected:
  PendingSave() = default;
};

// Makes collective saves: preflight, plan, write, agree, commit (spec/commit.md). Create one saver
// per training run.
//
// All ranks of the communicator must call Create, Save and SaveAsync in the same order. Every rank
// takes part in the same sequence of collective operations, even after a failure of its own. A
// failure on one rank becomes the same error on all ranks; the error names the first cause (rank,
// host, operation, path, errno). After such a failure, each rank has removed its own files and no
// marker exists, unless the error has OutcomeIsUnknown.
//
// If the communicator itself fails, ranks may return different results. A rank that has already
// sent its metadata to rank 0 does not know the outcome (Comm or Timeout, with OutcomeIsUnknown).
// Payload never travels through the communicator.
//
// Thread safety: one call at a time. Engine and communicator must outlive the saver.
class SEALPOINT_EXPORT Saver {
 public:
  // Exchanges no messages. Errors: InvalidArgument (an option). If the options are the same on all
  // ranks, the result is the same on all ranks.
  static Result<std::unique_ptr<Saver>> Create(Engine& engine, Communicator& communicator,
                                               SaverOptions options = {});
  virtual ~Saver() = default;
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // Saves the data bound to `sources`, after all pending saves. Before the first payload byte is
  // written, every rank knows that the declarations agree. By then, every rank also knows that
  // exactly one rank, or one group of replicas, holds each element. Errors: Sources::failure() of
  // any rank; the errors of Commit and BlobWriter; InvalidArgument (also if ranks disagree on
  // target, step or declaration); Comm, Timeout. Durability: if the call succeeds on any rank, the
  // checkpoint survives a crash.
  virtual Result<CommitInfo> Save(const SaveTarget& target, const SaveOptions& options,
                                  const Sources& sources) = 0;

  // Saves in the background. Returns once the data is copied to staging memory. The sources and
  // their declaration may then change; the checkpoint stores the data from before any change. If
  // EngineOptions::memory_budget_bytes on every rank has room for all data that the rank writes
  // (and a little more), the call waits only for this copy. If not, the call first waits for
  // pending saves; it then writes the data while it copies, and returns once the last byte is
  // staged. A memory budget that is too small never makes the call fail. Chunks with a codec are
  // encoded during the call.
  //
  // A thread of the saver executes queued saves one after the other, each as a complete Save. If
  // the communicator needs progress (BackgroundCommunicator::needs_progress), exchanges take place
  // inside Poll, Wait and later calls to the saver. If not, the thread itself makes the exchanges.
  //
  // Errors that SaveAsync itself returns are the same on all ranks: InvalidArgument (arguments;
  // ranks that disagree), Unsupported (a communicator without DuplicateForBackground), Comm,
  // Timeout. Wait returns all other errors. Training can continue after any of these errors.
  //
  // Destroying the saver is collective. If the outcome of a save is still unknown, destroying the
  // saver abandons the save. The destructor waits for the current file operation, and some ranks
  // may never learn the outcome of the save. A process that ends without destroying the saver
  // leaves an uncommitted attempt or a complete checkpoint, never a partial checkpoint.
  virtual Result<std::unique_ptr<PendingSave>> SaveAsync(const SaveTarget& target,
                                                         const SaveOptions& options,
                                                         const Sources& sources) = 0;

  // Local; thread-safe. Returns this rank's promotions that finished since the previous call, in
  // the order in which they finished. A failed promotion is retried before the next promotion
  // begins; a later call returns the outcome of the retry.
  virtual std::vector<Promotion> TakePromotions() = 0;
  // Local; thread-safe. Waits for at most `longest` until this rank has no promotion in progress or
  // in the queue. Returns true if no promotion is left. Destroying the saver stops any promotions
  // in progress. The local checkpoints of these promotions are kept, and ResumePromotions continues
  // the promotions.
  virtual bool WaitForPromotions(std::chrono::milliseconds longest) = 0;

 protected:
  Saver() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_SAVER_H_
