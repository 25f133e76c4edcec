// SPDX-License-Identifier: Apache-2.0
//
// Of the MPI adapter; included by mpi_communicator.h and by nobody else.
#ifndef SEALPOINT_MPI_COMMUNICATOR_HANDOVER_H_
#define SEALPOINT_MPI_COMMUNICATOR_HANDOVER_H_

#include <mpi.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sealpoint/status.h"

namespace sealpoint::internal {

inline Status MpiError(std::string_view operation, int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text = {};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  std::string message(operation);
  message.append(": ").append(text.data(), static_cast<std::size_t>(length));
  return Status(Code::kComm, message.append(" (MPI error ") + std::to_string(code) + ")");
}

// Where a thread in the background hands its non-blocking operations, one at a time, to the thread
// that may call MPI. Only that one, in Progress, makes MPI calls, so MPI_THREAD_FUNNELED is enough.
class MpiHandover {
 public:
  using Clock = std::chrono::steady_clock;
  // Makes the MPI call that fills in the request; returns its code.
  using Start = std::function<int()>;

  struct End {
    // Success: done. Timeout: `until` came first. Else what MPI said, or why it was interrupted.
    Status status{};
    // MPI may still touch the operation's memory, now and for ever.
    bool is_under_way = false;
  };

  // On the background thread: waits until the operation is over.
  End Run(std::string_view name, const Start& start, MPI_Request& request,
          std::optional<Clock::time_point> until) {
    std::unique_lock lock(mutex_);
    if (!interrupted_.ok()) return {interrupted_, false};
    name_ = name;
    start_ = &start;
    request_ = &request;
    state_ = State::kWanted;
    error_ = Status();
    const auto is_over = [this] { return state_ == State::kDone || !interrupted_.ok(); };
    bool in_time = true;
    if (until) {
      in_time = changed_.wait_until(lock, *until, is_over);
    } else {
      changed_.wait(lock, is_over);
    }
    const State reached = std::exchange(state_, State::kIdle);
    if (reached == State::kDone) return {error_, !error_.ok()};
    Status why = in_time ? interrupted_ : Status(Code::kTimeout, "");
    return {std::move(why), reached == State::kStarted};
  }

  // On the thread that may call MPI: begins or tests what is handed over. True where it moved.
  bool Progress() {
    const std::lock_guard lock(mutex_);
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
      if (const int code = (*start_)(); code != MPI_SUCCESS) return Finish(code);
    }
    int done = 0;
    const int code = MPI_Test(request_, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || done != 0) return Finish(code);
    return has_moved;
  }

  void Interrupt(const Status& why) {
    const std::lock_guard lock(mutex_);
    SetInterrupted(why);
  }
  bool is_interrupted() const {
    const std::lock_guard lock(mutex_);
    return !interrupted_.ok();
  }

 private:
  enum class State : std::uint8_t { kIdle, kWanted, kStarted, kDone };

  void SetInterrupted(const Status& why) {
    if (interrupted_.ok()) interrupted_ = why;
    changed_.notify_all();
  }
  bool Finish(int code) {
    if (code != MPI_SUCCESS) error_ = MpiError(name_, code);
    state_ = State::kDone;
    changed_.notify_all();
    return true;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kIdle;
  std::string_view name_;
  const Start* start_ = nullptr;
  MPI_Request* request_ = nullptr;
  Status error_;
  Status interrupted_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_MPI_COMMUNICATOR_HANDOVER_H_
