// SPDX-License-Identifier: Apache-2.0
#include "lib/pipeline/byte_meter.h"

#include <exception>
#include <utility>

#include "lib/base/errors.h"

namespace sealpoint::internal::pipeline {
namespace {

// `on_progress` may take the total or not.
template <typename... Bytes>
Status Ask(const std::function<bool(Bytes...)>& on_progress, Bytes... bytes) {
  bool is_continued = false;
  try {
    is_continued = on_progress(bytes...);
  } catch (...) {
    // Whoever throws gives it up, too.
  }
  return is_continued ? Status()
                      : MakeError(Code::kCancelled, "the copy was given up by its caller");
}

}  // namespace

ByteMeter::ByteMeter(Callback callback, std::uint64_t bytes_total)
    : callback_(std::move(callback)), bytes_total_(bytes_total) {}

Status ByteMeter::Add(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_done_ += bytes;
  if (callback_ && failure_.ok()) failure_ = callback_(bytes_done_, bytes_total_);
  return failure_;
}

ByteMeter::Callback ReportTo(
    const std::function<void(std::uint64_t bytes_done, std::uint64_t bytes_total)>& on_progress) {
  if (!on_progress) return {};
  return [&on_progress](std::uint64_t bytes_done, std::uint64_t bytes_total) -> Status {
    try {
      on_progress(bytes_done, bytes_total);
      return {};
    } catch (const std::exception& error) {
      return MakeError(Code::kCancelled, "on_progress threw: ", error.what());
    } catch (...) {
      return MakeError(Code::kCancelled, "on_progress threw");
    }
  };
}

ByteMeter::Callback AskDuringCopy(
    const std::function<bool(std::uint64_t bytes_done, std::uint64_t bytes_total)>& on_progress) {
  if (!on_progress) return {};
  return [&on_progress](std::uint64_t bytes_done, std::uint64_t bytes_total) {
    return Ask(on_progress, bytes_done, bytes_total);
  };
}

ByteMeter::Callback AskDuringCopy(
    const std::function<bool(std::uint64_t bytes_done)>& on_progress) {
  if (!on_progress) return {};
  return [&on_progress](std::uint64_t bytes_done, std::uint64_t) {
    return Ask(on_progress, bytes_done);
  };
}

}  // namespace sealpoint::internal::pipeline
