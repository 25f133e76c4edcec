// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_PROMOTION_QUEUE_H_
#define SEALPOINT_LIB_SAVER_PROMOTION_QUEUE_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/id.h"
#include "sealpoint/promote.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::saver {

// A rank's data about a staged save that was committed on local storage, for its promotion.
struct StagedCommit {
  std::string local{};  // directory
  std::string final{};
  std::uint64_t step = 0;
  Bytes marker{};
  Bytes index{};
  std::vector<BlobId> blobs{};  // that this rank wrote
  bool is_first = false;        // the one rank of its node that placed index and marker there
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  Status last_try{};  // how its last promotion failed, if one did
};

// Removes a promoted checkpoint from local storage, unless it has a KEEP file; foreign files
// remain. Files that another process removes meanwhile are ignored. Precondition: `final` is
// durable. Errors: those of CheckIsCopy, Io.
Status DropLocal(Storage& storage, const std::string& directory, const std::string& final);

// The promotions of one rank, one after the other, on a thread of its own that talks to no other
// rank. Thread safety: all functions.
class PromotionQueue {
 public:
  // Starts no thread before the first promotion. In a forked child the last owner does not destroy
  // it.
  static std::shared_ptr<PromotionQueue> Create(std::shared_ptr<Storage> storage,
                                                const SaverOptions& options);
  PromotionQueue(const PromotionQueue&) = delete;
  PromotionQueue& operator=(const PromotionQueue&) = delete;

  // Before a staged save begins (R-STG-11): retries failed promotions and waits, as the options
  // specify, until fewer than unpromoted_max are pending. Errors: NoSpace, those of `check`, which
  // is called periodically.
  Status MakeRoom(const std::function<Status()>& check);
  void Add(StagedCommit staged);
  std::vector<Promotion> Take();
  bool WaitFor(std::chrono::milliseconds longest);
  // Ends the current promotion, discards waiting ones, and reports unobserved failures. Idempotent.
  void Close();

 private:
  PromotionQueue(std::shared_ptr<Storage> storage, const SaverOptions& options);
  ~PromotionQueue() = default;

  void TryFailedAgain();
  std::size_t unpromoted() const { return waiting_.size() + failed_.size() + (running_ ? 1 : 0); }
  Status NoRoom() const;
  void Work();
  Promotion Run(const StagedCommit& staged);
  bool CanBeTriedAgain(const Status& failed) const;
  void DropPromoted(const StagedCommit& staged);

  const std::shared_ptr<Storage> storage_;
  const SaverOptions options_;
  const int owner_pid_;
  std::atomic<bool> is_closed_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<StagedCommit> waiting_;
  std::vector<StagedCommit> failed_;   // which are tried again before the next
  std::deque<StagedCommit> promoted_;  // that are still on local storage; of the thread
  std::vector<Promotion> over_;
  std::optional<StagedCommit> running_;  // changed with the lock; its content is the thread's
  std::thread thread_;
};

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_PROMOTION_QUEUE_H_
