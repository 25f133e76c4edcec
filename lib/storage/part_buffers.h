// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_PART_BUFFERS_H_
#define SEALPOINT_LIB_STORAGE_PART_BUFFERS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "sealpoint/status.h"

namespace sealpoint::internal {

// Memory of one part. What it holds at first is not defined.
using PartBuffer = std::unique_ptr<std::byte[]>;

// The part buffers of an object storage, and the lock of all files that are being written there:
// what a file waits for is mostly a buffer that another one gives back.
//
// A buffer counts from Take to Give. At most `memory_bytes` are taken, and beyond that one buffer
// for each file: the first part that a file still has to send never waits for another file, else
// files that each hold a part, half filled by threads that all wait, would wait for ever.
class PartBuffers {
 public:
  PartBuffers(std::uint64_t part_size_bytes, std::uint64_t memory_bytes);

  std::uint64_t part_size_bytes() const { return part_size_; }

  // All of the following under `mutex`; `changed` is notified by Give, and by files when a part of
  // theirs was handed over, or when they failed.
  std::mutex mutex;
  std::condition_variable changed;
  bool has_free() const { return taken_count_ < count_max_; }
  // Errors: NoSpace (out of memory).
  Result<PartBuffer> Take();
  void Give(PartBuffer buffer);

 private:
  const std::uint64_t part_size_;
  const std::uint64_t count_max_;
  std::uint64_t taken_count_ = 0;
  std::vector<PartBuffer> unused_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_STORAGE_PART_BUFFERS_H_
