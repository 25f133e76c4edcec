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
};

struct ResumedPromotions {
  std::vector<std::string> promoted{};  // directory names, newest first
  std::vector<Promotion> skipped{};     // not intact on the participating nodes, or failed
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
// checkpoints of the final series, provided that all nodes together have an intact copy of it. Call
// it before OpenNewest for the final series. The number of ranks may differ from the earlier job,
// and promotions of that job may still be running.
//
// Collective. All ranks must name the same final series; `local` may differ by rank. Only copies of
// this series are promoted and removed (FindStagedCopies); other contents of the local directory
// are kept. A copy is skipped, and its status names a remedy, if it has no record of its series, or
// if its record names a different location with the same lineage (R-STG-13). A checkpoint is also
// skipped, and its status gives the reason, if a node that has some of its blobs does not
// participate. The result is the same on all ranks. Errors: those of listing the final series,
// InvalidArgument (R-STG-12), Comm, Timeout.
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
  // A staged save. The save commits the checkpoint in a subdirectory of `local`, and is then
  // complete. Afterwards, a thread of the saver copies the checkpoint to `final` in the background
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

struct SaveOptions {
  std::uint64_t step = kNoStep;  // required in a series
  MeshAxes mesh{};
  ProvenanceList provenance{};  // only rank 0's list is stored
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
  // Set this status if this rank has already failed. The save then fails with this status on every
  // rank, before any file is created, instead of leaving the other ranks waiting. This rank's other
  // arguments are ignored. There is no need to pass errors of Declaration::Add and Sources::Bind,
  // because Save already knows them. The codes Comm and Timeout become Cancelled, because other
  // ranks would otherwise conclude that the communicator failed.
  Status failure{};
  // A digest over the results of Declaration::ComputeDigest() on all ranks; the same on all ranks.
  // Only for callers that compare each save and its options between the ranks before the call
  // (Communicator::calls_are_compared) and also gather these results at that time. If
  // `declarations` is set and SaverOptions::find_replicas is true, the save skips its first
  // exchange. `failure` may still be set on any rank.
  std::optional<Digest> declarations{};
};

struct SaverOptions {
  // See BlobWriterOptions::size_max_bytes.
  std::uint64_t blob_size_max_bytes = 64 * kGiB;
  // Ranks that write payload, in ascending order (for example one per node). Empty: all ranks. Must
  // be the same on all ranks. At least one of these ranks must hold each region and object, because
  // payload is never sent to another rank.
  std::vector<int> writer_ranks{};
  // Detect ranks that hold the same region of the same tensor, so that DeclaredTensor::replicas may
  // stay empty. Several ranks may then also declare an object with the same name; one of these
  // ranks stores it. The first save after a declaration changes needs two exchanges of 16 bytes per
  // slot and object; any other save needs one small reduction. Must be the same on all ranks.
  bool find_replicas = false;
  // Before the first byte is written, compare the digests of replicas (declared or detected), and
  // of objects that several ranks declare. If digests differ, the save fails with InvalidArgument,
  // which names the tensor or object, the ranks and their digests. Each rank needs one more pass
  // over the data that it shares with other ranks, and one small exchange of digests. If false, the
  // lowest writer rank that holds a detected replica stores all of its bytes. Must be the same on
  // all ranks.
  bool compare_replicas = false;
  // Verify copies from device memory. For dense device memory, the device computes digests before
  // the copy, and the save compares them with the digests of the copy. If they differ, the save
  // fails (Device). Costs the device one pass over this memory. If the device cannot compute
  // digests, the save fails (Unsupported).
  bool check_device_copies = false;
  // See BlobWriterOptions::fingerprints. Must be the same on all ranks.
  bool fingerprints = false;
  // Blob groups (TensorSpec::group) that rarely change, such as a base model that is not trained.
  // Before a save writes such a group, each rank computes the digests of its part. If the parent
  // stores exactly the same data in separate blobs, the save links these blobs (link(2)), or the
  // object store itself copies them. In this case no payload of the group is written or sent, but
  // each checkpoint is still complete. Costs one pass over the memory of the group, and one pass
  // over the parent's index per run. The group is written as usual if anything differs, if the
  // storage can neither link nor copy the blobs (a different file system), or if the save is
  // staged. Damage to a shared file affects every checkpoint that shares the file. Must be the same
  // on all ranks.
  std::vector<std::string> frozen_groups{};
  // Maximum number of existing checkpoints that share one file of a frozen group (>= 1). When a
  // file reaches this number, the next save writes a new file. 1 means that files are never linked.
  // In an object store, every checkpoint has its own object.
  int frozen_full_every = 10;
  // Detect unchanged tensors outside frozen_groups. If a shard has the same bytes in two
  // inspections, it becomes part of a frozen group, provided that all shards that the same
  // inspection would add have at least kLearnedGroupSizeMinBytes bytes together. If a shard of such
  // a group changes later, the next save writes the shard and removes it from the group.
  // Inspections take place at saves 1, 2, 4, 8, … after the declaration changes; each inspection
  // costs one pass over all data that this rank writes. The detected shards are not remembered
  // after the process ends. Staged saves are not inspected. Must be the same on all ranks.
  bool learn_frozen = false;
  // Pairs of a pattern of tensor names (Checkpoint::MatchTensors) and the TensorSpec::stored_cuts
  // of the tensors that match it. The first pair that matches applies. A tensor that declares
  // stored_cuts keeps them. A pattern that matches no tensor of any rank, or a tensor with a
  // different number of dimensions, fails the save (InvalidArgument). Must be the same on all
  // ranks.
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> stored_cuts{};
  // Maximum time that one collective call may wait for the other ranks; kForever: no limit. When
  // this time has passed, the save returns Timeout on the waiting rank, and the saver refuses
  // further use. The error names the target, step, phase and rank. The deadline is set on the
  // communicator when the saver is created.
  std::chrono::milliseconds deadline = kDefaultDeadline;
  // Maximum duration of a background save, from the time that SaveAsync queues it, including
  // earlier saves in the queue; kForever: no limit. Of each interval in which the program neither
  // polls nor waits, at most kPollGapMax counts. When this time has passed, Wait and the next call
  // to the saver return Timeout even if storage or ranks hang, and the saver refuses further use.
  // If the save had started, the error has OutcomeIsUnknown and Poll returns kUnknown; if not, Poll
  // returns kFailed.
  std::chrono::milliseconds background_deadline = kDefaultBackgroundDeadline;
  // Number of promoted staged saves to keep on local storage. Staged saves that are not promoted
  // yet are always kept, until a later save of this saver or ResumePromotions promotes them.
  int keep_local = 0;
  // Maximum number of staged saves that await promotion, including the new one (>= 1). Local
  // storage therefore holds at most unpromoted_max + keep_local staged saves of this saver. When
  // the limit is reached, a save retries failed promotions and waits for at most unpromoted_wait or
  // half of `deadline`, whichever is shorter. Save waits in the foreground, SaveAsync waits in the
  // background. If the number is then still at the limit, only this save fails, on all ranks
  // (NoSpace, R-STG-11). Must be the same on all ranks.
  int unpromoted_max = 3;
  std::chrono::milliseconds unpromoted_wait = std::chrono::minutes(1);
  int promote_threads = kThreadsAuto;  // copy threads per rank; see PromoteOptions::threads
  // Maximum payload in memory for the `promote_threads` together, in addition to the engine's
  // memory; at least 4 KiB per thread.
  std::uint64_t promote_memory_bytes = 16 * kMiB;
  // Maximum time that a promotion waits for the promotions of other nodes; kForever: no limit.
  std::chrono::milliseconds promote_deadline = kDefaultBackgroundDeadline;
  Limits limits{};
  // Called for each phase, on the thread that runs it. In a background save, the calling thread
  // runs plan and snapshot, and a thread of the saver runs the other phases.
  PhaseCallback on_progress{};
  // Called for failures that the program did not observe. If a background save has failed and its
  // PendingSave is destroyed before Wait was called, the function is called on the destroying
  // thread, and `save` is for example "save of step 7 to runs/a". If a promotion has failed and the
  // saver is destroyed before TakePromotions returned the promotion, `save` is for example
  // "promotion of runs/a". Cancelled saves are not reported. If this function is empty or throws,
  // one line is written to stderr instead.
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

// A background save. Destroying this object abandons the save, as Cancel does. If the save has
// already failed and Wait was never called, destroying the object passes the error to
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

  // Local. Advances the exchange with other ranks, in about 50 µs; if it advances, for up to a
  // hundredth of the time since the last call, at most 20 ms, to begin the next exchange, too. The
  // result may differ between ranks. If the program calls Poll regularly (for example once per
  // training step), the save finishes while training continues. A save into one directory needs
  // 6 to 11 calls on each rank (measured on 2 to 64 ranks), and fewer if all ranks call Poll at the
  // same time.
  virtual SaveState Poll() = 0;
  // Collective. Waits for the save and returns its outcome, which is the same on all ranks. Errors:
  // those of Saver::Save, Cancelled, and Timeout (SaverOptions::background_deadline). May be called
  // again. Once Poll has returned a state other than kRunning, Wait returns immediately and needs
  // no other rank.
  virtual Result<CommitInfo> Wait() = 0;
  // Local. Waits for at most `longest` until the save is over, but does not advance the exchange.
  // Returns true if the save is over; Poll and Wait then return immediately, on any thread. May be
  // called from any thread, even while another call to the saver is in progress.
  virtual bool WaitFor(std::chrono::milliseconds longest) = 0;
  // True if the save finishes even if Poll is not called, because the saver's communicator needs no
  // progress (BackgroundCommunicator::needs_progress).
  virtual bool ends_by_itself() const = 0;
  // Local. Requests that the save fail with Cancelled on all ranks, unless it is too late. A
  // request from one rank is enough. Call Wait to get the outcome.
  virtual void Cancel() = 0;

 protected:
  PendingSave() = default;
};

// Makes collective saves: preflight, plan, write, agree, commit (spec/commit.md). Create one saver
// per training run.
//
// All ranks of the communicator must call Create, Save and SaveAsync in the same order. Every rank
// runs the same sequence of collective operations, even if the rank itself has failed. A failure on
// one rank becomes the same error on all ranks; the error names the first cause (rank, host,
// operation, path, errno). After such a failure, each rank has removed its own files and no marker
// exists, unless the error has OutcomeIsUnknown.
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
  // written, every rank knows that the declarations agree and that every element is held by exactly
  // one rank or one group of replicas. Errors: Sources::failure() of any rank; the errors of Commit
  // and BlobWriter; InvalidArgument, also if ranks disagree on target, step or declaration; Comm,
  // Timeout. Durability: if the call succeeds on any rank, the checkpoint survives a crash.
  virtual Result<CommitInfo> Save(const SaveTarget& target, const SaveOptions& options,
                                  const Sources& sources) = 0;

  // Saves in the background. Returns once the data is copied to staging memory. The sources and
  // their declaration may then change; the checkpoint still stores the data from before the change.
  // If EngineOptions::memory_budget_bytes on every rank has room for all data that the rank writes
  // (and a little more), the call waits only for this copy. If not, the call first waits for
  // pending saves; it then writes the data while it copies, and returns once the last byte is
  // staged. The call never fails because the memory is too small. Chunks with a codec are encoded
  // during the call.
  //
  // A thread of the saver executes queued saves one after the other, each as a complete Save. If
  // the communicator needs progress (BackgroundCommunicator::needs_progress), exchanges take place
  // inside Poll, Wait and later calls to the saver; if not, the thread itself makes them.
  // Errors that SaveAsync itself returns, the same on all ranks: InvalidArgument (arguments; ranks
  // that disagree), Unsupported (a communicator without DuplicateForBackground), Comm, Timeout.
  // Wait returns all other errors. After each of these errors, training can continue.
  //
  // Destroying the saver is collective. If the outcome of a save is not known yet, destroying the
  // saver abandons the save: the destructor waits for the current file operation, and ranks may not
  // learn the outcome. A process that ends without destroying the saver leaves an uncommitted
  // attempt or a complete checkpoint, never a partial checkpoint.
  virtual Result<std::unique_ptr<PendingSave>> SaveAsync(const SaveTarget& target,
                                                         const SaveOptions& options,
                                                         const Sources& sources) = 0;

  // Local; thread-safe. Returns this rank's finished promotions that were not returned before, in
  // the order in which they finished. A failed promotion is retried before the next promotion
  // begins; a later call returns the outcome of the retry.
  virtual std::vector<Promotion> TakePromotions() = 0;
  // Local; thread-safe. Waits for at most `longest` until this rank has no promotion in progress or
  // in the queue. Returns true if there is none. Destroying the saver stops any promotions in
  // progress. Their local checkpoints are kept, and ResumePromotions continues them.
  virtual bool WaitForPromotions(std::chrono::milliseconds longest) = 0;

 protected:
  Saver() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_SAVER_H_
