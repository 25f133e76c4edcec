// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_RATE_LIMIT_H_
#define SEALPOINT_READERS_VERIFY_RATE_LIMIT_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "sealpoint/storage.h"

namespace sealpoint::internal::verify {

// A token bucket for the reads of all threads. It begins empty, so that many short verifications,
// one after the other, keep to the limit as well, and holds the tokens of kCredit, so that a thread
// which wakes up late costs no rate. Thread safety: all functions.
class RateLimit {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kCredit{100};

  // 0: no limit.
  explicit RateLimit(std::uint64_t bytes_per_second, Clock::time_point now = Clock::now())
      : bytes_per_second_(bytes_per_second), paid_until_(now) {}

  bool is_on() const { return bytes_per_second_ != 0; }
  // Takes this many tokens, and returns the time from which the caller may use them.
  Clock::time_point Take(std::uint64_t bytes, Clock::time_point now = Clock::now());
  // Takes them and waits.
  void Wait(std::uint64_t bytes);
  // Size of one thread's reads: each waits for an eighth of a second, so that a verification can be
  // cancelled soon. Returns `bytes` without a limit.
  std::uint64_t ReadSize(std::uint64_t bytes, int threads) const;

 private:
  const std::uint64_t bytes_per_second_;
  std::mutex mutex_;
  Clock::time_point paid_until_;  // guarded by mutex_
};

// Returns a file with reads limited by `limit`, which must outlive it. Returns the file itself
// without a limit.
std::unique_ptr<ReadableFile> Limited(std::unique_ptr<ReadableFile> file, RateLimit& limit);

}  // namespace sealpoint::internal::verify

#endif  // SEALPOINT_READERS_VERIFY_RATE_LIMIT_H_
