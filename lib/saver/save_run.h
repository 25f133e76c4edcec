// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_SAVE_RUN_H_
#define SEALPOINT_LIB_SAVER_SAVE_RUN_H_

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/observe/phase_recorder.h"
#include "lib/saver/frozen_blobs.h"
#include "lib/saver/preflight.h"
#include "lib/saver/staged_commit.h"
#include "lib/writer/blob_writer_impl.h"
#include "sealpoint/commit.h"
#include "sealpoint/communicator.h"
#include "sealpoint/engine.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// Remembers in `broken` that the communicator failed, if `why` says so and nothing did before.
// Returns `why`.
Status NoteBroken(Status& broken, Status cause);
// The answer to a save that does not begin because of `why`, which another one met: its own outcome
// is known, whatever that of the other.
Status NotBegun(std::string_view reason, const Status& cause);

// "save of step 7 to runs/a".
std::string NameSave(const SaveTarget& target, const SaveOptions& save);
// "save of step 7 to runs/a, phase agree".
std::string DescribeSave(const SaveTarget& target, const SaveOptions& save, Phase phase);

// What a writer is told of a save before its attempt is known; it tells the recorder, which
// outlives it.
BlobWriterOptions WriterOptionsOf(const SaverOptions& options, const SaveOptions& save,
                                  observe::PhaseRecorder& recorder);

// One attempt at a checkpoint, in which all ranks take the steps of spec/commit.md together, in the
// calling thread or after it. All functions are collective unless they say otherwise; all ranks
// call the same, whatever happened to them.
class SaveRun {
 public:
  // Borrows everything.
  SaveRun(Engine& engine, Communicator& comm, const SaverOptions& options, const SaveTarget& target,
          const SaveOptions& save, observe::PhaseRecorder& recorder, FrozenBlobs& frozen)
      : engine_(engine),
        comm_(comm),
        options_(options),
        target_(target),
        save_(save),
        recorder_(recorder),
        frozen_(frozen) {}

  // `local_status` is this rank's own outcome so far.
  Status Preflight(const Status& local_status = {});
  const Attempt& attempt() const { return attempt_; }
  bool allows_empty() const { return save_.allow_empty; }
  bool is_staged() const { return !target_.local.empty(); }
  // After the preflight: links what the parent has of these groups. Names those that need not be
  // written any more. Not collective. Errors: Io.
  Result<std::set<std::string>> LinkFrozen(std::span<const FrozenGroup> groups);
  // R-CMT-08: what all ranks write together fits.
  Status CheckFreeSpace(std::uint64_t tensor_bytes);
  // A writer for this attempt. Not collective.
  Result<std::unique_ptr<writer::BlobWriterImpl>> CreateWriter() const;
  // From the end of the payload to the verdict. `writer` has all of it, or is null where this rank
  // has `local_status` to report.
  Result<CommitInfo> Commit(writer::BlobWriterImpl* writer, Status local_status);
  // After the success of a staged save: what it is promoted with. Not collective.
  StagedCommit TakeStaged() { return std::move(staged_); }
  // After an agreed failure before publication every rank removes its own files; the last one out
  // is rank 0, which removes the directory if that left it empty. Returns `why`.
  Status Fail(writer::BlobWriterImpl* writer, Status cause);

  // Not collective. Says of a failure of the communicator which save and phase it ended, and
  // remembers it.
  Status NoteFailure(Status cause);
  // Not success: the communicator failed, and the ranks may disagree on where they are.
  const Status& broken() const { return broken_; }

 private:
  std::vector<BlobSummary> LinkedSummaries() const;
  Result<CommitInfo> CommitOnRoot(const std::vector<Bytes>& gathered);
  Status CheckLocalSpace(std::uint64_t tensor_bytes);
  Status NoteOwnBlobs(const std::vector<BlobSummary>& summaries);
  // R-STG-01. Of rank 0 only, within its commit: index and marker go to all.
  Status SendToNodes(ByteSpan index_file, ByteSpan marker);
  // On the other ranks; `broken` becomes an error if the communicator failed.
  Status PlaceOnNode(Status& broken);
  void PublishOnNode();
  void RemoveFromNode();
  Result<CommitInfo> CommitAndBroadcast(writer::BlobWriterImpl* writer,
                                        const std::vector<Bytes>& gathered);
  Status Unknown(const Status& cause);

  Engine& engine_;
  Communicator& comm_;
  const SaverOptions& options_;
  const SaveTarget& target_;
  const SaveOptions& save_;
  observe::PhaseRecorder& recorder_;
  FrozenBlobs& frozen_;
  std::vector<FrozenBlobs::Linked> linked_{};  // that this rank made
  Attempt attempt_;
  Status broken_;
  StagedCommit staged_;
  bool was_sent_ = false;                 // on rank 0: SendToNodes was called
  std::vector<std::string> own_files_{};  // that PlaceOnNode made
};

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_SAVE_RUN_H_
