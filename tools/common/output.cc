// SPDX-License-Identifier: Apache-2.0
#include "tools/common/output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "sealpoint/bytes.h"
#include "tools/common/terminal.h"

namespace sealpoint::tools {
namespace {

// All of the text, or the number of the error.
int WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      // A pipe that somebody made non-blocking.
      pollfd output = {.fd = fd, .events = POLLOUT, .revents = 0};
      (void)::poll(&output, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

struct Stdout {
  static constexpr std::size_t kBufferSize = std::size_t{1} << 16;

  std::string buffer;
  int error = 0;

  void Flush() {
    if (error == 0) error = WriteAll(STDOUT_FILENO, buffer);
    buffer.clear();
  }
};

Stdout& Out() {
  static Stdout out;
  return out;
}

}  // namespace

void OpenStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is the one that is missing. What is opened the other way round yields
    // EBADF, as the closed stream would.
    (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void Write(std::string_view text) {
  Stdout& out = Out();
  if (out.error != 0) return;
  out.buffer.append(text);
  if (out.buffer.size() >= Stdout::kBufferSize || StdoutIsTerminal()) out.Flush();
}

void Flush() { Out().Flush(); }

bool OutputFailed() { return Out().error != 0; }

void PrintError(std::string_view program, std::string_view message) {
  (void)WriteAll(STDERR_FILENO, fmt::format("{}: {}\n", program, Printable(message)));
}

ExitStatus FinishOutput(std::string_view program, ExitStatus status) {
  Stdout& out = Out();
  const bool is_used = !out.buffer.empty();
  out.Flush();
  // Some file systems say only at a close that the disk is full. What closes is a duplicate: in a
  // process of Python another thread would open its next file as standard output. A stream that was
  // closed from the start is no error unless something was written to it.
  const int duplicate = ::dup(STDOUT_FILENO);
  if ((duplicate < 0 || ::close(duplicate) != 0) && out.error == 0 && (is_used || errno != EBADF)) {
    out.error = errno;
  }
  if (out.error == 0) return status;
  PrintError(program,
             fmt::format("standard output: {} (errno {})", std::strerror(out.error), out.error));
  return ExitStatus::kOutput;
}

}  // namespace sealpoint::tools
