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
#include <vector>

#include "sealpoint/commit.h"
#include "sealpoint/communicator.h"
#include "sealpoint/deadline.h"
#include "sealpoint/declaration.h"
#include "sealpoint/engine.h"
#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/phases.h"
#include "sealpoint/staged_saves.h"
#include "sealpoint/status.h"
#include "sealpoint/threads.h"

namespace sealpoint {

// Destination of a save.
struct SEALPOINT_EXPORT SaveTarget {
  // A new directory `step-<12 digits>-<8 hex of the attempt>` in this series. The parent is the
  // newest committed checkpoint of the series. The save is refused while a marker in the series
  // cannot be read; see SaveOptions::allow_fallback.
  static SaveTarget InSeries(std::string series_directory);
  // Exactly this directory, created if it does not exist. The caller supplies the parent.
  static SaveTarget Directory(std::string directory, std::optional<ParentRef> parent = {});
  // A staged save: it is committed in a subdirectory of `local` and is complete at that point. A
  // thread of the saver then copies it to `final` in the background and commits it there last; see
  // staged_saves.h. `local` may be private to this node or shared with others, and its path may
  // differ by rank. The parent is the newest checkpoint of both places.
  static SaveTarget Staged(std::string local, SaveTarget final);

  std::string path{};
  bool is_series = false;
  std::optional<ParentRef> parent{};
  // Directory of the parent; its frozen blobs may be linked (SaverOptions::frozen_groups). Empty if
  // unknown. For a series, the saver finds it.
  std::string parent_directory{};
  std::string local{};  // of a staged save; else empty
};

struct SaveOptions {
  std::uint64_t step = kNoStep;  // required in a series
  MeshAxes mesh{};
  ProvenanceList provenance{};  // only rank 0's is stored
  // Allows a checkpoint without tensors and objects, see CommitOptions. Must be the same on all
  // ranks.
  bool allow_empty = false;
  // Allows a save into a series with a marker that is damaged or of an unknown format version. That
  // checkpoint may be newer than every readable one. If false, such a marker is an error with the
  // marker's code (R-SER-26). If true, the new checkpoint follows all checkpoints with a known
  // sequence, including the sequence stored in a marker of another version. Only rank 0's value
  // counts. See ResumeOptions::allow_fallback.
  bool allow_fallback = false;
  // Set this if this rank already failed. The save then fails with this status on every rank,
  // before any file is created, instead of leaving the other ranks waiting. This rank's other
  // arguments are ignored. Errors of Declaration::Add and Sources::Bind are already known to Save.
  // Comm and Timeout become Cancelled, because they would mean that a communicator failed.
  Status failure{};
  // Digest of Declaration::ComputeDigest() of all ranks, the same on all ranks. Only for callers
  // that compare each save and its options between the ranks beforehand
  // (Communicator::calls_are_compared) and gather these digests then. With
  // SaverOptions::find_replicas the save then skips its first exchange. `failure` may still be set
  // on any rank.
  std::optional<Digest> declarations{};
};

struct SaverOptions {
  // See BlobWriterOptions::size_max_bytes.
  std::uint64_t blob_size_max_bytes = 64 * kGiB;
  // Ranks that write payload, in ascending order (for example one per node). Empty: all ranks. Must
  // be the same on all ranks. Every region and object must be held by one of them, because payload
  // is never sent to another rank.
  std::vector<int> writer_ranks{};
  // Detect ranks that hold the same region of the same tensor, so that HeldTensor::replicas may
  // stay empty. Several ranks may then also declare an object of the same name; one of them stores
  // it. Costs two exchanges of 16 bytes per slot and object after a declaration changes, otherwise
  // one small reduction. Must be the same on all ranks.
  bool find_replicas = false;
  // Compare replicas (declared or detected) and objects declared by several ranks, by digest,
  // before the first byte is written. A difference fails the save with InvalidArgument, which names
  // the tensor or object, the ranks and their digests. Costs each rank one more pass over the data
  // that it shares with others, and one small exchange of digests. If false, each detected replica
  // is stored entirely by the first rank that writes it. Must be the same on all ranks.
  bool compare_replicas = false;
  // Verify copies from device memory: digests of dense device memory are also computed on the
  // device before the copy and compared with the digests of the copy. A difference fails the save
  // (Device). Costs the device one pass over the memory. Unsupported if the device cannot compute
  // digests.
  bool check_device_copies = false;
  // Blob groups (TensorSpec::group) that rarely change, such as an untrained base model. Before a
  // save writes such a group, each rank digests its part. If the parent stores exactly the same
  // data in separate blobs, these are linked (link(2)), or copied by the object store itself. No
  // payload is then written or sent, and each checkpoint remains complete. Costs one pass over that
  // memory, and one pass over the parent's index per run. The group is written as usual if anything
  // differs, if the storage can neither link nor copy (another file system), and in staged saves.
  // Damage to a shared file affects every checkpoint that shares it. Must be the same on all ranks.
  std::vector<std::string> frozen_groups{};
  // Maximum number of existing checkpoints that share one file of a frozen group (>= 1); the next
  // save writes a new file. 1 means never link. In an object store every checkpoint has its own
  // object.
  int frozen_full_every = 10;
  // Detect unchanged tensors outside frozen_groups. A shard that holds the same bytes in two
  // inspections becomes part of a frozen group, if the shards found in the same inspection have at
  // least kLearnedSizeMin bytes together. A shard that changes later leaves its group and is
  // written in the same save. Inspections take place at saves 1, 2, 4, 8, … since the declaration
  // changed; each costs one pass over all data that this rank writes. Nothing is kept for the next
  // process. Staged saves are not inspected. Must be the same on all ranks.
  bool learn_frozen = false;
  // Maximum time that one collective call may wait for the other ranks; kForever: no limit. When it
  // expires, the save returns Timeout on this rank, which names target, step, phase and rank, and
  // the saver refuses further use. It is set on the communicator when the saver is created.
  std::chrono::milliseconds deadline = kDefaultDeadline;
  // Maximum duration of a background save, from the time that SaveAsync queues it, including
  // earlier saves in the queue; kForever: no limit. While the program neither polls nor waits, at
  // most kPollGapMax of each gap counts. When it expires, Poll, Wait and the saver's next call
  // return Timeout even if storage or ranks hang (with OutcomeIsUnknown unless the save had not
  // started), and the saver refuses further use.
  std::chrono::milliseconds background_deadline = kDefaultBackgroundDeadline;
  // Number of promoted staged saves to keep on local storage. Staged saves that are not promoted
  // are always kept, until ResumePromotions or a later save of this saver promotes them.
  int keep_local = 0;
  // Maximum number of staged saves awaiting promotion, including the new one (>= 1). Local storage
  // thus holds at most unpromoted_max + keep_local staged saves of this saver. When the limit is
  // reached, a save retries failed promotions and waits for up to the smaller of unpromoted_wait
  // and half of `deadline`: in the foreground for Save, in the background for SaveAsync. If there
  // is still no room, only that save fails, on all ranks (NoSpace, R-STG-11), with the number of
  // pending promotions, the age of the oldest one and the cause. Must be the same on all ranks.
  int unpromoted_max = 3;
  std::chrono::milliseconds unpromoted_wait = std::chrono::minutes(1);
  int promote_threads = kThreadsAuto;  // copy threads per rank; see PromoteOptions::threads
  // Payload that these threads may hold in total, in addition to the engine's memory; at least 4
  // KiB per thread.
  std::uint64_t promote_memory_bytes = 16 * kMiB;
  // Maximum time that a promotion waits for those of other nodes; kForever: no limit.
  std::chrono::milliseconds promote_deadline = kDefaultBackgroundDeadline;
  Limits limits{};
  // Called for each phase; for background saves on a thread of the saver.
  PhaseCallback on_progress{};
  // Called for failures that the program did not observe. First, a failed background save whose
  // PendingSave is destroyed before Wait was called: on the destroying thread, with for example
  // "save of step 7 to runs/a". Second, a failed promotion that TakePromotions did not return
  // before the saver is destroyed: with "promotion of runs/a". Cancelled saves are not reported. If
  // this is empty or throws, one line is written to stderr instead.
  std::function<void(std::string_view save, const Status& error)> on_unheard_failure{};
};

// Minimum size in bytes of a blob of unchanged tensors (SaverOptions::learn_frozen).
inline constexpr std::uint64_t kLearnedSizeMin = kMiB;

enum class SaveState : std::uint8_t {
  kRunning,
  kCommitted,  // durable
  kFailed,     // no checkpoint was created; training can continue and save again
  kUnknown,    // the error has OutcomeIsUnknown
};

// A save in the background. Destroying it abandons the save, as Cancel does. If the save has
// already failed and Wait was never called, the error is passed to
// SaverOptions::on_unheard_failure.
//
// Thread safety: WaitFor and Cancel may be called from any thread, all other functions only from
// the thread that calls the saver. In a child after fork, every call fails (InvalidArgument,
// kFailed) and the destructor does nothing.
class SEALPOINT_EXPORT PendingSave {
 public:
  virtual ~PendingSave() = default;
  PendingSave(const PendingSave&) = delete;
  PendingSave& operator=(const PendingSave&) = delete;

  // Local. Advances the exchange with other ranks without waiting, in about 50 µs. The result may
  // differ between ranks. Regular calls (for example one per training step) let the save finish
  // while training continues. A save needs about 25 calls on each rank if the ranks do not call
  // simultaneously, otherwise only a few.
  virtual SaveState Poll() = 0;
  // Collective. Returns the outcome, the same on all ranks. Errors: those of Saver::Save,
  // Cancelled, and Timeout of background_deadline. May be called again. Once Poll has returned
  // another state than kRunning, it returns at once and needs no other rank.
  virtual Result<CommitInfo> Wait() = 0;
  // Local. Waits until the save is over, for at most `longest`; does not advance the exchange.
  // Returns true if the save is over; Poll and Wait then return at once on any thread. May be
  // called from any thread, including during calls of the saver.
  virtual bool WaitFor(std::chrono::milliseconds longest) = 0;
  // True if the save finishes without calls of Poll, because the saver's communicator needs no
  // progress (BackgroundCommunicator::needs_progress).
  virtual bool ends_by_itself() const = 0;
  // Local. Requests that the save fail with Cancelled on all ranks, unless it is too late. One
  // rank's request is enough. Call Wait for the outcome.
  virtual void Cancel() = 0;

 protected:
  PendingSave() = default;
};

// Collective saves: preflight, plan, write, agree, commit (spec/commit.md). Create one per training
// run.
//
// All ranks of the communicator call Create, Save and SaveAsync in the same order. Every rank runs
// the same sequence of collectives regardless of its own outcome. A failure on one rank becomes the
// same error on all ranks and names the first cause (rank, host, operation, path, errno). After
// such a failure each rank has removed its own files and no marker exists, unless OutcomeIsUnknown.
//
// If the communicator itself fails, ranks may return different results. A rank that has already
// sent its data to rank 0 does not know the outcome (Comm or Timeout, with OutcomeIsUnknown).
// Payload never travels through the communicator.
//
// Thread safety: one call at a time. Engine and communicator must outlive the saver.
class SEALPOINT_EXPORT Saver {
 public:
  // Exchanges no messages. Errors: InvalidArgument (an option); the same on all ranks if the
  // options are the same.
  static Result<std::unique_ptr<Saver>> Create(Engine& engine, Communicator& communicator,
                                               SaverOptions options = {});
  virtual ~Saver() = default;
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // Saves the data bound to `sources`. Waits for pending saves first. Before the first payload byte
  // is written, every rank knows that the declarations agree and that every element is held by
  // exactly one rank or one group of replicas. Errors: Sources::failure() of any rank; those of
  // Commit and BlobWriter; InvalidArgument also if ranks disagree on target, step or declaration;
  // Comm, Timeout. Durability: after success on any rank the checkpoint survives a crash.
  virtual Result<CommitInfo> Save(const SaveTarget& target, const SaveOptions& options,
                                  const Sources& sources) = 0;

  // Saves in the background. Returns once the data is copied to staging memory. The sources and
  // their declaration may then change; the checkpoint holds the earlier data. If
  // EngineOptions::memory_budget_bytes has room for all data that this rank writes (and a little
  // more), on all ranks, this is the only wait. Otherwise the call also waits for pending saves,
  // and then until the last byte is staged while the first ones are written. It never fails because
  // the memory is too small. Chunks with a codec are encoded during this time.
  //
  // A thread of the saver executes queued saves one after the other, each as a complete Save. It
  // makes no MPI call: exchanges happen inside Poll, Wait and the next calls of the saver. Errors
  // of this call, the same on all ranks: InvalidArgument (arguments; ranks that disagree),
  // Unsupported (a communicator without DuplicateForBackground), Comm, Timeout. All other errors
  // are returned by Wait. After any of these errors training can continue.
  //
  // Destroying the saver (collective) before the outcome is known abandons the save: it waits for
  // the current file operation, and ranks may not learn the outcome. A process that ends without
  // destroying the saver leaves an uncommitted attempt or a complete checkpoint, never a partial
  // one.
  virtual Result<std::unique_ptr<PendingSave>> SaveAsync(const SaveTarget& target,
                                                         const SaveOptions& options,
                                                         const Sources& sources) = 0;

  // Local; thread-safe. Returns this rank's finished promotions that were not returned before, in
  // the order in which they finished. A failed promotion is retried before the next one and then
  // reported again.
  virtual std::vector<Promotion> TakePromotions() = 0;
  // Local; thread-safe. Waits until this rank has no running promotion, for at most `longest`.
  // Returns true if there is none. Destroying the saver stops running promotions: the local
  // checkpoints are kept, and ResumePromotions continues them.
  virtual bool WaitForPromotions(std::chrono::milliseconds longest) = 0;

 protected:
  Saver() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_SAVER_H_
