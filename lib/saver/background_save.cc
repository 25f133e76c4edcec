// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/background_save.h"

#include <cstdio>
#include <string>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/saver/save_run.h"
#include "lib/storage/durable.h"
#include "sealpoint/text.h"

namespace sealpoint::internal::saver {

// Destructors call this, which no exception may leave.
void TellUnheard(const SaverOptions& options, const std::string& what, const Status& error) {
  if (error.ok() || error.code() == Code::kCancelled) return;
  if (options.on_unheard_failure) {
    try {
      return options.on_unheard_failure(what, error);
    } catch (...) {
      // The line below is written instead.
    }
  }
  std::fprintf(stderr, "sealpoint: %s failed in the background, and nobody asked: %s\n",
               Printable(what).c_str(), error.ToString().c_str());
}

void BackgroundSave::SetStaged(std::unique_ptr<writer::StagedWriter> writer, Status status) {
  staged_writer_ = std::move(writer);
  staged_ = std::move(status);
}

bool BackgroundSave::is_bound() const {
  const std::lock_guard lock(mutex_);
  return is_bound_;
}

void BackgroundSave::SetStaged(Status status) {
  const std::lock_guard lock(mutex_);
  staged_ = std::move(status);
  changed_.notify_all();
}

Status BackgroundSave::staged() const {
  const std::lock_guard lock(mutex_);
  return staged_.value_or(Status());
}

Status BackgroundSave::WaitForStaging() {
  std::unique_lock lock(mutex_);
  is_bound_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return staged_.has_value(); });
  return *staged_;
}

Result<CommitInfo> BackgroundSave::Run(Engine& engine, Communicator& comm, Status& broken) {
  // Must precede the recorder's first look at is_cancelled_: TimeOut sets that flag and then
  // reads this one, so at least one of the two threads sees what the other did.
  has_begun_ = true;
  SaveRun run(engine, comm, saver_options_, target_, options_, *destination_, recorder_, *frozen_);
  Result<CommitInfo> result = TakeSteps(engine, comm, run);
  recorder_.End();
  if (result.ok()) {
    result->report = recorder_.report();
    destination_->Promote();
  }
  broken = run.broken();
  staged_writer_.reset();
  writer_.reset();
  return result;
}

// The steps of a save in the foreground, in another order: the declarations were compared and the
// payload was staged before the save was queued (spec/commit.md, 2.6). What failed on the training
// thread of one rank is its contribution to the first agreement, in the preflight.
Result<CommitInfo> BackgroundSave::TakeSteps(Engine& engine, Communicator& comm, SaveRun& run) {
  recorder_.Begin(Phase::kPreflight);
  Status status = staged();
  if (status.ok()) status = recorder_.failure();
  if (status.ok()) status = destination_->MakeRoom([this] { return recorder_.failure(); });
  status = run.Preflight(status);
  if (!status.ok()) return status;
  Status local_status = LinkFrozen(run);
  status = destination_->CheckFreeSpace(comm, tensor_bytes);
  if (!status.ok()) return run.Fail(writer_.get(), std::move(status));
  recorder_.Begin(Phase::kWriteBlobs, tensor_bytes);
  if (local_status.ok()) local_status = staged_writer_ ? Bind(engine, run) : Stream(run);
  return run.Commit(writer_.get(), std::move(local_status));
}

Status BackgroundSave::LinkFrozen(SaveRun& run) {
  SEALPOINT_ASSIGN_OR_RETURN(linked_groups_, run.LinkFrozen(frozen_groups_));
  for (const FrozenGroup& group : frozen_groups_) {
    if (linked_groups_.contains(group.name)) tensor_bytes -= group.bytes;
  }
  if (staged_writer_) staged_writer_->Drop(linked_groups_);
  return {};
}

Status BackgroundSave::Bind(Engine& engine, const SaveRun& run) {
  SEALPOINT_ASSIGN_OR_RETURN(auto directory,
                             engine.storage().OpenDirectory(run.attempt().directory));
  writer::StagedWriter::Bound bound =
      std::move(*staged_writer_).Bind(std::move(directory), run.attempt().id);
  staged_writer_.reset();
  writer_ = std::move(bound.writer);
  return bound.status;
}

Status BackgroundSave::Stream(const SaveRun& run) {
  SEALPOINT_ASSIGN_OR_RETURN(writer_, run.CreateWriter());
  return WaitForStaging();
}

Result<CommitInfo> BackgroundSave::Refuse(const Status& reason) {
  staged_writer_.reset();
  return reason;
}

bool BackgroundSave::IsLate() {
  const std::lock_guard lock(mutex_);
  return deadline_.IsOver();
}

Status BackgroundSave::TimeOut() {
  is_cancelled_ = true;
  const bool has_begun = has_begun_;
  const std::string what = DescribeSave(target_, options_, recorder_.current_phase());
  Status late = MakeError(Code::kTimeout, what, has_begun ? "" : " (not begun)",
                          ": in the background not over after ", deadline_.limit().count(), " ms");
  return has_begun ? storage::WithUnknownOutcome(std::move(late)) : late;
}

void BackgroundSave::End(Result<CommitInfo> result) {
  const std::lock_guard lock(mutex_);
  if (!result_) result_ = std::move(result);
  changed_.notify_all();
}

std::optional<Result<CommitInfo>> BackgroundSave::result() const {
  const std::lock_guard lock(mutex_);
  return result_;
}

// An error that Wait returned is not reported again.
void BackgroundSave::SayUnheard() const {
  if (result_) TellUnheard(saver_options_, NameSave(target_, options_), result_->status());
}

void BackgroundSave::WaitForChange(std::chrono::microseconds longest) const {
  std::unique_lock lock(mutex_);
  if (!result_) changed_.wait_for(lock, longest);
}

}  // namespace sealpoint::internal::saver
