// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "sealpoint/bytes.h"
#include "sealpoint/phases.h"

namespace sealpoint {
namespace {

using Seconds = std::chrono::duration<double>;

// Shorter than people look, longer than what one buffer takes.
constexpr double kSampleSeconds = 0.05;
// Age at which a sample weighs 1/e.
constexpr double kMemorySeconds = 3;
// What was seen for less than that tells a rate, but no future: files are opened, caches fill.
constexpr double kTrustSeconds = 1;

constexpr std::size_t kBarColumnsMin = 10;
constexpr std::size_t kBarColumnsMax = 30;

[[gnu::format(printf, 1, 2)]] std::string Format(const char* format, ...) {
  std::array<char, 64> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  return text.data();
}

// "15.4 MB/s".
std::string RateText(double bytes_per_second) {
  constexpr double kMost = 1e19;  // fits 64 bits
  return BytesText(static_cast<std::uint64_t>(std::min(bytes_per_second, kMost) + 0.5)) + "/s";
}

// "0:07", "3:05", "2:10:07"; rounded up, so that it says 0:00 only at the end.
std::string FormatTimeLeft(double seconds) {
  constexpr double kLongest = 100 * 3600.0 - 1;
  const auto whole = static_cast<int>(std::ceil(std::min(seconds, kLongest)));
  if (whole < 3600) return Format("%d:%02d left", whole / 60, whole % 60);
  return Format("%d:%02d:%02d left", whole / 3600, whole / 60 % 60, whole % 60);
}

double ShareDone(const ProgressFigures& figures) {
  return std::min(
      1.0, static_cast<double>(figures.bytes_done) / static_cast<double>(figures.bytes_total));
}

std::string RenderBar(double share, std::size_t columns, BarStyle style) {
  if (style == BarStyle::kAscii) {
    const auto full = static_cast<std::size_t>(share * static_cast<double>(columns - 2));
    std::string bar(columns - 2, '.');
    std::fill_n(bar.begin(), full, '#');
    bar.insert(bar.begin(), '[');
    bar.push_back(']');
    return bar;
  }
  // Blocks of one to eight eighths of a column.
  constexpr std::array kEighths = {"▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
  const auto eighths = static_cast<std::size_t>(share * static_cast<double>(columns * 8));
  std::string bar;
  for (std::size_t column = 0; column < columns; ++column) {
    const std::size_t here = eighths - std::min(eighths, column * 8);
    bar += here == 0 ? "░" : kEighths[std::min<std::size_t>(here, 8) - 1];
  }
  return bar;
}

}  // namespace

std::string RenderProgress(const ProgressFigures& figures, int width, BarStyle style) {
  if (figures.what.empty()) return "";
  const bool has_total = figures.bytes_total > 0;
  std::string line = figures.what;
  if (figures.step != kNoStep) {
    line.insert(0, Format("step %llu: ", static_cast<unsigned long long>(figures.step)));
  }
  const auto limit = static_cast<std::size_t>(std::max(width, 0));
  // Only what fits whole is added, the more important first. All but the bar is ASCII, and its
  // length does not depend on the figures, so that it does not jump.
  std::string bar;
  std::string texts;
  std::size_t used = line.size();
  const auto add = [&](const std::string& text) {
    if (used + 2 + text.size() > limit) return;
    texts += "  " + text;
    used += 2 + text.size();
  };
  if (has_total) add(Format("%3d %%", static_cast<int>(100 * ShareDone(figures))));
  if (figures.seconds_left) add(FormatTimeLeft(*figures.seconds_left));
  if (figures.bytes_per_second > 0) add(RateText(figures.bytes_per_second));
  const std::size_t columns = std::clamp(limit / 4, kBarColumnsMin, kBarColumnsMax);
  if (has_total && used + 2 + columns <= limit) {
    bar = "  " + RenderBar(ShareDone(figures), columns, style);
    used += 2 + columns;
  }
  if (figures.bytes_done > 0 || has_total) {
    const std::string done = BytesText(figures.bytes_done);
    add(has_total ? done + " of " + BytesText(figures.bytes_total) : done);
  }
  // Cut where not even the name fits; names are ASCII.
  return line.substr(0, limit) + bar + texts;
}

void Progress::OnPhase(const PhaseEvent& event, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (event.kind == PhaseEvent::Kind::kBegin) {
    Begin(PhaseName(event.phase), event.step, event.bytes_total, now);
  } else if (event.kind == PhaseEvent::Kind::kProgress) {
    if (figures_.what.empty()) {
      Begin(PhaseName(event.phase), event.step, event.bytes_total, now);
      sampled_bytes_ = event.bytes_done;  // when these were moved is not known
    }
    if (Follows(event)) Advance(event.bytes_done, now);
  } else if (Follows(event)) {
    figures_ = {};
  }
}

void Progress::Set(std::string_view what, std::uint64_t bytes_done, std::uint64_t bytes_total,
                   Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (figures_.what != what) Begin(what, kNoStep, bytes_total, now);
  figures_.bytes_total = bytes_total;
  Advance(bytes_done, now);
}

void Progress::Reset() {
  const std::lock_guard lock(mutex_);
  figures_ = {};
}

ProgressFigures Progress::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

bool Progress::Follows(const PhaseEvent& event) const {
  return figures_.step == event.step && figures_.what == PhaseName(event.phase);
}

void Progress::Begin(std::string_view what, std::uint64_t step, std::uint64_t bytes_total,
                     Clock::time_point now) {
  figures_ = {.what = std::string(what), .step = step, .bytes_total = bytes_total};
  weighted_rate_ = 0;
  weights_ = 0;
  sampled_bytes_ = 0;
  sampled_ = now;
}

void Progress::Advance(std::uint64_t bytes_done, Clock::time_point now) {
  figures_.bytes_done = bytes_done;
  const double passed = Seconds(now - sampled_).count();
  if (passed >= kSampleSeconds && bytes_done >= sampled_bytes_) {
    const double weight = 1 - std::exp(-passed / kMemorySeconds);
    const double rate = static_cast<double>(bytes_done - sampled_bytes_) / passed;
    weighted_rate_ += weight * (rate - weighted_rate_);
    weights_ += weight * (1 - weights_);
    figures_.bytes_per_second = weighted_rate_ / weights_;
    sampled_bytes_ = bytes_done;
    sampled_ = now;
  }
  const bool is_trusted = weights_ >= 1 - std::exp(-kTrustSeconds / kMemorySeconds);
  const bool is_known = is_trusted && figures_.bytes_per_second > 0 &&
                        figures_.bytes_total >= bytes_done && figures_.bytes_total > 0;
  figures_.seconds_left.reset();
  if (is_known) {
    figures_.seconds_left =
        static_cast<double>(figures_.bytes_total - bytes_done) / figures_.bytes_per_second;
  }
}

}  // namespace sealpoint
