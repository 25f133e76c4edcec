// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PHASES_H_
#define SEALPOINT_PHASES_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/status.h"

namespace sealpoint {

// Phases of a save and of a load, in execution order. A background save differs: it runs kPlan and
// kSnapshot before kPreflight. The spec uses the same names (spec/commit.md).
enum class Phase : std::uint8_t {
  // A save.
  kPreflight,   // directory, capabilities, same file system on all ranks
  kPlan,        // compare declarations, prove the tiling, divide replicas
  kSnapshot,    // background saves: copy payload to engine memory
  kWriteBlobs,  // write payload to storage
  kSyncBlobs,   // write trailers; sync and close blobs; sync the directory
  kAgree,       // exchange outcomes; merge blob contents and collect them on rank 0
  kCheckBlobs,  // rank 0: check existence and length of every blob
  kBuildIndex,  // rank 0: build the index from the merged contents
  kCheckIndex,  // rank 0: run the reader's full check of the index
  kWriteIndex,  // rank 0: write and sync index and unpublished marker; sync the directory
  kPublish,     // rank 0: publish as COMMIT; sync the directory
  kVerdict,     // send the outcome to all ranks
  // A load.
  kOpen,  // verify marker and index; stat blobs
  kPlanRead,
  kRead,  // read, verify, copy
  // Operations that consist of one phase. Such operations send only events of kind kProgress.
  kVerify,
  kCompare,  // comparison, content digest, statistics
  kCopy,     // copy, merge, thin, repair, promotion
};

// Returns the name of a phase, for example "write blobs".
SEALPOINT_EXPORT std::string_view PhaseName(Phase phase);

// An event that is sent at the beginning and at the end of every phase, and periodically during
// phases that move payload.
struct PhaseEvent {
  Phase phase = Phase::kPreflight;
  enum class Kind : std::uint8_t { kBegin, kProgress, kEnd } kind = Kind::kBegin;
  std::uint64_t bytes_done = 0;   // of this process, in this phase
  std::uint64_t bytes_total = 0;  // 0 if unknown or if no payload is moved
  // Step of the save, to distinguish concurrent saves. kNoStep in a load.
  std::uint64_t step = kNoStep;
};

// Type of every option `on_progress`. Called on the thread that runs the phase. Events of kind
// kProgress may come from any thread, one call at a time. The function must return soon and must
// not call the object that sends the event. If the function throws, the operation is cancelled
// (Code::kCancelled).
using PhaseCallback = std::function<void(const PhaseEvent&)>;

struct PhaseTime {
  Phase phase = Phase::kPreflight;
  double seconds = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const PhaseTime&, const PhaseTime&) = default;
};

// Duration of each phase of one save or load in this process.
struct SEALPOINT_EXPORT PhaseReport {
  std::vector<PhaseTime> phases{};

  double total_seconds() const;
  // Returns 0 if the phase did not run.
  double seconds(Phase phase) const;
  // Returns one line per phase: name, seconds, bytes, rate.
  std::string ToString() const;
};

// Human-readable progress of a save or load.
struct ProgressFigures {
  std::string what{};             // "write blobs", "verify", …; empty if idle
  std::uint64_t step = kNoStep;   // step of the save
  std::uint64_t bytes_done = 0;   // of this process
  std::uint64_t bytes_total = 0;  // 0 if unknown or if no payload is moved
  double bytes_per_second = 0;    // over the last few seconds; 0 if unknown
  // Absent if the total or the rate is unknown.
  std::optional<double> seconds_left{};
};

enum class BarStyle : std::uint8_t { kAscii, kUtf8 };

// Renders one line of at most `width` columns without control characters. The line begins with the
// name of the phase. A bar, the percentage, bytes, rate and time left follow, as far as they fit.
// Returns an empty string if idle.
SEALPOINT_EXPORT std::string RenderProgress(const ProgressFigures& figures, int width,
                                            BarStyle style);

// Computes progress figures from events. If saves overlap, the figures show the phase that started
// last. When that phase ends, the figures switch to the next phase that sends an event.
//
// Thread-safe.
class SEALPOINT_EXPORT Progress {
 public:
  using Clock = std::chrono::steady_clock;

  // Call this function from a PhaseCallback.
  void OnPhase(const PhaseEvent& event, Clock::time_point now = Clock::now());
  // Sets the progress of an operation without phases, such as a verification.
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
  // The rate is an average of samples, with weights that decrease with the age of a sample.
  // Initially the weights do not add up to 1, so the average is divided by their sum.
  double weighted_rate_ = 0;
  double weights_ = 0;
  std::uint64_t sampled_bytes_ = 0;
  Clock::time_point sampled_{};
};

// Keeps one line of a terminal up to date. If the file descriptor is not a terminal, nothing is
// drawn, so a program can use this class unconditionally. Drawing begins some time after the start
// of an operation, because a line for a short operation would only flicker.
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
  // Removes the line until the returned lock is destroyed, so that the program can write other
  // output to the terminal. Precondition: the calling thread does not already hold this lock.
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

// Identifies the traced process.
struct TraceOptions {
  int rank = 0;
  std::string host{};
};

// Writes the phases of one process's saves and loads to a file in Chrome's trace event format (an
// array of complete events). To view the file, open it in https://ui.perfetto.dev or
// chrome://tracing. In the file, the process id is the rank. Thread 0 is the thread that creates
// the trace (the training thread); thread 1 stands for the threads of a saver. Each phase is an
// event in the file. In addition, an event "save" spans all phases of a save on one thread, and an
// event "load" spans all phases of a load. Times are from the system clock, so that traces of
// several ranks can be merged (docs/guides/tracing.md).
//
// If a process dies, its file is still readable. Each event is written when its phase ends, and the
// format does not require the closing bracket of the array. An I/O error ends the trace but does
// not affect the save or load; Close returns the error.
//
// Thread-safe. Does nothing in a child process after fork.
class SEALPOINT_EXPORT Trace {
 public:
  // Replaces an existing file. Errors: NotFound, Io, NoSpace.
  static Result<std::unique_ptr<Trace>> Create(const std::string& path,
                                               const TraceOptions& options);
  virtual ~Trace() = default;  // see Close
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // Call this function from a PhaseCallback.
  virtual void OnPhase(const PhaseEvent& event) = 0;
  // Ends the array; later events are ignored. Returns the first write error.
  virtual Status Close() = 0;

 protected:
  Trace() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_PHASES_H_
