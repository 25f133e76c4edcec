// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PROMOTE_COPY_METER_H_
#define SEALPOINT_LIB_PROMOTE_COPY_METER_H_

#include <cstdint>
#include <functional>
#include <mutex>

#include "lib/base/errors.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::promote {

// Tells the caller how far a copy is, who may end it. Thread safety: Add.
class CopyMeter {
 public:
  // Borrows the function, which may be empty. One that returns false or throws ends the copy.
  explicit CopyMeter(const std::function<bool(std::uint64_t bytes)>& on_progress)
      : on_progress_(on_progress) {}

  // Errors: Cancelled, from then on always.
  Status Add(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes;
    if (!on_progress_ || is_ended_) return ended();
    try {
      is_ended_ = !on_progress_(bytes_);
    } catch (...) {
      is_ended_ = true;
    }
    return ended();
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  Status ended() const {
    return is_ended_ ? MakeError(Code::kCancelled, "the copy was given up by its caller")
                     : Status();
  }

  const std::function<bool(std::uint64_t bytes)>& on_progress_;
  std::mutex mutex_;
  std::uint64_t bytes_ = 0;
  bool is_ended_ = false;
};

}  // namespace sealpoint::internal::promote

#endif  // SEALPOINT_LIB_PROMOTE_COPY_METER_H_
