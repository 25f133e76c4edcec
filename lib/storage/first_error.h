// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_FIRST_ERROR_H_
#define SEALPOINT_LIB_STORAGE_FIRST_ERROR_H_

#include <mutex>

#include "sealpoint/status.h"

namespace sealpoint::internal {

// Remembers the first error that a file met, for all threads that write it. After it nothing is
// attempted any more: the kernel reports a lost page once, so a second fsync may succeed falsely
// ("Can applications recover from fsync failures?", USENIX ATC 2020).
class FirstError {
 public:
  // The error by which the file is poisoned, else success.
  Status Get() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }

  // Poisons with `status` where it is an error and the first one; returns `status`.
  Status Note(Status status) {
    const std::lock_guard lock(mutex_);
    if (error_.ok()) error_ = status;
    return status;
  }

 private:
  mutable std::mutex mutex_;
  Status error_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_STORAGE_FIRST_ERROR_H_
