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
#include "sealpoint/storage.h"

namespace sealpoint::internal::storage {

// Memory of one part. Initially undefined.
using PartBuffer = std::unique_ptr<std::byte[]>;

// The part buffers of an object storage, and the lock of all files being written there: a file
// usually waits for a buffer that another file returns.
//
// Each file has one buffer of its own for the next part to send, which never waits for another
// file. Otherwise files with half-filled parts could wait for each other forever. Further buffers
// are charged: to the storage, which has `memory_bytes` for them, or to the budget given to the
// file.
class PartBuffers {
 public:
  PartBuffers(std::uint64_t part_size_bytes, std::uint64_t memory_bytes);

  std::uint64_t part_size_bytes() const { return part_size_; }

  // All of the following under `mutex`; `changed` is notified when a buffer was given back, when a
  // part was handed over, and when a file failed.
  std::mutex mutex;
  std::condition_variable changed;
  // One buffer more, or fewer, is charged to `memory`, or to the storage if it is null.
  bool TryCharge(PartBudget* memory);
  void Discharge(PartBudget* memory);
  // Errors: NoSpace (out of memory).
  Result<PartBuffer> Take();
  // `may_keep`: for the next Take, as long as buffers are taken.
  void Give(PartBuffer buffer, bool may_keep);

 private:
  const std::uint64_t part_size_;
  const std::uint64_t count_max_;
  std::uint64_t charged_count_ = 0;  // to the storage
  std::uint64_t taken_count_ = 0;
  std::vector<PartBuffer> unused_;
};

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_PART_BUFFERS_H_
