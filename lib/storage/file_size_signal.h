// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_FILE_SIZE_SIGNAL_H_
#define SEALPOINT_LIB_STORAGE_FILE_SIZE_SIGNAL_H_

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <ctime>

namespace sealpoint::internal::storage {

// While it lives, a write or an allocation beyond the process's limit on file sizes is the error
// EFBIG and not the signal SIGXFSZ, which ends the process. The signal goes to the calling thread.
class WithoutFileSizeSignal {
 public:
  WithoutFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    is_blocked_ = pthread_sigmask(SIG_BLOCK, &signal_, &before_) == 0;
  }
  ~WithoutFileSizeSignal() {
    if (!is_blocked_) return;
    // Taken away before it can be delivered, unless the program had it blocked already.
    constexpr timespec kNoWait{};
    const bool was_blocked = sigismember(&before_, SIGXFSZ) == 1;
    if (has_failed_ && !was_blocked) static_cast<void>(sigtimedwait(&signal_, nullptr, &kNoWait));
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutFileSizeSignal(const WithoutFileSizeSignal&) = delete;
  WithoutFileSizeSignal& operator=(const WithoutFileSizeSignal&) = delete;

  // After a failed call: the signal may be pending. Keeps errno.
  void NoteFailure() { has_failed_ = has_failed_ || errno == EFBIG; }

 private:
  sigset_t signal_{};
  sigset_t before_{};
  bool is_blocked_ = false;
  bool has_failed_ = false;
};

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_FILE_SIZE_SIGNAL_H_
