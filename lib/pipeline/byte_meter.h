// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PIPELINE_BYTE_METER_H_
#define SEALPOINT_LIB_PIPELINE_BYTE_METER_H_

#include <cstdint>
#include <functional>
#include <mutex>

#include "sealpoint/phases.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::pipeline {

// Counts the bytes that the threads of a call have processed. Reports them to the caller, who may
// end the call. Thread safety: Add.
class ByteMeter {
 public:
  // One call at a time, on any thread. An error ends the call.
  using Callback = std::function<Status(std::uint64_t bytes_done, std::uint64_t bytes_total)>;

  // `callback` may be empty.
  explicit ByteMeter(Callback callback, std::uint64_t bytes_total = 0);

  // Not after the first Add.
  void set_bytes_total(std::uint64_t bytes_total) { bytes_total_ = bytes_total; }

  // Errors: that of the callback. All later calls return it too, without another callback.
  Status Add(std::uint64_t bytes);
  // Not while Add runs.
  std::uint64_t bytes_done() const { return bytes_done_; }

 private:
  const Callback callback_;
  std::uint64_t bytes_total_;
  std::mutex mutex_;
  std::uint64_t bytes_done_ = 0;
  Status failure_;
};

// A callback that calls the caller's `on_progress`, which is borrowed and may be empty. Errors:
// Cancelled (it threw).
ByteMeter::Callback ReportTo(const PhaseCallback& on_progress, Phase phase);

}  // namespace sealpoint::internal::pipeline

#endif  // SEALPOINT_LIB_PIPELINE_BYTE_METER_H_
