// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_FIRST_ERROR_H_
#define SEALPOINT_LIB_STORAGE_FIRST_ERROR_H_

#include <mutex>

#include "sealpoint/status.h"

namespace sealpoint::internal::storage {

// Remembers the first error of a file for all threads that write it. After an error the file must
// not be used: the kernel reports a lost page once and then marks it clean, so a second fsync may
// succeed although the data is lost ("Can applications recover from fsync failures?", USENIX ATC
// 2020).
class FirstError {
 public:
  // The error that poisoned the file, else success.
  Status Get() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }

  // Poisons the file if `status` is an error and the first one. Returns `status`.
  Status Note(Status status) {
    const std::lock_guard lock(mutex_);
    if (error_.ok()) error_ = status;
    return status;
  }

 private:
  mutable std::mutex mutex_;
  Status error_;
};

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_FIRST_ERROR_H_
