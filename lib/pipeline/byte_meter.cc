// SPDX-License-Identifier: Apache-2.0
#include "lib/pipeline/byte_meter.h"

#include <utility>

#include "lib/observe/phase_recorder.h"

namespace sealpoint::internal::pipeline {
ByteMeter::ByteMeter(Callback callback, std::uint64_t bytes_total)
    : callback_(std::move(callback)), bytes_total_(bytes_total) {}

Status ByteMeter::Add(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_done_ += bytes;
  if (callback_ && failure_.ok()) failure_ = callback_(bytes_done_, bytes_total_);
  return failure_;
}

ByteMeter::Callback ReportTo(const PhaseCallback& on_progress, Phase phase) {
  if (!on_progress) return {};
  return [&on_progress, phase](std::uint64_t bytes_done, std::uint64_t bytes_total) {
    return observe::Tell(on_progress, {.phase = phase,
                                       .kind = PhaseEvent::Kind::kProgress,
                                       .bytes_done = bytes_done,
                                       .bytes_total = bytes_total});
  };
}

}  // namespace sealpoint::internal::pipeline
