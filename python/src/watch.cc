// SPDX-License-Identifier: Apache-2.0
#include "python/src/watch.h"

#include <condition_variable>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "python/src/gil.h"
#include "python/src/status.h"

namespace sealpoint::python {
namespace {

// A person who presses Ctrl-C waits no longer than this for the library to hear of it.
constexpr std::chrono::milliseconds kSignalPeriod(50);
// Python is called no more often, since each call takes the GIL from the program.
constexpr std::chrono::milliseconds kCallPeriod(50);

bool IsMainThread() {
  const nb::module_ threading = nb::module_::import_("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

}  // namespace

Watch::Watch(nb::handle progress, std::function<void()> on_signal)
    : on_signal_(std::move(on_signal)) {
  if (progress.is_none() || progress.is(nb::handle(Py_False))) return;
  if (progress.is(nb::handle(Py_True))) {
    const nb::object shown = nb::module_::import_("sealpoint._progress").attr("line_of_notebook")();
    if (shown.is_none()) {
      line_ = std::make_unique<ProgressLine>();
    } else {
      function_ = shown;
    }
  } else if (PyCallable_Check(progress.ptr()) != 0) {
    function_ = nb::borrow(progress);
  } else {
    throw nb::type_error("progress is neither a bool nor a function");
  }
}

Watch::~Watch() = default;

PhaseCallback Watch::OnPhase() {
  return [this](const PhaseEvent& event) {
    ThrowIfStopped();
    if (line_) line_->OnPhase(event);
    Report(PhaseName(event.phase), event.bytes_done, event.bytes_total,
           event.kind != PhaseEvent::Kind::kProgress || event.bytes_done == event.bytes_total);
  };
}

void Watch::Report(std::string_view what, std::uint64_t done, std::uint64_t total,
                   bool is_important) {
  if (!function_.is_valid()) return;
  // One call at a time, so next_call_ needs no lock.
  const auto now = std::chrono::steady_clock::now();
  if (!is_important && now < next_call_) return;
  next_call_ = now + kCallPeriod;
  const GilAcquire gil;
  try {
    function_(Text(what), done, total);
  } catch (nb::python_error& error) {
    Stop(std::move(error));
  }
  ThrowIfStopped();
}

void Watch::ThrowIfStopped() const {
  if (is_stopped_) throw std::runtime_error("stopped by the caller's program");
}

void Watch::Stop(nb::python_error error) {
  const nb::ft_lock_guard lock(mutex_);
  if (!error_) error_.emplace(std::move(error));
  is_stopped_ = true;
}

void Watch::RethrowPending() {
  if (!error_) return;
  nb::python_error error = *std::move(error_);
  error_.reset();
  throw error;
}

void Watch::RunErased(const std::function<void()>& work, bool is_long) {
  std::exception_ptr thrown;
  const auto catching = [&] {
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  if (is_long && IsMainThread()) {
    RunBesideSignals(catching);
  } else {
    const GilRelease released;
    catching();
  }
  RethrowPending();
  if (thrown) std::rethrow_exception(thrown);
}

void Watch::RunBesideSignals(const std::function<void()>& work) {
  const GilRelease released;
  std::mutex mutex;
  std::condition_variable ended;
  bool has_ended = false;
  std::thread thread;
  try {
    thread = std::thread([&] {
      work();
      const std::lock_guard lock(mutex);
      has_ended = true;
      ended.notify_one();
    });
  } catch (const std::system_error&) {  // no more threads: signals have to wait
    return work();
  }
  for (std::unique_lock lock(mutex);
       !ended.wait_for(lock, kSignalPeriod, [&] { return has_ended; });) {
    if (is_stopped_) continue;
    lock.unlock();
    {
      const GilAcquire gil;
      if (PyErr_CheckSignals() != 0) {
        Stop(nb::python_error());
        if (on_signal_) on_signal_();
      }
    }
    lock.lock();
  }
  thread.join();
}

}  // namespace sealpoint::python
