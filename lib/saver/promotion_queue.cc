// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/promotion_queue.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/promote/promote_files.h"
#include "lib/promote/staged_folder.h"
#include "lib/saver/background_save.h"
#include "lib/series/series_removal.h"
#include "lib/storage/path.h"

namespace sealpoint::internal::saver {

Status DropLocal(Storage& storage, const std::string& directory, const std::string& final) {
  const auto pass = [](const Status& removed) {
    return removed.code() == Code::kNotFound ? Status() : removed;
  };
  SEALPOINT_RETURN_IF_ERROR(pass(promote::CheckIsCopy(storage, directory, final)));
  const auto parent = storage.OpenDirectory(storage::ParentPath(directory));
  if (!parent.ok()) return pass(parent.error());
  const std::string name(storage::LastComponent(directory));
  const auto opened = (*parent)->OpenSubdirectory(name);
  if (!opened.ok()) return pass(opened.error());
  const auto keep = (*opened)->Stat(format::kKeepName);
  if (keep.error().code() != Code::kNotFound) return keep.status();
  return pass(series::RemoveWithDirectory(**parent, name, **opened));
}

namespace {

bool HasMarker(const Storage& storage, const std::string& path) {
  const auto directory = storage.OpenDirectory(path);
  return directory.ok() && (*directory)->Stat(format::kMarkerName).ok();
}

}  // namespace

PromotionQueue::PromotionQueue(std::shared_ptr<Storage> storage, const SaverOptions& options)
    : storage_(std::move(storage)), options_(options), owner_pid_(getpid()) {}

std::shared_ptr<PromotionQueue> PromotionQueue::Create(std::shared_ptr<Storage> storage,
                                                       const SaverOptions& options) {
  // As SaveQueue: a child has no thread to end.
  const auto destroy = [](PromotionQueue* queue) {
    if (getpid() == queue->owner_pid_) delete queue;
  };
  return {new PromotionQueue(std::move(storage), options), destroy};
}

// With the lock, as unpromoted and NoRoom.
void PromotionQueue::TryFailedAgain() {
  for (StagedCommit& failed : failed_) waiting_.push_back(std::move(failed));
  failed_.clear();
  changed_.notify_all();
}

// The others meet each other afterwards in a collective call, so that no rank waits here for longer
// than half of what they wait there.
Status PromotionQueue::MakeRoom(const std::function<Status()>& check) {
  constexpr std::chrono::milliseconds kSlice(50);
  const auto longest = std::min({options_.unpromoted_wait, options_.deadline / 2, kLongestWait});
  const auto end = std::chrono::steady_clock::now() + longest;
  const auto max = static_cast<std::size_t>(options_.unpromoted_max);
  std::unique_lock lock(mutex_);
  if (unpromoted() < max) return {};
  TryFailedAgain();
  // Until all have failed again: nothing comes of waiting then.
  while (unpromoted() >= max && failed_.size() < unpromoted()) {
    if (std::chrono::steady_clock::now() >= end) break;
    SEALPOINT_RETURN_IF_ERROR(check());
    changed_.wait_for(lock, kSlice);
  }
  return unpromoted() < max ? Status() : NoRoom();
}

Status PromotionQueue::NoRoom() const {
  const StagedCommit* oldest = running_ ? &*running_ : nullptr;
  const auto look_at = [&](const StagedCommit& one) {
    if (oldest == nullptr || one.since < oldest->since) oldest = &one;
  };
  std::for_each(waiting_.begin(), waiting_.end(), look_at);
  std::for_each(failed_.begin(), failed_.end(), look_at);
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::steady_clock::now() - oldest->since);
  return RuleError(Code::kNoSpace, "R-STG-11", unpromoted(),
                   " staged saves await promotion, expected fewer than ", options_.unpromoted_max,
                   " (unpromoted_max); the oldest, of step ", oldest->step, ", was committed ",
                   age.count(), " s ago, with destination ", oldest->final,
                   oldest->last_try.ok() ? "; it has not failed so far" : "; its last try failed: ",
                   oldest->last_try.ok() ? "" : oldest->last_try.ToString())
      .AtPath(oldest->local);
}

void PromotionQueue::Add(StagedCommit staged) {
  const std::lock_guard lock(mutex_);
  TryFailedAgain();
  waiting_.push_back(std::move(staged));
  changed_.notify_all();
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { Work(); });
  } catch (const std::system_error& error) {
    over_.push_back({.directory = waiting_.back().final,
                     .step = waiting_.back().step,
                     .status = MakeError(Code::kIo, "no thread for promotions: ", error.what())});
    failed_.push_back(std::move(waiting_.back()));
    waiting_.pop_back();
  }
}

void PromotionQueue::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_closed_ || !waiting_.empty(); });
    if (is_closed_) return;
    running_ = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    Promotion promotion = Run(*running_);
    if (promotion.status.ok()) DropPromoted(*running_);
    const bool can_be_tried_again = !promotion.status.ok() && CanBeTriedAgain(promotion.status);
    lock.lock();
    if (can_be_tried_again) {
      running_->last_try = promotion.status;
      failed_.push_back(*std::move(running_));
    }
    running_.reset();
    over_.push_back(std::move(promotion));
    changed_.notify_all();
  }
}

// Not if the local copy is gone, which somebody deleted, or if the final place has another marker:
// of another checkpoint, or a void one. Any other error may pass.
bool PromotionQueue::CanBeTriedAgain(const Status& failed) const {
  if (failed.code() == Code::kAlreadyExists && HasMarker(*storage_, running_->final)) return false;
  const auto local = storage_->OpenDirectory(running_->local);
  return local.ok() || local.error().code() != Code::kNotFound;
}

Promotion PromotionQueue::Run(const StagedCommit& staged) {
  const auto report = promote::PromoteGiven(
      {.from = staged.local, .to = staged.final},
      {.from_storage = storage_,
       .to_storage = storage_,
       .blobs = staged.blobs,
       .threads = options_.promote_threads,
       .memory_budget_bytes = options_.promote_memory_bytes,
       .deadline = options_.promote_deadline,
       .limits = options_.limits},
      container::GivenFiles{.marker = staged.marker, .index = staged.index},
      [this](std::uint64_t, std::uint64_t) {
        return is_closed_ ? MakeError(Code::kCancelled, "the saver was destroyed") : Status();
      });
  return {.directory = staged.final,
          .step = staged.step,
          .status = report.status(),
          .bytes_copied = report.ok() ? report->bytes_copied : 0};
}

// One process of each node removes; that it fails is no failure of the promotion, and the next one
// tries again.
void PromotionQueue::DropPromoted(const StagedCommit& staged) {
  if (!staged.is_first) return;
  promoted_.push_back({.local = staged.local, .final = staged.final});
  while (promoted_.size() > static_cast<std::size_t>(options_.keep_local)) {
    const StagedCommit& oldest = promoted_.front();
    if (!promote::CheckIsDurable(*storage_, oldest.final, options_.limits).ok()) return;
    if (!DropLocal(*storage_, oldest.local, oldest.final).ok()) return;
    promoted_.pop_front();
  }
}

std::vector<Promotion> PromotionQueue::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(over_, {});
}

bool PromotionQueue::WaitFor(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::min(longest, kLongestWait),
                           [this] { return waiting_.empty() && !running_; });
}

void PromotionQueue::Close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  for (const Promotion& promotion : Take()) {
    ReportUnobserved(options_, StrCat("promotion of ", promotion.directory), promotion.status);
  }
}

}  // namespace sealpoint::internal::saver
