// SPDX-License-Identifier: Apache-2.0
//
// Part of mpi_communicator_impl.h.
#ifndef SEALPOINT_DETAIL_MPI_COMMUNICATOR_HANDOVER_H_
#define SEALPOINT_DETAIL_MPI_COMMUNICATOR_HANDOVER_H_

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sealpoint/limits.h"
#include "sealpoint/mpi_communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::detail::mpi {

inline Status MpiError(std::string_view operation, int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text = {};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  std::string message(operation);
  message.append(": ").append(text.data(), static_cast<std::size_t>(length));
  return Status(Code::kComm, message.append(" (MPI error ") + std::to_string(code) + ")");
}

// Calls MPI_Test for each request; sets `done` to true if all requests are complete, and to false
// if not. Returns the first error code. Does not use MPI_Testall: this function may hide an error
// while another request is pending, and identifies the failed request only through individual
// statuses.
inline int TestAll(std::span<MPI_Request> requests, bool& done) {
  done = true;
  for (MPI_Request& request : requests) {
    int is_over = 1;  // MPI_Test also sets 1 for a null request
    const int code = MPI_Test(&request, &is_over, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return code;
    done = done && is_over != 0;
  }
  return MPI_SUCCESS;
}

// Runs the non-blocking operations of a background thread, one at a time. By default, the
// background thread hands each operation over to the thread that may call MPI. Only that thread
// makes MPI calls, in Progress, so MPI_THREAD_FUNNELED is enough. With MPI_THREAD_MULTIPLE, the
// background thread makes the calls itself.
class Handover {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Handover(bool is_multiple) : is_multiple_(is_multiple) {}
  bool is_multiple() const { return is_multiple_; }

  // Makes the MPI calls that fill in the requests; returns the first error code.
  using Start = std::function<int()>;

  struct End {
    // Success, an MPI error, the reason for an interruption, or Timeout if is_late is set.
    Status status{};
    bool is_late = false;  // the deadline passed
    // True if MPI may still access the operation's memory, at any later time.
    bool is_under_way = false;
  };

  // On the background thread: begins a communicator call. All operations of this call share the
  // deadline.
  void StartClock(std::chrono::milliseconds deadline) {
    const std::lock_guard lock(mutex_);
    deadline_ = PolledDeadline(deadline);
  }

  // On the background thread: waits until the operation is over. Only Advance checks the deadline,
  // because the operation advances only in Advance.
  End Run(std::string_view name, const Start& start, std::span<MPI_Request> requests) {
    std::unique_lock lock(mutex_);
    if (!interrupted_.ok()) return {.status = interrupted_};
    name_ = name;
    start_ = &start;
    requests_ = requests;
    state_ = State::kWanted;
    error_ = Status();
    if (is_multiple_) {
      Drive(lock);
    } else {
      changed_.wait(lock, [this] { return IsOver(); });
    }
    const State reached = std::exchange(state_, State::kIdle);
    if (reached == State::kDone) return {.status = error_, .is_under_way = !error_.ok()};
    if (reached == State::kLate) {
      return {.status = Status(Code::kTimeout, ""), .is_late = true, .is_under_way = true};
    }
    return {.status = interrupted_, .is_under_way = reached == State::kStarted};
  }

  // On the thread that may call MPI: starts or tests the current operation. Returns true if the
  // operation made progress.
  bool Progress() {
    const std::lock_guard lock(mutex_);
    return !is_multiple_ && Advance();
  }

  void Interrupt(const Status& reason) {
    const std::lock_guard lock(mutex_);
    SetInterrupted(reason);
  }
  bool is_interrupted() const {
    const std::lock_guard lock(mutex_);
    return !interrupted_.ok();
  }

 private:
  enum class State : std::uint8_t { kIdle, kWanted, kStarted, kDone, kLate };

  bool IsOver() const {
    return state_ == State::kDone || state_ == State::kLate || !interrupted_.ok();
  }
  // The mutex is held during each MPI call, so no MPI call is made after Interrupt has returned.
  // The thread first yields, because most exchanges take less than 1 ms. If the exchange takes
  // longer, a rank is probably late. Between tests, the thread then sleeps for 1/16 of the time
  // that it has waited so far, up to 5 ms.
  void Drive(std::unique_lock<std::mutex>& lock) {
    constexpr int kYields = 200;
    constexpr std::chrono::microseconds kLongestSleep(5000);
    const auto began = Clock::now();
    for (int tests = 0;; ++tests) {
      Advance();
      if (IsOver()) return;
      if (tests < kYields) {
        lock.unlock();
        sched_yield();
        lock.lock();
      } else {
        changed_.wait_for(lock,
                          std::min<Clock::duration>((Clock::now() - began) / 16, kLongestSleep),
                          [this] { return IsOver(); });
      }
      if (IsOver()) return;
    }
  }
  // Starts or tests the current operation. Precondition: the mutex is held.
  bool Advance() {
    if (state_ != State::kWanted && state_ != State::kStarted) return false;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) {
      SetInterrupted(Status(Code::kComm, "MPI was finalized"));
      return false;
    }
    bool has_moved = false;
    if (state_ == State::kWanted) {
      state_ = State::kStarted;
      has_moved = true;
      deadline_.Resume();  // until now there was no operation to wait for
      if (const int code = (*start_)(); code != MPI_SUCCESS) return Finish(code);
    }
    bool done = false;
    const int code = TestAll(requests_, done);
    if (code != MPI_SUCCESS || done) return Finish(code);
    if (deadline_.IsOver()) {
      state_ = State::kLate;
      changed_.notify_all();
    }
    return has_moved;
  }
  void SetInterrupted(const Status& reason) {
    if (interrupted_.ok()) interrupted_ = reason;
    changed_.notify_all();
  }
  bool Finish(int code) {
    if (code != MPI_SUCCESS) error_ = MpiError(name_, code);
    state_ = State::kDone;
    changed_.notify_all();
    return true;
  }

  const bool is_multiple_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kIdle;
  std::string_view name_;
  const Start* start_ = nullptr;
  std::span<MPI_Request> requests_;
  Status error_;
  Status interrupted_;
  PolledDeadline deadline_{kForever};
};

}  // namespace sealpoint::detail::mpi

#endif  // SEALPOINT_DETAIL_MPI_COMMUNICATOR_HANDOVER_H_
