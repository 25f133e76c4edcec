// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PYTHON_SRC_CHECKPOINT_HANDLE_H_
#define SEALPOINT_PYTHON_SRC_CHECKPOINT_HANDLE_H_

#include <unistd.h>

#include <memory>
#include <utility>

#include "python/src/gil.h"
#include "python/src/status.h"
#include "sealpoint/checkpoint.h"

namespace sealpoint::python {

// A Checkpoint that can be closed while other threads read from it, and that a forked child (a
// worker of a data loader) may go on using. Its functions are called with the GIL, or on attached
// threads of an interpreter that has none.
class CheckpointHandle {
 public:
  CheckpointHandle(std::shared_ptr<const Checkpoint> checkpoint, OpenOptions options)
      : options_(std::move(options)), opened_{std::move(checkpoint), getpid()} {}
  ~CheckpointHandle() { Close(); }
  CheckpointHandle(const CheckpointHandle&) = delete;
  CheckpointHandle& operator=(const CheckpointHandle&) = delete;

  // Throws InvalidArgument after Close.
  std::shared_ptr<const Checkpoint> Get() {
    const Opened opened = Now();
    if (!opened.checkpoint) {
      throw StatusError(Status(Code::kInvalidArgument, "the checkpoint is closed"));
    }
    return opened.owner_pid == getpid() ? opened.checkpoint : OpenAgain(*opened.checkpoint);
  }

  const OpenOptions& options() const { return options_; }

  void Close() {
    Opened before;
    {
      const nb::ft_lock_guard lock(mutex_);
      std::swap(before, opened_);
    }
    if (!before.checkpoint) return;
    const GilRelease released;  // closes files
    before.checkpoint.reset();
  }

 private:
  struct Opened {
    std::shared_ptr<const Checkpoint> checkpoint{};  // null: closed
    pid_t owner_pid = 0;
  };

  Opened Now() {
    const nb::ft_lock_guard lock(mutex_);
    return opened_;
  }

  // The staging memory of the parent is not the child's. Marker and index are those that the parent
  // has verified.
  std::shared_ptr<const Checkpoint> OpenAgain(const Checkpoint& of_parent) {
    const ByteSpan marker = of_parent.marker_bytes();
    const ByteSpan index = of_parent.index_bytes();
    OpenOptions options = options_;
    options.check_files = false;
    std::shared_ptr<const Checkpoint> again;
    {
      const GilRelease released;  // the storage may be one of Python
      again = Value(Checkpoint::OpenFrom(of_parent.path(), Bytes(marker.begin(), marker.end()),
                                         Bytes(index.begin(), index.end()), options));
    }
    Opened now{again, getpid()};  // then what was there, which is destroyed without the lock
    const nb::ft_lock_guard lock(mutex_);
    if (opened_.checkpoint) std::swap(now, opened_);
    return again;
  }

  const OpenOptions options_;
  nb::ft_mutex mutex_;  // free where the GIL guards
  Opened opened_;
};

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_CHECKPOINT_HANDLE_H_
