// SPDX-License-Identifier: Apache-2.0
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "sealpoint/phases.h"

namespace sealpoint {
namespace {

constexpr std::chrono::milliseconds kFirstMoments{300};
constexpr std::chrono::milliseconds kRedrawInterval{100};
constexpr std::string_view kEraseToEnd = "\x1b[K";
constexpr std::string_view kEraseAll = "\r\x1b[K";

bool CanDrawOn(int fd) {
  const char* const terminal = std::getenv("TERM");
  const bool is_dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return !is_dumb && isatty(fd) == 1;
}

// As setlocale would find it; the program's own locale is not touched.
BarStyle StyleOfLocale() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale = value;
    const bool is_utf8 = locale.find("UTF-8") != std::string_view::npos ||
                         locale.find("utf8") != std::string_view::npos ||
                         locale.find("utf-8") != std::string_view::npos;
    return is_utf8 ? BarStyle::kUtf8 : BarStyle::kAscii;
  }
  return BarStyle::kAscii;
}

int ColumnsOf(int fd) {
  constexpr int kUsual = 80;
  winsize size = {};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

// One write. Text that the terminal refuses is dropped, since the next drawing replaces it anyway.
void Write(int fd, std::string_view text) {
  [[maybe_unused]] const ssize_t written = write(fd, text.data(), text.size());
}

}  // namespace

ProgressLine::ProgressLine(int fd)
    : fd_(fd), is_terminal_(CanDrawOn(fd)), style_(StyleOfLocale()) {}

ProgressLine::~ProgressLine() { Clear(); }

void ProgressLine::OnPhase(const PhaseEvent& event) {
  if (!is_terminal_) return;
  const std::lock_guard lock(mutex_);
  progress_.OnPhase(event);
  const bool is_last = event.phase == Phase::kVerdict || event.phase == Phase::kRead;
  if (is_last && event.kind == PhaseEvent::Kind::kEnd) {
    Erase();
    has_begun_ = false;
  }
  Draw();
}

void ProgressLine::Set(std::string_view what, std::uint64_t bytes_done, std::uint64_t bytes_total) {
  if (!is_terminal_) return;
  const std::lock_guard lock(mutex_);
  progress_.Set(what, bytes_done, bytes_total);
  Draw();
}

void ProgressLine::Clear() {
  if (!is_terminal_) return;
  const std::lock_guard lock(mutex_);
  progress_.Reset();
  has_begun_ = false;
  Erase();
}

std::unique_lock<std::mutex> ProgressLine::Hold() {
  std::unique_lock lock(mutex_);
  Erase();
  return lock;
}

void ProgressLine::Draw() {
  const ProgressFigures figures = progress_.figures();
  if (figures.what.empty()) return;
  const auto now = Progress::Clock::now();
  if (!has_begun_) next_ = now + kFirstMoments;
  has_begun_ = true;
  if (now < next_) return;
  // The last column stays free: some terminals wrap as soon as it is written.
  std::string line(1, '\r');
  line.append(RenderProgress(figures, ColumnsOf(fd_) - 1, style_)).append(kEraseToEnd);
  Write(fd_, line);
  is_drawn_ = true;
  next_ = now + kRedrawInterval;
}

void ProgressLine::Erase() {
  if (is_drawn_) Write(fd_, kEraseAll);
  is_drawn_ = false;
}

}  // namespace sealpoint
