// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/promotion_queue.h"

#include <unistd.h>

#include <string>
#include <system_error>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/promote/promote_files.h"
#include "lib/saver/background_save.h"
#include "lib/storage/path.h"

namespace sealpoint::internal {

Status DropLocal(Storage& storage, const std::string& directory) {
  const auto pass = [](const Status& removed) {
    return removed.code() == Code::kNotFound ? Status() : removed;
  };
  const auto parent = storage.OpenDirectory(ParentPath(directory));
  if (!parent.ok()) return pass(parent.error());
  const std::string name(LastComponent(directory));
  const auto opened = (*parent)->OpenSubdirectory(name);
  if (!opened.ok()) return pass(opened.error());
  if ((*opened)->Stat(kKeepName).ok()) return {};
  SEALPOINT_ASSIGN_OR_RETURN(const auto entries, (*opened)->List());
  SEALPOINT_RETURN_IF_ERROR(pass((*opened)->Remove(kMarkerName)));
  bool has_foreign = false;
  for (const EntryInfo& entry : entries) {
    const NameKind kind = ParseName(entry.name).kind;
    has_foreign = has_foreign || kind == NameKind::kForeign;
    if (kind == NameKind::kForeign || kind == NameKind::kMarker) continue;
    SEALPOINT_RETURN_IF_ERROR(pass((*opened)->Remove(entry.name)));
  }
  return has_foreign ? Status() : pass((*parent)->RemoveSubdirectory(name));
}

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

void PromotionQueue::Add(StagedCommit staged) {
  const std::lock_guard lock(mutex_);
  for (StagedCommit& failed : failed_) waiting_.push_back(std::move(failed));
  failed_.clear();
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
    StagedCommit staged = std::move(waiting_.front());
    waiting_.pop_front();
    is_running_ = true;
    lock.unlock();
    Promotion promotion = Run(staged);
    const bool is_done = promotion.status.ok();
    if (is_done) DropPromoted(staged);
    lock.lock();
    is_running_ = false;
    over_.push_back(std::move(promotion));
    if (!is_done) failed_.push_back(std::move(staged));
    changed_.notify_all();
  }
}

Promotion PromotionQueue::Run(const StagedCommit& staged) {
  const auto report = PromoteGiven(
      staged.local, staged.final,
      {.from_storage = storage_,
       .to_storage = storage_,
       .blobs = staged.blobs,
       .threads = options_.promote_threads,
       .memory_budget_bytes = static_cast<std::uint64_t>(options_.promote_threads) * 8 * kMiB,
       .deadline = options_.promote_deadline,
       .limits = options_.limits,
       .on_progress = [this](std::uint64_t) { return !is_closed_; }},
      GivenFiles{.marker = staged.marker, .index = staged.index});
  return {.directory = staged.final,
          .step = staged.step,
          .status = report.status(),
          .bytes_copied = report.ok() ? report->bytes_copied : 0};
}

// One process of each node removes; that it fails is no failure of the promotion, and the next one
// tries again.
void PromotionQueue::DropPromoted(const StagedCommit& staged) {
  if (!staged.is_first) return;
  promoted_.push_back({.local = staged.local});
  while (promoted_.size() > static_cast<std::size_t>(options_.keep_local)) {
    if (!DropLocal(*storage_, promoted_.front().local).ok()) return;
    promoted_.pop_front();
  }
}

std::vector<Promotion> PromotionQueue::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(over_, {});
}

bool PromotionQueue::WaitFor(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [this] { return waiting_.empty() && !is_running_; });
}

void PromotionQueue::Close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  for (const Promotion& promotion : Take()) {
    TellUnheard(options_, StrCat("promotion of ", promotion.directory), promotion.status);
  }
}

}  // namespace sealpoint::internal
