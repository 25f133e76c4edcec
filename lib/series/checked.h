// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SERIES_CHECKED_H_
#define SEALPOINT_LIB_SERIES_CHECKED_H_

#include <cstdint>
#include <optional>

#include "lib/metadata/metadata.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::series {

// Tells which checkpoints of a series are checked for silent data corruption (R-FPR-04). Not
// thread-safe.
class CheckedHistory {
 public:
  // Success if the checkpoint is checked; otherwise the reason. Call it for all whole checkpoints
  // of a series, newest first.
  Status Look(std::uint64_t step, const metadata::Metadata& index);

 private:
  // Number of steps, from step 0 on, without a finding of the checkpoints so far; absent: they have
  // no finding.
  std::optional<std::uint64_t> good_steps_;
};

}  // namespace sealpoint::internal::series

#endif  // SEALPOINT_LIB_SERIES_CHECKED_H_
