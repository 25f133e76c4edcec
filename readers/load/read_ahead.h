// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_READ_AHEAD_H_
#define SEALPOINT_READERS_LOAD_READ_AHEAD_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "lib/container/blob_files.h"
#include "readers/load/read_plan_data.h"

namespace sealpoint::internal {

// Tells the storage which ranges are read soon, so that the next ones are under way while one is
// verified and copied, and nothing is fetched that no plan asks for.
// Thread safety: all functions.
class ReadAhead {
 public:
  // Borrows both.
  ReadAhead(BlobFiles& files, std::span<const PlanRange> ranges) : files_(files), ranges_(ranges) {}

  // Before range `i` is read. What cannot be opened is not told; whoever reads it gets the error.
  void Reach(std::size_t i);

 private:
  // The first range that is not to be told yet when range `i` is read.
  std::size_t EndFor(std::size_t i) const;

  BlobFiles& files_;
  const std::span<const PlanRange> ranges_;
  std::mutex mutex_;
  std::size_t told_ = 0;  // so many of the ranges
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_LOAD_READ_AHEAD_H_
