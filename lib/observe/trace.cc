// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "lib/base/errors.h"
#include "sealpoint/phases.h"

namespace sealpoint {
namespace internal::observe {
namespace {

// Microseconds since 1970. Differences are those of the steady clock. The values are whole numbers,
// so that a phase ends exactly when the next one begins.
class TraceClock {
 public:
  std::int64_t Now() const {
    const auto passed = std::chrono::steady_clock::now() - steady_begin_;
    return Count(system_begin_.time_since_epoch() + passed);
  }

 private:
  template <typename Duration>
  static std::int64_t Count(Duration duration) {
    return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  }

  const std::chrono::steady_clock::time_point steady_begin_ = std::chrono::steady_clock::now();
  const std::chrono::system_clock::time_point system_begin_ = std::chrono::system_clock::now();
};

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') quoted.push_back('\\');
    quoted.push_back(byte < 0x20 ? ' ' : letter);
  }
  return quoted + "\"";
}

struct Span {
  std::string_view name{};
  std::int64_t begin_us = 0;
  std::int64_t end_us = 0;
  std::uint64_t bytes = 0;
  std::uint64_t step = kNoStep;
};

std::string ArgumentsOf(const Span& span) {
  std::string arguments;
  const auto add = [&](std::string_view name, std::uint64_t number) {
    if (!arguments.empty()) arguments += ", ";
    arguments += Quoted(name) + ": " + std::to_string(number);
  };
  if (span.step != kNoStep) add("step", span.step);
  if (span.bytes > 0) add("bytes", span.bytes);
  const std::int64_t us = span.end_us - span.begin_us;
  if (span.bytes > 0 && us > 0) {
    const double rate = static_cast<double>(span.bytes) * 1e6 / static_cast<double>(us);
    add("bytes_per_second", static_cast<std::uint64_t>(rate));
  }
  return arguments;
}

bool IsOfLoad(Phase phase) { return phase >= Phase::kOpen; }

// After these a thread has no more to do for the save or load.
bool IsLastOnItsThread(Phase phase) {
  return phase == Phase::kSnapshot || phase == Phase::kVerdict || phase == Phase::kRead;
}

class TraceImpl final : public Trace {
 public:
  TraceImpl(int fd, std::string path, const TraceOptions& options)
      : path_(std::move(path)), rank_(options.rank), fd_(fd) {
    Append(Metadata("process_name", 0,
                    "rank " + std::to_string(options.rank) +
                        (options.host.empty() ? "" : " on " + options.host)));
    Append(Metadata("thread_name", kTraining, "training"));
    Append(Metadata("thread_name", kBackground, "background"));
  }
  ~TraceImpl() override { static_cast<void>(Close()); }

  void OnPhase(const PhaseEvent& event) override;
  Status Close() override;

 private:
  static constexpr int kTraining = 0;
  static constexpr int kBackground = 1;

  // What is under way on one thread.
  struct Lane {
    bool has_phase = false;
    Span phase{};
    bool has_whole = false;
    Span whole{};  // the save or load around it; its end is that of its last phase so far
    Phase last = Phase::kPreflight;
  };

  std::string Metadata(std::string_view what, int thread, std::string_view name) const;
  void Begin(Lane& lane, int thread, const PhaseEvent& event);
  void End(Lane& lane, int thread, const PhaseEvent& event);
  void EndWhole(Lane& lane, int thread);
  void AppendSpan(const Span& span, int thread);
  void Append(const std::string& event);

  const std::string path_;
  const int rank_;
  const int owner_pid_ = getpid();
  const std::thread::id training_thread_ = std::this_thread::get_id();
  const TraceClock clock_;
  std::mutex mutex_;
  std::array<Lane, 2> lanes_;
  int fd_;  // -1: closed
  bool is_first_ = true;
  Status failure_;
};

std::string TraceImpl::Metadata(std::string_view what, int thread, std::string_view name) const {
  return "{\"name\": " + Quoted(what) + ", \"ph\": \"M\", \"pid\": " + std::to_string(rank_) +
         ", \"tid\": " + std::to_string(thread) + ", \"args\": {\"name\": " + Quoted(name) + "}}";
}

void TraceImpl::OnPhase(const PhaseEvent& event) {
  if (event.kind == PhaseEvent::Kind::kProgress || getpid() != owner_pid_) return;
  const int thread = std::this_thread::get_id() == training_thread_ ? kTraining : kBackground;
  const std::lock_guard lock(mutex_);
  Lane& lane = lanes_[static_cast<std::size_t>(thread)];
  if (event.kind == PhaseEvent::Kind::kBegin) {
    Begin(lane, thread, event);
  } else {
    End(lane, thread, event);
  }
}

void TraceImpl::Begin(Lane& lane, int thread, const PhaseEvent& event) {
  const std::int64_t now = clock_.Now();
  // The phases of one save or load ascend.
  const bool goes_on = lane.has_whole && lane.whole.step == event.step && lane.last < event.phase &&
                       IsOfLoad(lane.last) == IsOfLoad(event.phase);
  if (!goes_on) {
    EndWhole(lane, thread);
    lane.has_whole = true;
    lane.whole = {.name = IsOfLoad(event.phase) ? "load" : "save",
                  .begin_us = now,
                  .end_us = now,
                  .step = event.step};
  }
  lane.last = event.phase;
  lane.has_phase = true;
  lane.phase = {.name = PhaseName(event.phase), .begin_us = now, .step = event.step};
}

void TraceImpl::End(Lane& lane, int thread, const PhaseEvent& event) {
  if (!lane.has_phase) return;
  lane.has_phase = false;
  lane.phase.end_us = clock_.Now();
  lane.phase.bytes = event.bytes_done;
  lane.whole.end_us = lane.phase.end_us;
  lane.whole.bytes += event.bytes_done;
  AppendSpan(lane.phase, thread);
  if (IsLastOnItsThread(event.phase)) EndWhole(lane, thread);
}

void TraceImpl::EndWhole(Lane& lane, int thread) {
  if (lane.has_whole) AppendSpan(lane.whole, thread);
  lane.has_whole = false;
}

void TraceImpl::AppendSpan(const Span& span, int thread) {
  Append("{\"name\": " + Quoted(span.name) + ", \"ph\": \"X\", \"pid\": " + std::to_string(rank_) +
         ", \"tid\": " + std::to_string(thread) + ", \"ts\": " + std::to_string(span.begin_us) +
         ", \"dur\": " + std::to_string(span.end_us - span.begin_us) + ", \"args\": {" +
         ArgumentsOf(span) + "}}");
}

// One write per event, so that a process that is killed leaves whole events only.
void TraceImpl::Append(const std::string& event) {
  if (fd_ < 0 || !failure_.ok()) return;
  const std::string text = (is_first_ ? "[\n" : ",\n") + event;
  is_first_ = false;
  const ssize_t written = write(fd_, text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) return;
  failure_ = ErrnoError("write", written < 0 ? errno : ENOSPC).AtPath(path_);
}

Status TraceImpl::Close() {
  const std::lock_guard lock(mutex_);
  if (fd_ < 0) return failure_;
  if (getpid() == owner_pid_) {
    for (const int thread : {kTraining, kBackground}) {
      EndWhole(lanes_[static_cast<std::size_t>(thread)], thread);
    }
    const bool is_whole = failure_.ok();
    if (is_whole && write(fd_, "\n]\n", 3) != 3)
      failure_ = ErrnoError("write", errno).AtPath(path_);
  }
  if (close(std::exchange(fd_, -1)) != 0 && failure_.ok()) {
    failure_ = ErrnoError("close", errno).AtPath(path_);
  }
  return failure_;
}

}  // namespace
}  // namespace internal::observe

Result<std::unique_ptr<Trace>> Trace::Create(const std::string& path, const TraceOptions& options) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return internal::ErrnoError("open", errno).AtPath(path);
  return std::unique_ptr<Trace>(std::make_unique<internal::observe::TraceImpl>(fd, path, options));
}

}  // namespace sealpoint
