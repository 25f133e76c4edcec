// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/background_save.h"

#include <cstdio>
#include <string>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/saver/save_run.h"
#include "lib/storage/durable.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::saver {

// Destructors call this, which no exception may leave.
void ReportUnobserved(const SaverOptions& options, const std::string& what, const Status& error) {
  if (error.ok() || error.code() == Code::kCancelled) return;
  if (options.on_unobserved_failure) {
    try {
      return options.on_unobserved_failure(what, error);
    } catch (...) {
      // The line below is written instead.
    }
  }
  std::fprintf(stderr,
               "sealpoint: %s failed in the background, and its result was not requested: %s\n",
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
  SaveRun run(engine, comm,
              {.saver = saver_options_,
               .target = target_,
               .options = options_,
               .destination = *destination_,
               .recorder = recorder_,
               .frozen = *frozen_});
  recorder_.Begin(Phase::kPreflight);
  Result<CommitInfo> result = run.Run(*this);
  broken = run.broken();
  staged_writer_.reset();
  writer_.reset();
  return result;
}

// What failed on the training thread of one rank is its contribution to the first agreement, in the
// preflight.
Status BackgroundSave::Ready() const {
  const Status status = staged();
  return status.ok() ? recorder_.failure() : status;
}

void BackgroundSave::Drop(const std::set<std::string>& linked) {
  linked_groups_ = linked;
  for (const FrozenGroup& group : groups_) {
    if (linked.contains(group.name)) tensor_bytes_ -= group.bytes;
  }
  if (staged_writer_) staged_writer_->Drop(linked);
}

Status BackgroundSave::Write(const SaveRun& run) {
  if (staged_writer_) return Bind(run);
  SEALPOINT_ASSIGN_OR_RETURN(writer_, run.CreateWriter());
  return WaitForStaging();
}

Status BackgroundSave::Bind(const SaveRun& run) {
  SEALPOINT_ASSIGN_OR_RETURN(auto directory, storage_.OpenDirectory(run.attempt().directory));
  writer::StagedWriter::Bound bound =
      std::move(*staged_writer_).Bind(std::move(directory), run.attempt().id);
  staged_writer_.reset();
  writer_ = std::move(bound.writer);
  return bound.status;
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
  Status late =
      MakeError(Code::kTimeout, what, has_begun ? "" : " (not begun)",
                ": the background save did not end within ", deadline_.limit().count(), " ms");
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
void BackgroundSave::ReportIfUnobserved() const {
  if (result_) ReportUnobserved(saver_options_, NameSave(target_, options_), result_->status());
}

void BackgroundSave::WaitForChange(std::chrono::microseconds longest) const {
  std::unique_lock lock(mutex_);
  if (!result_) changed_.wait_for(lock, longest);
}

}  // namespace sealpoint::internal::saver
