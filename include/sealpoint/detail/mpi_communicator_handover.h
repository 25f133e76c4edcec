// SPDX-License-Identifier: Apache-2.0
//
// Part of the MPI adapter; included by mpi_communicator.h alone.

// This is outside the guard because the class below is nested in a class of mpi_communicator.h, and
// the functions included at the end of that header need both. The headers can therefore be included
// in any order.
#include "sealpoint/mpi_communicator.h"

#ifndef SEALPOINT_DETAIL_MPI_COMMUNICATOR_HANDOVER_H_
#define SEALPOINT_DETAIL_MPI_COMMUNICATOR_HANDOVER_H_

#include <mpi.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sealpoint/deadline.h"
#include "sealpoint/status.h"

namespace sealpoint {

inline Status MpiCommunicator::MpiError(std::string_view operation, int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text = {};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  std::string message(operation);
  message.append(": ").append(text.data(), static_cast<std::size_t>(length));
  return Status(Code::kComm, message.append(" (MPI error ") + std::to_string(code) + ")");
}

// Transfers non-blocking operations of a background thread, one at a time, to the thread that may
// call MPI. Only that thread makes MPI calls, in Progress, so MPI_THREAD_FUNNELED is enough.
class MpiCommunicator::Handover {
 public:
  // Makes the MPI calls that fill in the requests; returns the first error code.
  using Start = std::function<int()>;

  struct End {
    // Success, an MPI error, the reason of an interruption, or Timeout if it is late.
    Status status{};
    bool is_late = false;  // the deadline passed
    // MPI may still access the operation's memory, permanently.
    bool is_under_way = false;
  };

  // On the background thread: begins a call. All its operations share this deadline.
  void StartClock(std::chrono::milliseconds deadline) {
    const std::lock_guard lock(mutex_);
    deadline_ = PolledDeadline(deadline);
  }

  // On the background thread: waits until the operation is over. Only Progress checks the deadline,
  // because without calls of Progress no thread could advance the operation.
  End Run(std::string_view name, const Start& start, std::span<MPI_Request> requests) {
    std::unique_lock lock(mutex_);
    if (!interrupted_.ok()) return {.status = interrupted_};
    name_ = name;
    start_ = &start;
    requests_ = requests;
    state_ = State::kWanted;
    error_ = Status();
    changed_.wait(lock, [this] {
      return state_ == State::kDone || state_ == State::kLate || !interrupted_.ok();
    });
    const State reached = std::exchange(state_, State::kIdle);
    if (reached == State::kDone) return {.status = error_, .is_under_way = !error_.ok()};
    if (reached == State::kLate) {
      return {.status = Status(Code::kTimeout, ""), .is_late = true, .is_under_way = true};
    }
    return {.status = interrupted_, .is_under_way = reached == State::kStarted};
  }

  // On the thread that may call MPI: starts or tests the current operation. Returns true if there
  // was progress.
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

}  // namespace sealpoint

#endif  // SEALPOINT_DETAIL_MPI_COMMUNICATOR_HANDOVER_H_
