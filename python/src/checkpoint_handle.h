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
// worker of a data loader) may go on using. Its functions are called with the GIL.
class CheckpointHandle {
 public:
  CheckpointHandle(std::shared_ptr<const Checkpoint> checkpoint, OpenOptions options)
      : checkpoint_(std::move(checkpoint)), options_(std::move(options)) {}
  ~CheckpointHandle() { Close(); }
  CheckpointHandle(const CheckpointHandle&) = delete;
  CheckpointHandle& operator=(const CheckpointHandle&) = delete;

  // Throws InvalidArgument after Close.
  std::shared_ptr<const Checkpoint> Get() {
    if (!checkpoint_) throw StatusError(Status(Code::kInvalidArgument, "the checkpoint is closed"));
    if (owner_pid_ != getpid()) OpenAgain();
    return checkpoint_;
  }

  const OpenOptions& options() const { return options_; }

  void Close() {
    auto checkpoint = std::exchange(checkpoint_, nullptr);
    if (!checkpoint) return;
    const GilRelease released;  // closes files
    checkpoint.reset();
  }

 private:
  // The staging memory of the parent is not the child's. Marker and index are those that the parent
  // has verified.
  void OpenAgain() {
    const ByteSpan marker = checkpoint_->marker_bytes();
    const ByteSpan index = checkpoint_->index_bytes();
    options_.check_files = false;
    std::shared_ptr<const Checkpoint> again;
    {
      const GilRelease released;  // the storage may be one of Python
      again = Value(Checkpoint::OpenFrom(checkpoint_->path(), Bytes(marker.begin(), marker.end()),
                                         Bytes(index.begin(), index.end()), options_));
    }
    checkpoint_ = std::move(again);
    owner_pid_ = getpid();
  }

  std::shared_ptr<const Checkpoint> checkpoint_;
  OpenOptions options_;
  pid_t owner_pid_ = getpid();
};

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_CHECKPOINT_HANDLE_H_
