// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_BACKGROUND_SAVE_H_
#define SEALPOINT_LIB_SAVER_BACKGROUND_SAVE_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/observe/phase_recorder.h"
#include "lib/saver/destination.h"
#include "lib/saver/frozen_blobs.h"
#include "lib/saver/save_run.h"
#include "lib/writer/blob_writer_impl.h"
#include "lib/writer/staged_writer.h"
#include "sealpoint/commit.h"
#include "sealpoint/communicator.h"
#include "sealpoint/engine.h"
#include "sealpoint/limits.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// Effectively infinite, but safe in chrono arithmetic.
inline constexpr std::chrono::milliseconds kLongestWait = std::chrono::hours(24 * 3650);

// Reports an unobserved failure as the options specify; ignores success and cancelled saves.
void ReportUnobserved(const SaverOptions& options, const std::string& what, const Status& error);

// One background save. The training thread stages the payload, the background thread runs the steps
// of the commit, and either may wait for the other. There are two ways to stage:
//   whole: the memory budget holds everything that this rank writes. The training thread fills a
//   writer without a directory; then the save is queued, and Run binds the writer to a directory.
//   streamed: the budget is smaller. The save is queued first; Run creates the directory and a
//   writer in it; the training thread fills that writer while it writes, and Run waits for
//   SetStaged.
// Members without a lock change owner: the writers and staged_ belong to the training thread before
// the save is queued and (streamed) between is_bound and SetStaged, otherwise to the background
// thread.
class BackgroundSave final : public Payload {
 public:
  // `promotions`: see MakeDestination.
  BackgroundSave(Storage& storage, const SaverOptions& saver, SaveTarget target,
                 SaveOptions options, std::shared_ptr<PromotionQueue> promotions,
                 std::shared_ptr<FrozenBlobs> frozen)
      : storage_(storage),
        saver_options_(saver),
        frozen_(std::move(frozen)),
        target_(std::move(target)),
        options_(std::move(options)),
        destination_(MakeDestination(storage, target_, options_, std::move(promotions))),
        recorder_(saver.on_progress, options_.step, &is_cancelled_),
        deadline_(saver.background_deadline) {}

  // For the training thread before the save is queued, and between is_bound and SetStaged.
  observe::PhaseRecorder& recorder() { return recorder_; }
  const Destination& destination() const { return *destination_; }
  BlobWriterOptions writer_options() {
    return WriterOptionsOf(saver_options_, options_, recorder_);
  }

  // Before it is queued: what this rank writes, and groups of it that may be linked.
  void SetPlan(std::uint64_t tensor_bytes, std::vector<FrozenGroup> groups) {
    tensor_bytes_ = tensor_bytes;
    groups_ = std::move(groups);
  }
  // Before it is queued: `writer` has all data, or `status` is the reason why not.
  void SetStaged(std::unique_ptr<writer::StagedWriter> writer, Status status);
  // Streamed: once this is true, the training thread fills writer() and calls SetStaged. The writer
  // is null if an earlier step failed.
  bool is_bound() const;
  writer::BlobWriterImpl* writer() override { return writer_.get(); }
  // Groups that need not be written: their blobs are linked.
  const std::set<std::string>& linked_groups() const { return linked_groups_; }
  void SetStaged(Status status);

  // On the background thread, with its communicator; collective. End must follow with the result.
  // `broken` becomes an error if the communicator failed.
  Result<CommitInfo> Run(Engine& engine, Communicator& comm, Status& broken);
  // Instead of Run: frees the staged payload. Returns `why`.
  Result<CommitInfo> Refuse(const Status& reason);

  // For the training thread, before it is queued. The deadline counts from this call.
  void StartClock() { deadline_ = PolledDeadline(deadline_.limit()); }
  // For any thread, as are TimeOut, End, result and WaitForChange.
  bool IsLate();
  // Cancels the save and returns Timeout. If it never began, its outcome is known: a later Run
  // finds it cancelled.
  Status TimeOut();
  // Sets the result, unless there is one already.
  void End(Result<CommitInfo> result);

  void Cancel() { is_cancelled_ = true; }
  // Absent before the save is over.
  std::optional<Result<CommitInfo>> result() const;
  // Reports its failure as the options specify. For one thread, once it is over; never throws.
  void ReportIfUnobserved() const;
  // Waits until is_bound() or result() may have changed, at most so long.
  void WaitForChange(std::chrono::microseconds longest) const;

 private:
  Status Ready() const override;
  Result<std::span<const FrozenGroup>> FindGroups(const Attempt& /*attempt*/) override {
    return std::span<const FrozenGroup>(groups_);
  }
  void Drop(const std::set<std::string>& linked) override;
  std::uint64_t planned_bytes() const override { return tensor_bytes_; }
  std::uint64_t tensor_bytes() const override { return tensor_bytes_; }
  Status Write(const SaveRun& run) override;
  Status Bind(const SaveRun& run);
  Status staged() const;
  Status WaitForStaging();

  Storage& storage_;
  const SaverOptions saver_options_;
  const std::shared_ptr<FrozenBlobs> frozen_;
  std::uint64_t tensor_bytes_ = 0;
  std::vector<FrozenGroup> groups_{};
  std::set<std::string> linked_groups_{};
  const SaveTarget target_;
  const SaveOptions options_;
  const std::unique_ptr<Destination> destination_;
  std::atomic<bool> is_cancelled_ = false;
  std::atomic<bool> has_begun_ = false;
  observe::PhaseRecorder recorder_;
  PolledDeadline deadline_;
  std::unique_ptr<writer::StagedWriter>
      staged_writer_;  // absent when streamed, and once it is bound
  std::unique_ptr<writer::BlobWriterImpl> writer_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool is_bound_ = false;
  std::optional<Status> staged_;  // how filling the writer ended
  std::optional<Result<CommitInfo>> result_;
};

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_BACKGROUND_SAVE_H_
