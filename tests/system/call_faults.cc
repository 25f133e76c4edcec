// SPDX-License-Identifier: Apache-2.0
//
// Runs a program and lets one of its system calls on the files below a directory go wrong:
//
//   call_faults --under DIRECTORY [--calls NAME,NAME] [--at N [--and-later] --do FAULT]
//               [--log FILE] PROGRAM ARGUMENTS...
//
// The calls of all threads are counted together, from 1, in the order in which they begin; without
// --calls those that change something. FAULT is one of
//   kill, kill-after     SIGKILL before, or after, the call took effect
//   errno:E, late:E      the call does nothing, or takes effect, and returns this error
//   short:N              the call is given at most N bytes to write
//   run:COMMAND          this shell command runs first
//   last:COMMAND         this shell command runs, and then SIGKILL instead of the call
// Counted calls are written to FILE, one line each: number, name, path. The exit status is that of
// the program; if a signal ended it, the same signal ends this one. strace can do part of this, but
// counts each thread and each kind of call separately.
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/system/traced_call.h"

namespace sealpoint::testing {
namespace {

constexpr int kUsage = 64;
constexpr int kNotOffered = 77;

[[noreturn]] void Fail(const std::string& why, int status = kUsage) {
  std::fprintf(stderr, "call_faults: %s\n", why.c_str());
  std::exit(status);
}

struct Fault {
  enum class Kind { kNone, kKill, kKillAfter, kErrno, kLateErrno, kShort, kRun, kRunAndKill };
  Kind kind = Kind::kNone;
  long number = 0;
  std::string command{};
};

struct Options {
  CallFilter filter{};
  long at = 0;
  bool and_later = false;
  Fault fault{};
  int log = -1;
  char** program = nullptr;
};

Fault ParseFault(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (kind == "kill") return {.kind = Fault::Kind::kKill};
  if (kind == "kill-after") return {.kind = Fault::Kind::kKillAfter};
  if (kind == "run") return {.kind = Fault::Kind::kRun, .command = rest};
  if (kind == "last") return {.kind = Fault::Kind::kRunAndKill, .command = rest};
  const long number = std::strtol(rest.c_str(), nullptr, 10);
  if (kind == "errno") return {.kind = Fault::Kind::kErrno, .number = number};
  if (kind == "late") return {.kind = Fault::Kind::kLateErrno, .number = number};
  if (kind == "short") return {.kind = Fault::Kind::kShort, .number = number};
  Fail("no fault " + text);
}

Options ParseOptions(int argc, char** argv) {
  Options options;
  int i = 1;
  for (; i < argc && std::string_view(argv[i]).starts_with("--"); ++i) {
    const std::string name = argv[i];
    if (name == "--and-later") {
      options.and_later = true;
      continue;
    }
    if (++i == argc) Fail(name + " needs a value");
    const std::string value = argv[i];
    if (name == "--under") options.filter.directory = value;
    if (name == "--at") options.at = std::strtol(value.c_str(), nullptr, 10);
    if (name == "--do") options.fault = ParseFault(value);
    if (name == "--log")
      options.log = ::open(argv[i], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    std::stringstream names(name == "--calls" ? value : "");
    for (std::string one; std::getline(names, one, ',');) options.filter.names.push_back(one);
  }
  if (options.filter.directory.empty() || i == argc) Fail("--under and a program are needed");
  options.program = argv + i;
  return options;
}

// A call is changed through its registers, which differ between processors.
#if defined(__x86_64__)
user_regs_struct GetRegisters(pid_t thread) {
  user_regs_struct registers = {};
  iovec place = {.iov_base = &registers, .iov_len = sizeof registers};
  ::ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &place);
  return registers;
}
void SetRegisters(pid_t thread, user_regs_struct registers) {
  iovec place = {.iov_base = &registers, .iov_len = sizeof registers};
  ::ptrace(PTRACE_SETREGSET, thread, NT_PRSTATUS, &place);
}
void SkipCall(pid_t thread) {
  user_regs_struct registers = GetRegisters(thread);
  registers.orig_rax = ~0ull;
  SetRegisters(thread, registers);
}
void BoundSize(pid_t thread, long size_max) {
  user_regs_struct registers = GetRegisters(thread);
  if (registers.rdx > static_cast<unsigned long>(size_max)) {
    registers.rdx = static_cast<unsigned long>(size_max);
  }
  SetRegisters(thread, registers);
}
void SetError(pid_t thread, long error) {
  user_regs_struct registers = GetRegisters(thread);
  registers.rax = static_cast<unsigned long>(-error);
  SetRegisters(thread, registers);
}
#else
void SkipCall(pid_t) { Fail("not for this processor", kNotOffered); }
void BoundSize(pid_t, long) {}
void SetError(pid_t, long) {}
#endif

class Tracer {
 public:
  explicit Tracer(Options options) : options_(std::move(options)) {}

  // Returns the wait status of the program.
  int Run() {
    Start();
    while (true) {
      int status = 0;
      const pid_t thread = ::waitpid(-1, &status, __WALL);
      if (thread < 0 && errno == EINTR) continue;
      if (thread < 0) Fail("the program was lost", 1);
      if (WIFSTOPPED(status)) {
        OnStop(thread, status);
      } else if (thread == program_) {
        return status;
      }
    }
  }

 private:
  // The program waits at a pipe until it is traced.
  void Start() {
    std::array<int, 2> gate = {};
    if (::pipe(gate.data()) != 0) Fail("pipe", 1);
    program_ = ::fork();
    if (program_ == 0) {
      char go = '\0';
      ::close(gate[1]);
      if (::read(gate[0], &go, 1) != 1) ::_exit(1);
      ::close(gate[0]);
      ::execvp(options_.program[0], options_.program);
      ::_exit(127);
    }
    constexpr long kTrace = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                            PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (program_ < 0 || ::ptrace(PTRACE_SEIZE, program_, nullptr, kTrace) != 0 ||
        ::ptrace(PTRACE_INTERRUPT, program_, nullptr, nullptr) != 0) {
      Fail(std::string("cannot trace: ") + std::strerror(errno), kNotOffered);
    }
    if (::waitpid(program_, nullptr, __WALL) != program_) Fail("waitpid", 1);
    Continue(program_);
    if (::write(gate[1], "g", 1) != 1) Fail("write", 1);
    ::close(gate[0]);
    ::close(gate[1]);
  }

  static void Continue(pid_t thread, int signal = 0) {
    ::ptrace(PTRACE_SYSCALL, thread, nullptr, static_cast<long>(signal));
  }

  void OnStop(pid_t thread, int status) {
    const int signal = WSTOPSIG(status);
    const int event = status >> 16;
    if (signal == (SIGTRAP | 0x80)) {
      OnCall(thread);
      Continue(thread);
    } else if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) {
      ::ptrace(PTRACE_LISTEN, thread, nullptr, nullptr);  // stopped by SIGSTOP, until SIGCONT
    } else {
      Continue(thread, event == 0 ? signal : 0);
    }
  }

  void OnCall(pid_t thread) {
    __ptrace_syscall_info info = {};
    if (::ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) < 0) return;  // killed
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
      RawCall call{.number = info.entry.nr};
      std::copy(std::begin(info.entry.args), std::end(info.entry.args), call.arguments.begin());
      if (OnBegin(thread, call)) under_way_.insert(thread);
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && under_way_.erase(thread) > 0) {
      OnEnd(thread);
    }
  }

  // Instead of the call that `thread` is about to make.
  void Kill(pid_t thread) {
    SkipCall(thread);
    ::kill(program_, SIGKILL);
  }

  // True if something is to be done at the end of the call.
  bool OnBegin(pid_t thread, const RawCall& raw) {
    const auto call = DescribeCall(thread, raw);
    if (!call || !options_.filter.Matches(*call)) return false;
    ++count_;
    const std::string line = std::to_string(count_) + " " + call->name + " " + call->path + "\n";
    if (options_.log >= 0 && ::write(options_.log, line.data(), line.size()) < 0) Fail("log", 1);
    const bool is_hit = options_.and_later ? count_ >= options_.at : count_ == options_.at;
    if (options_.at == 0 || !is_hit) return false;
    switch (options_.fault.kind) {
      case Fault::Kind::kNone:
        return false;
      case Fault::Kind::kKill:
        Kill(thread);
        return false;
      case Fault::Kind::kErrno:
        SkipCall(thread);
        return true;
      case Fault::Kind::kShort:
        BoundSize(thread, options_.fault.number);
        return false;
      case Fault::Kind::kRun:
      case Fault::Kind::kRunAndKill:
        if (std::system(options_.fault.command.c_str()) != 0) Fail("the command failed", 1);
        if (options_.fault.kind == Fault::Kind::kRunAndKill) Kill(thread);
        return false;
      case Fault::Kind::kKillAfter:
      case Fault::Kind::kLateErrno:
        return true;
    }
    return false;
  }

  void OnEnd(pid_t thread) {
    if (options_.fault.kind == Fault::Kind::kKillAfter) {
      ::kill(program_, SIGKILL);
    } else {
      SetError(thread, options_.fault.number);
    }
  }

  const Options options_;
  pid_t program_ = -1;
  long count_ = 0;
  std::set<pid_t> under_way_;  // threads inside a call that has a fault at its end
};

}  // namespace
}  // namespace sealpoint::testing

int main(int argc, char** argv) {
  using sealpoint::testing::ParseOptions;
  const int status = sealpoint::testing::Tracer(ParseOptions(argc, argv)).Run();
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  ::signal(WTERMSIG(status), SIG_DFL);
  ::raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}
