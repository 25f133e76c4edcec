// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PROGRESS_H_
#define SEALPOINT_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "sealpoint/export.h"
#include "sealpoint/phases.h"

namespace sealpoint {

// How far a save or a load is, for a person.
struct ProgressFigures {
  std::string what{};             // "write blobs", "verify", …; empty: nothing is under way
  std::uint64_t step = kNoStep;   // of a save
  std::uint64_t bytes_done = 0;   // of this process
  std::uint64_t bytes_total = 0;  // 0: not known, or nothing is moved
  double bytes_per_second = 0;    // of the last seconds; 0: not known yet
  // Absent if total or rate are not known.
  std::optional<double> seconds_left{};
};

enum class BarStyle : std::uint8_t { kAscii, kUtf8 };

// One line of at most `width` columns, without control characters: bar, share, bytes, rate, time
// left, as much of it as there is room for. Empty if nothing is under way.
SEALPOINT_EXPORT std::string RenderProgress(const ProgressFigures& figures, int width,
                                            BarStyle style);

// Makes these figures out of events. If saves overlap it follows the phase that began last, and
// when that has ended, the next one of which it hears.
//
// Thread safety: any calls from any threads.
class SEALPOINT_EXPORT Progress {
 public:
  using Clock = std::chrono::steady_clock;

  // For a PhaseCallback.
  void OnPhase(const PhaseEvent& event, Clock::time_point now = Clock::now());
  // For what has no phases, such as a verification.
  void Set(std::string_view what, std::uint64_t bytes_done, std::uint64_t bytes_total,
           Clock::time_point now = Clock::now());
  void Reset();

  ProgressFigures figures() const;

 private:
  void Begin(std::string_view what, std::uint64_t step, std::uint64_t bytes_total,
             Clock::time_point now);
  void Advance(std::uint64_t bytes_done, Clock::time_point now);
  bool Follows(const PhaseEvent& event) const;

  mutable std::mutex mutex_;
  ProgressFigures figures_;
  // The rate is an average whose weights fall with age. Those of no age yet are missing in the sum,
  // so it is divided by what they add up to.
  double weighted_rate_ = 0;
  double weights_ = 0;
  std::uint64_t sampled_bytes_ = 0;
  Clock::time_point sampled_{};
};

// Keeps one line of a terminal up to date. Draws nothing if the file descriptor is not a terminal,
// so it may be used always; nothing either in the first moments, since what is over at once would
// only flicker.
//
// Thread safety: any calls from any threads.
class SEALPOINT_EXPORT ProgressLine {
 public:
  explicit ProgressLine(int fd = 2);  // stderr; borrowed
  ~ProgressLine();                    // takes the line off
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool is_terminal() const { return is_terminal_; }

  void OnPhase(const PhaseEvent& event);
  void Set(std::string_view what, std::uint64_t bytes_done, std::uint64_t bytes_total);
  // Takes the line off and forgets what it showed.
  void Clear();
  // Takes the line off, and keeps it off until what is returned is destroyed: for other output to
  // the terminal. Precondition: the calling thread doesn't hold it already.
  [[nodiscard]] std::unique_lock<std::mutex> Hold();

 private:
  void Draw();
  void Erase();

  const int fd_;
  const bool is_terminal_;
  const BarStyle style_;
  Progress progress_;
  std::mutex mutex_;
  bool is_drawn_ = false;
  bool has_begun_ = false;
  Progress::Clock::time_point next_{};  // not drawn before
};

}  // namespace sealpoint

#endif  // SEALPOINT_PROGRESS_H_
