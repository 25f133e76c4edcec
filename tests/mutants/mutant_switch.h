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

// The question whether a constant is evaluated is put in every function, constexpr or not.
#pragma GCC diagnostic ignored "-Wtautological-compare"

namespace sealpoint::mutants {

// A protective step that can be taken out. SEALPOINT_MUTANT names the one that is; where
// SEALPOINT_MUTANTS_REACHED names a file, each step that is come to writes its id there, once.
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
    const int error_number = errno;  // steps look at it
    const char* const chosen = std::getenv("SEALPOINT_MUTANT");
    const int state = chosen != nullptr && std::string_view(id_) == chosen ? kOut : kIn;
    state_.store(state, std::memory_order_relaxed);
    if (const char* const path = std::getenv("SEALPOINT_MUTANTS_REACHED")) NoteReached(path);
    errno = error_number;
    return state;
  }

  // Bare system calls: tests stand in for the functions of the C library.
  void NoteReached(const char* path) const {
    const std::string line = std::string(id_) + "\n";
    const long fd = ::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0) return;
    static_cast<void>(::syscall(SYS_write, fd, line.data(), line.size()));
    static_cast<void>(::syscall(SYS_close, fd));
  }

  const char* id_;
  std::atomic<int> state_{kUnknown};
};

// The outcome of a step that is executed, or success where its error is ignored.
inline Status Ignore(bool is_out, Status status) { return is_out ? Status() : std::move(status); }

}  // namespace sealpoint::mutants

// Whether the step of this id is taken out. The id is a string literal.
#define SEALPOINT_MUTANT_IS_OUT(id)                       \
  (!std::is_constant_evaluated() && []() -> bool {        \
    static constinit ::sealpoint::mutants::Step step(id); \
    return step.IsOut();                                  \
  }())

#endif  // SEALPOINT_TESTS_MUTANTS_MUTANT_SWITCH_H_
