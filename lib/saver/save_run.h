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
#include "lib/saver/destination.h"
#include "lib/saver/frozen_blobs.h"
#include "lib/saver/preflight.h"
#include "lib/writer/blob_writer_impl.h"
#include "sealpoint/commit.h"
#include "sealpoint/communicator.h"
#include "sealpoint/engine.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// Records in `broken` that the communicator failed, if `cause` is such a failure and none was
// recorded. Returns `cause`.
Status NoteBroken(Status& broken, Status cause);
// Result of a save that does not begin because another save failed with `cause`. Its own outcome is
// known, regardless of that of the other save.
Status NotBegun(std::string_view reason, const Status& cause);

// "save of step 7 to runs/a".
std::string NameSave(const SaveTarget& target, const SaveOptions& save);
// "save of step 7 to runs/a, phase agree".
std::string DescribeSave(const SaveTarget& target, const SaveOptions& save, Phase phase);

// Options for a writer before the attempt is known; the writer reports to the recorder, which
// outlives it.
BlobWriterOptions WriterOptionsOf(const SaverOptions& options, const SaveOptions& save,
                                  observe::PhaseRecorder& recorder);

// One attempt at a checkpoint: all ranks take the steps of spec/commit.md together, in the calling
// thread or after it. All functions are collective unless stated otherwise; all ranks make the same
// calls, regardless of their outcome.
class SaveRun {
 public:
  // Borrows everything.
  SaveRun(Engine& engine, Communicator& comm, const SaverOptions& options, const SaveTarget& target,
          const SaveOptions& save, Destination& destination, observe::PhaseRecorder& recorder,
          FrozenBlobs& frozen)
      : engine_(engine),
        comm_(comm),
        options_(options),
        target_(target),
        save_(save),
        destination_(destination),
        recorder_(recorder),
        frozen_(frozen) {}

  // `local_status` is this rank's own outcome so far.
  Status Preflight(const Status& local_status = {});
  const Attempt& attempt() const { return destination_.attempt(); }
  bool allows_empty() const { return save_.allow_empty; }
  // After the preflight: links these groups from the parent. Returns the names of groups that need
  // not be written. Not collective. Errors: Io.
  Result<std::set<std::string>> LinkFrozen(std::span<const FrozenGroup> groups);
  // A writer for this attempt. Not collective.
  Result<std::unique_ptr<writer::BlobWriterImpl>> CreateWriter() const;
  // From the end of the payload to the verdict. `writer` has all of it, or is null where this rank
  // has `local_status` to report.
  Result<CommitInfo> Commit(writer::BlobWriterImpl* writer, Status local_status);
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
  Result<CommitInfo> CommitAndBroadcast(writer::BlobWriterImpl* writer,
                                        const std::vector<Bytes>& gathered);
  Status Unknown(const Status& cause);

  Engine& engine_;
  Communicator& comm_;
  const SaverOptions& options_;
  const SaveTarget& target_;
  const SaveOptions& save_;
  Destination& destination_;
  observe::PhaseRecorder& recorder_;
  FrozenBlobs& frozen_;
  std::vector<FrozenBlobs::Linked> linked_{};  // that this rank made
  Status broken_;
};

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_SAVE_RUN_H_
