// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_MUTANTS_MUTANT_SWITCH_H_
#define SEALPOINT_TESTS_MUTANTS_MUTANT_SWITCH_H_

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sealpoint/status.h"

// std::is_constant_evaluated is called in every function, constexpr or not.
#pragma GCC diagnostic ignored "-Wtautological-compare"

namespace sealpoint::mutants {

// Writes a line to the file that SEALPOINT_MUTANTS_REACHED names. Bare system calls: tests stand in
// for the functions of the C library.
inline void Note(std::string line) {
  const char* const path = std::getenv("SEALPOINT_MUTANTS_REACHED");
  if (path == nullptr) return;
  const int error_number = errno;  // steps look at it
  line += "\n";
  const long fd = ::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (fd >= 0) {
    static_cast<void>(::syscall(SYS_write, fd, line.data(), line.size()));
    static_cast<void>(::syscall(SYS_close, fd));
  }
  errno = error_number;
}

// A protective step that can be taken out. SEALPOINT_MUTANT names the one that is taken out. Each
// step that is reached records its id, once.
class Step {
 public:
  constexpr explicit Step(const char* id) : id_(id) {}

  bool IsOut() {
    const int state = state_.load(std::memory_order_relaxed);
    return (state == kUnknown ? LookUp() : state) == kOut;
  }

 private:
  enum State : int { kUnknown, kIn, kOut };

  int LookUp() {
    const char* const chosen = std::getenv("SEALPOINT_MUTANT");
    const int state = chosen != nullptr && std::string_view(id_) == chosen ? kOut : kIn;
    state_.store(state, std::memory_order_relaxed);
    Note(id_);
    return state;
  }

  const char* id_;
  std::atomic<int> state_{kUnknown};
};

// Records once that the step of this id made a difference: the id and an exclamation mark.
class Difference {
 public:
  constexpr explicit Difference(const char* id) : id_(id) {}

  void Happened() {
    if (!noted_.exchange(true, std::memory_order_relaxed)) Note(std::string(id_) + "!");
  }

 private:
  const char* id_;
  std::atomic<bool> noted_{false};
};

// Returns the value and records it if it is an error.
template <typename T, typename Happened>
T&& Noted(T&& value, Happened happened) {
  if (!value.ok()) happened();
  return std::forward<T>(value);
}

// Returns the outcome of a step that is executed, or success if its error is ignored.
inline Status Ignore(bool is_out, Status status) { return is_out ? Status() : std::move(status); }

// Returns the value of a comparison, and records it if moving the bound by one would change it.
template <typename Happened>
constexpr bool Compared(bool swapped, bool value, Happened happened) {
  if (swapped != value && !std::is_constant_evaluated()) happened();
  return value;
}

}  // namespace sealpoint::mutants

// True if the step of this id is taken out. The id is a string literal.
#define SEALPOINT_MUTANT_IS_OUT(id)                       \
  (!std::is_constant_evaluated() && []() -> bool {        \
    static constinit ::sealpoint::mutants::Step step(id); \
    return step.IsOut();                                  \
  }())

// A function that records that the step of this id made a difference.
#define SEALPOINT_MUTANT_HAPPENED(id)                           \
  []() -> bool {                                                \
    static constinit ::sealpoint::mutants::Difference made(id); \
    made.Happened();                                            \
    return true;                                                \
  }

// The same, recorded at once; returns true.
#define SEALPOINT_MUTANT_HAPPENS(id) \
  (std::is_constant_evaluated() || SEALPOINT_MUTANT_HAPPENED(id)())

#endif  // SEALPOINT_TESTS_MUTANTS_MUTANT_SWITCH_H_
