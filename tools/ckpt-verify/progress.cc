// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt-verify/progress.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>

#include "tools/common/terminal.h"
#include "tools/common/text.h"

namespace sealpoint::tools {
namespace {

constexpr std::chrono::milliseconds kInterval{200};
constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace

ProgressLine::ProgressLine(bool enabled) : enabled_(enabled && StderrIsTerminal()) {}

void ProgressLine::Clear() {
  if (has_text_) fmt::print(stderr, "{}", kClearLine);
  has_text_ = false;
}

void ProgressLine::Show(const VerifyProgress& progress) {
  if (!enabled_ || progress.bytes_total == 0) return;
  const Clock::time_point now = Clock::now();
  if (now - shown_ < kInterval) return;
  shown_ = now;
  has_text_ = true;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double rate = static_cast<double>(progress.bytes_done) / seconds;
  const double left = static_cast<double>(progress.bytes_total - progress.bytes_done) / rate;
  fmt::print(stderr, "{}{:3} %  {} of {}  {}/s  {} left", kClearLine,
             static_cast<int>(100.0 * static_cast<double>(progress.bytes_done) /
                              static_cast<double>(progress.bytes_total)),
             FormatBytes(progress.bytes_done), FormatBytes(progress.bytes_total),
             FormatBytes(static_cast<std::uint64_t>(rate)), FormatSeconds(left));
  std::fflush(stderr);
}

}  // namespace sealpoint::tools
