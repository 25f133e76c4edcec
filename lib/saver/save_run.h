// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_SAVE_RUN_H_
#define SEALPOINT_LIB_SAVER_SAVE_RUN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/observe/phase_recorder.h"
#include "lib/saver/destination.h"
#include "lib/saver/frozen_blobs.h"
#include "lib/saver/preflight.h"
#include "lib/writer/blob_writer_impl.h"
#include "lib/writer/pinned_base.h"
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

// One save and the strategies chosen for it. Borrows everything.
struct SaveContext {
  const SaverOptions& saver;
  const SaveTarget& target;
  const SaveOptions& options;
  Destination& destination;
  observe::PhaseRecorder& recorder;
  FrozenBlobs& frozen;
};

class SaveRun;

// The payload of a save, between its sources and this rank's blobs. SaveRun takes the same steps
// with each payload; the thread that has the sources makes the difference. The functions are in the
// order of the steps, and local unless stated otherwise.
class Payload {
 public:
  Payload() = default;
  virtual ~Payload() = default;
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;

  // Collective: the first exchange of the call, unless it came before.
  virtual Status Begin() { return {}; }
  // This rank's own outcome so far.
  virtual Status Ready() const = 0;
  // Collective: the agreement on a plan, unless it came before.
  virtual Status Plan() { return {}; }
  // Groups of the plan that may be linked to an attempt. The result is valid until Drop.
  virtual Result<std::span<const FrozenGroup>> FindGroups(const Attempt& attempt) = 0;
  // Removes the groups that were linked from the plan. Not called after an error.
  virtual void Drop(const std::set<std::string>& linked) = 0;
  // Upper bound of tensor_bytes, known before Plan; kNotPlanned if there is none.
  virtual std::uint64_t planned_bytes() const { return kNotPlanned; }
  // That this rank writes.
  virtual std::uint64_t tensor_bytes() const = 0;
  // Writes the plan.
  virtual Status Write(const SaveRun& run) = 0;
  // Null if Write was not called, or failed to create one.
  virtual writer::BlobWriterImpl* writer() = 0;
};

// One attempt at a checkpoint: all ranks take the steps of spec/commit.md together, in the calling
// thread or after it. A rank that failed still takes part in each step, so that all ranks make the
// same collective calls.
class SaveRun {
 public:
  // Borrows everything.
  SaveRun(Engine& engine, Communicator& comm, const SaveContext& save)
      : engine_(engine), comm_(comm), save_(save) {}

  // Collective. All steps of the save, and the promotion of a staged one. Precondition: the phase
  // kPreflight has begun.
  Result<CommitInfo> Run(Payload& payload);
  // After the preflight.
  const Attempt& attempt() const { return save_.destination.attempt(); }
  // A writer for this attempt. Local.
  Result<std::unique_ptr<writer::BlobWriterImpl>> CreateWriter() const;
  // Not success: the communicator failed, and the ranks may disagree on where they are.
  const Status& broken() const { return broken_; }

 private:
  Result<CommitInfo> TakeSteps(Payload& payload);
  // `local_status`: this rank's own outcome so far.
  Status Preflight(const Status& local_status, std::uint64_t planned_bytes);
  // The base of a delta; empty for a full checkpoint. On rank 0. Errors: those of PinnedBase::Open.
  Result<std::optional<writer::PinnedBase>> OpenBase() const;
  // Links groups of the payload from the parent. Local. Errors: Device, Io.
  Status Link(Payload& payload);
  std::vector<BlobSummary> LinkedSummaries() const;
  // From the end of the payload to the verdict. `writer` has all of it, or is null where this rank
  // has `local_status` to report.
  Result<CommitInfo> Commit(writer::BlobWriterImpl* writer, Status local_status);
  Result<CommitInfo> CommitAndBroadcast(writer::BlobWriterImpl* writer,
                                        std::vector<Bytes> gathered);
  Result<CommitInfo> CommitOnRoot(std::vector<Bytes> gathered);
  // After an agreed failure before publication every rank removes its own files; the last one out
  // is rank 0, which removes the directory if that left it empty. Returns `cause`.
  Status Fail(writer::BlobWriterImpl* writer, Status cause);
  Status Unknown(const Status& cause);
  // Says of a failure of the communicator which save and phase it ended, and remembers it. Local.
  Status NoteFailure(Status cause);

  Engine& engine_;
  Communicator& comm_;
  const SaveContext save_;
  std::vector<FrozenBlobs::Linked> linked_{};  // that this rank made
  Status broken_;
};

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_SAVE_RUN_H_
