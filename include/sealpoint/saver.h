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

namespace sealpoint {

// Where a save goes.
struct SEALPOINT_EXPORT SaveTarget {
  // A new directory `step-<12 digits>-<8 hex of the attempt>` in this series; the parent is the
  // newest committed checkpoint there. A save is refused while a marker there cannot be read; see
  // SaveOptions::allow_fallback.
  static SaveTarget InSeries(std::string series_directory);
  // Exactly this directory, made if it is missing; `parent` as the caller knows it.
  static SaveTarget Directory(std::string directory, std::optional<ParentRef> parent = {});
  // `final`, by way of `local`: the save is committed in a subdirectory of `local`, which this node
  // has for itself or shares with others (its path may differ by rank), and is over then. A thread
  // of the saver copies it to `final` behind the training, where it is committed last; see
  // staged_saves.h. The parent is the newest of both places.
  static SaveTarget Staged(std::string local, SaveTarget final);

  std::string path{};
  bool is_series = false;
  std::optional<ParentRef> parent{};
  // Where the parent is, whose frozen blobs may be linked (SaverOptions::frozen_groups); empty: not
  // known. In a series the saver finds it.
  std::string parent_directory{};
  std::string local{};  // of a staged save; empty: none
};

struct SaveOptions {
  std::uint64_t step = kNoStep;  // required in a series
  MeshAxes mesh{};
  ProvenanceList provenance{};  // rank 0's is stored
  // See CommitOptions: if no rank declares a tensor or an object. The same on all ranks.
  bool allow_empty = false;
  // In a series with a marker that is damaged, or of a version that this library does not read: it
  // may be newer than all that is readable. Off: that is an error, of the marker's code
  // (R-SER-26). On: the new checkpoint comes behind all those whose sequence is known, which a
  // marker of another version says, too. Rank 0's counts. See ResumeOptions::allow_fallback.
  bool allow_fallback = false;
  // What this rank failed with before it could save, if it did: the save fails with it on all
  // ranks, before anything is made, where they would wait for a rank that does not call. What this
  // rank passes besides is not looked at. Errors of Declaration::Add and Sources::Bind need not be
  // given here: Save knows them. Comm and Timeout, which say that a communicator failed,
  // become Cancelled.
  Status failure{};
  // For a caller that compares each save and its options between the ranks beforehand
  // (Communicator::calls_are_compared), and gathers Declaration::ComputeDigest() of all ranks with
  // that: a digest of these, the same on all ranks. With SaverOptions::find_replicas the save then
  // needs no first exchange of its own. `failure` may still be set, on any rank.
  std::optional<Digest> declarations{};
};

struct SaverOptions {
  // See BlobWriterOptions::size_max_bytes.
  std::uint64_t blob_size_max_bytes = 64 * kGiB;
  // Ranks that write payload, ascending (one per node, say); empty: all. The same on all ranks.
  // Each region and object must be held by one of them: payload is never sent to another rank.
  std::vector<int> writer_ranks{};
  // The saver finds out which ranks hold the same region of the same tensor, so that
  // HeldTensor::replicas may stay empty; and several ranks may declare an object of the same name,
  // which one of them stores. Costs two exchanges of 16 bytes per slot and object if a declaration
  // changed, else one reduction of a few numbers. The same on all ranks.
  bool find_replicas = false;
  // The bytes of replicas, declared or found, and of objects that several ranks declare are
  // compared by their digests before the first byte is written; a difference fails the save
  // (InvalidArgument, which names the tensor or object, the ranks and their digests). Costs each
  // rank one more pass over what it holds together with others, and one exchange of a few digests.
  // Without it, replicas that were found come from one rank as a whole: the first that writes.
  // The same on all ranks.
  bool compare_replicas = false;
  // Digests of dense device memory are also computed there, before the copy, and compared with
  // those of what arrived, so that the link is covered; a difference fails the save (Device). Costs
  // the device a pass over the memory. Unsupported if the device cannot.
  bool check_device_copies = false;
  // Blob groups (TensorSpec::group) whose tensors mostly stay as they are: a base that is not
  // trained. Before a save writes such a group, each rank digests what it would write of it; if the
  // parent has exactly that in blobs of their own, they are linked (link(2)) instead, or copied
  // where they are by an object store: no byte of them is written or sent, and each checkpoint
  // stays whole by itself. Costs a pass over that memory, and one of the parent's index once per
  // run. Written as always if anything differs, or if the storage can do neither (another file
  // system); in a staged save, too. A damaged file is then damaged in all checkpoints that share
  // it. The same on all ranks.
  std::vector<std::string> frozen_groups{};
  // At most so many checkpoints that are there share one file of a frozen group; the next one
  // writes it anew. At least 1, which means never to link. An object store copies instead: there
  // each checkpoint has an object of its own.
  int frozen_full_every = 10;
  // The saver finds out which tensors of other groups stay as they are: what a rank writes of one,
  // and what it held at two looks, is a frozen group from then on, together with what else was
  // found at that look, if that is kLearnedSizeMin or more. What changes later leaves its group,
  // and is written in the same save. Looks are at the saves 1, 2, 4, 8 ... of this saver since its
  // declaration changed: each costs a pass over all that this rank writes. Nothing is kept for the
  // next process, which begins anew. Of staged saves nothing is learned. The same on all ranks.
  bool learn_frozen = false;
  // Time that one collective call may wait for the other ranks; kForever: no limit. A save whose
  // wait ends so returns Timeout (on this rank), which names target, step, phase and rank, and the
  // saver refuses further use. Set on the communicator when the saver is made.
  std::chrono::milliseconds deadline = kDefaultDeadline;
  // Time that a save in the background may take once SaveAsync has queued it, those before it
  // included; kForever: no limit. Of a time in which the program neither polls nor waits, at most
  // kPollGapMax counts. Afterwards Poll, Wait and the saver's next call return Timeout even if
  // storage or ranks hang (OutcomeIsUnknown, unless the save had not begun), and the saver refuses
  // further use.
  std::chrono::milliseconds background_deadline = kDefaultBackgroundDeadline;
  // How many staged saves stay on local storage once they are promoted. Those that are not
  // promoted stay anyhow, until ResumePromotions or a later save of this saver promotes them.
  int keep_local = 0;
  // The most staged saves of this saver that are on local storage and not promoted, at least 1,
  // that which begins included: local storage holds no more than these and keep_local together. One
  // that would be more tries again what failed and waits, in the foreground or behind the training
  // as the save is, for unpromoted_wait at most, and half of `deadline`; then it fails alone, on
  // all ranks (NoSpace, R-STG-11: what is behind, since when, and why). The same on all ranks.
  int unpromoted_max = 3;
  std::chrono::milliseconds unpromoted_wait = std::chrono::minutes(1);
  int promote_threads = 2;  // that copy, per rank; at most kThreadsMax
  // What these threads hold of payload together, besides the engine's memory; at least 4 KiB each.
  std::uint64_t promote_memory_bytes = 16 * kMiB;
  // Time that a promotion may wait for those of other nodes; kForever: no limit.
  std::chrono::milliseconds promote_deadline = kDefaultBackgroundDeadline;
  Limits limits{};
  // Also called on a thread of the saver, for saves in the background.
  PhaseCallback on_phase{};
  // Called with a save in the background that failed and whose PendingSave is destroyed without a
  // call of Wait, on the thread that destroys it: with "save of step 7 to runs/a", and the error.
  // Not for Cancelled. Also with a promotion that failed and that TakePromotions did not return
  // before the saver is destroyed: with "promotion of runs/a". Empty: one line on stderr, also
  // instead of what a function throws.
  std::function<void(std::string_view save, const Status& error)> on_unheard_failure{};
};

// The least that a saver puts into a file of its own because it does not change, in bytes.
inline constexpr std::uint64_t kLearnedSizeMin = kMiB;

enum class SaveState : std::uint8_t {
  kRunning,
  kCommitted,  // durable
  kFailed,     // there is no such checkpoint; training can go on and save again
  kUnknown,    // OutcomeIsUnknown of the error
};

// A save that goes on in the background. Destroying it abandons it, as Cancel does; if it has
// failed by then, and Wait was never called, SaverOptions::on_unheard_failure hears of it.
//
// Thread safety: the calls are for the thread that calls the saver, but for WaitFor and Cancel. Not
// usable in a child after fork (InvalidArgument, kFailed); then destroying it does nothing.
class SEALPOINT_EXPORT PendingSave {
 public:
  virtual ~PendingSave() = default;
  PendingSave(const PendingSave&) = delete;
  PendingSave& operator=(const PendingSave&) = delete;

  // Local: takes some 50 µs, carries the exchange with other ranks as far as it goes, and may
  // answer differently on different ranks. Calling it now and then (once per training step, say)
  // lets the save come to its end while training goes on; a save needs about 25 such calls on each
  // rank if they don't come together, else few.
  virtual SaveState Poll() = 0;
  // All ranks at the same point of the program. Returns the outcome, the same on all ranks (as
  // Saver::Save, with Cancelled and background_deadline's Timeout besides). May be repeated.
  // Returns at once, and needs no other rank, if Poll no longer says kRunning.
  virtual Result<CommitInfo> Wait() = 0;
  // Local, and for any thread, also beside calls of the saver: waits until the save is over, or so
  // long, and carries nothing on. True if it is over; then Poll and Wait, called on any thread,
  // return at once.
  virtual bool WaitFor(std::chrono::milliseconds longest) = 0;
  // Whether the save ends though nobody polls: if the saver's communicator needs no progress
  // (BackgroundCommunicator::needs_progress).
  virtual bool ends_by_itself() const = 0;
  // Local: asks for the save to fail with Cancelled, on all ranks, if it is not too late. One
  // rank's request is enough. The outcome is still to be waited for.
  virtual void Cancel() = 0;

 protected:
  PendingSave() = default;
};

// The collective save: preflight, plan, write, agree, commit (spec/commit.md). One per training
// run.
//
// All ranks of the communicator call Create, Save and SaveAsync in the same order. Every rank runs
// the same sequence of collectives whatever its own outcome; a failure of one rank becomes the same
// error on all, naming the first cause (rank, host, operation, path, errno). After such a failure
// each rank has removed its own files and no marker exists, unless OutcomeIsUnknown. If the
// communicator itself fails, ranks may return different results: once a rank handed rank 0 what it
// needs, the outcome is unknown to it (Comm or Timeout, with OutcomeIsUnknown). Payload never
// travels through the communicator. Thread safety: one call at a time. Engine and communicator
// outlive the saver.
class SEALPOINT_EXPORT Saver {
 public:
  // Exchanges nothing. Errors: InvalidArgument (an option, the same on all ranks if these are).
  static Result<std::unique_ptr<Saver>> Create(Engine& engine, Communicator& communicator,
                                               SaverOptions options = {});
  virtual ~Saver() = default;
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // Saves what `sources` (bound to its declaration) holds. Before the first payload byte is
  // written, all ranks know that the declarations agree and that every element is held (by exactly
  // one rank or one replica group). Errors: Sources::failure() of any rank; those of Commit and
  // BlobWriter; InvalidArgument also for ranks that disagree on target, step or declaration; Comm,
  // Timeout. Durability: after
  // success on any rank the checkpoint survives a crash.
  // Waits for pending saves first.
  virtual Result<CommitInfo> Save(const SaveTarget& target, const SaveOptions& options,
                                  const Sources& sources) = 0;

  // The same in the background. Returns when the state is copied to staging memory: the
  // sources and their declaration may change then, and what is stored is what they held before.
  // If EngineOptions::memory_budget_bytes holds all that this rank writes (and a little more),
  // on all ranks, that is all it waits for; else it first waits for pending saves, and then until
  // the last byte is staged while the first are being written. It never fails because that
  // memory is too small. Chunks with a codec are encoded meanwhile.
  //
  // Saves are carried out one after the other, each a whole Save of its own, by a thread of the
  // saver. It makes no MPI call: exchanges happen inside Poll, Wait, and the next calls of the
  // saver. Errors here: InvalidArgument (arguments; ranks that disagree), Unsupported (a
  // communicator without DuplicateForBackground), Comm, Timeout, the same on all ranks; all others
  // are those of the save and come from Wait. None of them is a reason to stop training.
  //
  // A saver that is destroyed, collectively, before the outcome is known abandons the save: it
  // waits for the file operation under way, and the outcome may be unknown to ranks. A process that
  // ends without destroying it leaves an uncommitted attempt or a whole checkpoint, never part of
  // one.
  virtual Result<std::unique_ptr<PendingSave>> SaveAsync(const SaveTarget& target,
                                                         const SaveOptions& options,
                                                         const Sources& sources) = 0;

  // Local, for any thread: the promotions of this rank that are over and were not returned before,
  // in the order of their ends. A failed one is tried again before the next, and then reported
  // again.
  virtual std::vector<Promotion> TakePromotions() = 0;
  // Local, for any thread: waits until no promotion is under way on this rank, at most so long.
  // True if none is. A saver that is destroyed gives up those that are: the local checkpoint stays,
  // and ResumePromotions goes on.
  virtual bool WaitForPromotions(std::chrono::milliseconds longest) = 0;

 protected:
  Saver() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_SAVER_H_
