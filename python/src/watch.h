// SPDX-License-Identifier: Apache-2.0
//
// Long calls of the library: without the GIL, with progress, and ended by Ctrl-C.
#ifndef SEALPOINT_PYTHON_SRC_WATCH_H_
#define SEALPOINT_PYTHON_SRC_WATCH_H_

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "sealpoint/phases.h"

namespace sealpoint::python {

namespace nb = nanobind;

// Watches one call of the library. If a signal handler or the caller's function raises an
// exception, the library is asked to cancel, ends its work as after any error, and the exception
// goes on from Run.
//
// Made, run and destroyed with the GIL; the callbacks are for any thread.
class Watch {
 public:
  // None or False; True (a line on stderr, if that is a terminal or a notebook); or a function
  // (what: str, bytes_done: int, bytes_total: int) -> None.
  // `on_signal` is called with the GIL if a signal handler raised: it ends what waits for others.
  explicit Watch(nb::handle progress, std::function<void()> on_signal = {});
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // A callback for the library. It borrows this object.
  PhaseCallback OnPhase();

  // Runs work() without the GIL and returns its result. If this is the thread on which Python runs
  // signal handlers, the work is done on another thread, and this one looks for signals meanwhile;
  // work of less than a moment is not worth the thread.
  template <typename Work>
  auto Run(Work work, bool is_long = true) {
    std::optional<decltype(work())> result;
    RunErased([&] { result.emplace(work()); }, is_long);
    return *std::move(result);
  }

 private:
  // Rethrows what a signal, the caller's function, or work() raised; in this order.
  void RunErased(const std::function<void()>& work, bool is_long);
  void RunBesideSignals(const std::function<void()>& work);
  // With the GIL: keeps the exception that is set, and has the library cancel.
  void Stop(nb::python_error error);
  void RethrowPending();
  void Report(std::string_view what, std::uint64_t done, std::uint64_t total, bool is_important);
  void ThrowIfStopped() const;

  const std::function<void()> on_signal_;
  nb::object function_;  // may be invalid: none
  std::unique_ptr<ProgressLine> line_;
  std::chrono::steady_clock::time_point next_call_{};
  std::atomic<bool> is_stopped_ = false;
  nb::ft_mutex mutex_;                     // free where the GIL guards
  std::optional<nb::python_error> error_;  // guarded while the work runs
};

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_WATCH_H_
