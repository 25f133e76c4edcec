// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_VERIFY_PROGRESS_H_
#define SEALPOINT_TOOLS_CKPT_VERIFY_PROGRESS_H_

#include <chrono>

#include "sealpoint/verify.h"

namespace sealpoint::tools {

// A line on stderr that is rewritten: part done, rate, time left. Silent unless stderr is a
// terminal. Called by one thread at a time.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(const VerifyProgress& progress);
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;
  const bool enabled_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point shown_ = begin_;
  bool has_text_ = false;
};

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_VERIFY_PROGRESS_H_
