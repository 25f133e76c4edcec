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

// Human-readable progress of a save or load.
struct ProgressFigures {
  std::string what{};             // "write blobs", "verify", …; empty if idle
  std::uint64_t step = kNoStep;   // of a save
  std::uint64_t bytes_done = 0;   // of this process
  std::uint64_t bytes_total = 0;  // 0 if unknown or if no payload is moved
  double bytes_per_second = 0;    // over the last seconds; 0 if unknown
  // Absent if total or rate is unknown.
  std::optional<double> seconds_left{};
};

enum class BarStyle : std::uint8_t { kAscii, kUtf8 };

// Renders one line of at most `width` columns without control characters: bar, percentage, bytes,
// rate and time left, as far as they fit. Empty if idle.
SEALPOINT_EXPORT std::string RenderProgress(const ProgressFigures& figures, int width,
                                            BarStyle style);

// Computes progress figures from events. If saves overlap, it follows the phase that started last;
// when that ends, the next phase with an event.
//
// Thread-safe.
class SEALPOINT_EXPORT Progress {
 public:
  using Clock = std::chrono::steady_clock;

  // For a PhaseCallback.
  void OnPhase(const PhaseEvent& event, Clock::time_point now = Clock::now());
  // For operations without phases, such as a verification.
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
  // The rate is an average with weights that decrease with age. At the beginning the weights do not
  // add up to 1, so it is divided by their sum.
  double weighted_rate_ = 0;
  double weights_ = 0;
  std::uint64_t sampled_bytes_ = 0;
  Clock::time_point sampled_{};
};

// Keeps one line of a terminal up to date. Draws nothing if the file descriptor is not a terminal,
// so it can always be used, and nothing in the first moments, because short operations would only
// flicker.
//
// Thread-safe.
class SEALPOINT_EXPORT ProgressLine {
 public:
  explicit ProgressLine(int fd = 2);  // stderr; borrowed
  ~ProgressLine();                    // removes the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool is_terminal() const { return is_terminal_; }

  void OnPhase(const PhaseEvent& event);
  void Set(std::string_view what, std::uint64_t bytes_done, std::uint64_t bytes_total);
  // Removes the line and discards its content.
  void Clear();
  // Removes the line until the returned lock is destroyed, for other output to the terminal.
  // Precondition: the calling thread does not already hold it.
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
  Progress::Clock::time_point next_{};  // next time to draw
};

}  // namespace sealpoint

#endif  // SEALPOINT_PROGRESS_H_
