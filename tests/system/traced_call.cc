// SPDX-License-Identifier: Apache-2.0
#include "tests/system/traced_call.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <fstream>
#include <string_view>

namespace sealpoint::testing {
namespace {

// Where the file is among the arguments.
enum class Where : std::uint8_t {
  kNowhere,
  kDescriptor,   // 0
  kPath,         // 0, from the working directory
  kAtDirectory,  // 0 and 1
  kNewName,      // 2 and 3
};

struct KnownCall {
  std::uint64_t number = 0;
  std::string_view name{};
  Where where = Where::kNowhere;
  bool changes = false;
};

constexpr auto kKnownCalls = std::to_array<KnownCall>({
#ifdef SYS_mkdir
    {SYS_mkdir, "mkdir", Where::kPath, true},
    {SYS_rmdir, "rmdir", Where::kPath, true},
#endif
    {SYS_mkdirat, "mkdirat", Where::kAtDirectory, true},
    {SYS_openat, "openat", Where::kAtDirectory, true},
    {SYS_pwrite64, "pwrite64", Where::kDescriptor, true},
    {SYS_write, "write", Where::kDescriptor, true},
    {SYS_fallocate, "fallocate", Where::kDescriptor, true},
    {SYS_ftruncate, "ftruncate", Where::kDescriptor, true},
    {SYS_fsync, "fsync", Where::kDescriptor, true},
    {SYS_fdatasync, "fdatasync", Where::kDescriptor, true},
    {SYS_close, "close", Where::kDescriptor, true},
    {SYS_linkat, "linkat", Where::kNewName, true},
    {SYS_renameat2, "renameat2", Where::kNewName, true},
    {SYS_unlinkat, "unlinkat", Where::kAtDirectory, true},
    {SYS_fcntl, "fcntl", Where::kDescriptor, false},
    {SYS_pread64, "pread64", Where::kDescriptor, false},
    {SYS_newfstatat, "newfstatat", Where::kAtDirectory, false},
    {SYS_statx, "statx", Where::kAtDirectory, false},
    {SYS_fstatfs, "fstatfs", Where::kDescriptor, false},
    {SYS_getdents64, "getdents64", Where::kDescriptor, false},
    {SYS_getrandom, "getrandom", Where::kNowhere, false},
});

std::string ReadLink(const std::string& path) {
  std::string target(PATH_MAX, '\0');
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  target.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return target;
}

std::string PathOfDescriptor(pid_t thread, std::uint64_t descriptor) {
  const std::string process = "/proc/" + std::to_string(thread);
  const int number = static_cast<int>(descriptor);
  return ReadLink(number == AT_FDCWD ? process + "/cwd"
                                     : process + "/fd/" + std::to_string(number));
}

// The text at an address of the traced program, to its terminator.
std::string ReadText(pid_t thread, std::uint64_t address) {
  std::string text;
  const std::string memory = "/proc/" + std::to_string(thread) + "/mem";
  const int descriptor = ::open(memory.c_str(), O_RDONLY | O_CLOEXEC);
  char letter = '\0';
  while (text.size() < PATH_MAX &&
         ::pread(descriptor, &letter, 1, static_cast<off_t>(address + text.size())) == 1 &&
         letter != '\0') {
    text.push_back(letter);
  }
  ::close(descriptor);
  return text;
}

std::string PathAt(pid_t thread, std::uint64_t directory, std::uint64_t text_address) {
  std::string name = ReadText(thread, text_address);
  if (name.starts_with('/')) return name;
  std::string path = PathOfDescriptor(thread, directory);
  if (!name.empty()) path.append("/").append(name);
  return path;
}

std::string PathOf(pid_t thread, const RawCall& call, Where where) {
  const auto& arguments = call.arguments;
  switch (where) {
    case Where::kNowhere:
      return {};
    case Where::kDescriptor:
      return PathOfDescriptor(thread, arguments[0]);
    case Where::kPath:
      return PathAt(thread, static_cast<std::uint64_t>(AT_FDCWD), arguments[0]);
    case Where::kAtDirectory:
      return PathAt(thread, arguments[0], arguments[1]);
    case Where::kNewName:
      return PathAt(thread, arguments[2], arguments[3]);
  }
  return {};
}

// A descriptor that nothing can be written to is closed without any effect.
bool IsForWriting(pid_t thread, std::uint64_t descriptor) {
  std::ifstream info("/proc/" + std::to_string(thread) + "/fdinfo/" + std::to_string(descriptor));
  std::string word;
  int flags = 0;
  while (info >> word && word != "flags:") {
  }
  info >> std::oct >> flags;
  return (flags & O_ACCMODE) != O_RDONLY;
}

bool Changes(pid_t thread, const RawCall& call, const KnownCall& known) {
  if (known.number == SYS_openat) return (call.arguments[2] & O_CREAT) != 0;
  if (known.number == SYS_close) return IsForWriting(thread, call.arguments[0]);
  return known.changes;
}

}  // namespace

std::optional<TracedCall> DescribeCall(pid_t thread, const RawCall& call) {
  const auto* const known =
      std::find_if(kKnownCalls.begin(), kKnownCalls.end(),
                   [&call](const KnownCall& one) { return one.number == call.number; });
  if (known == kKnownCalls.end()) return std::nullopt;
  return TracedCall{.name = std::string(known->name),
                    .path = PathOf(thread, call, known->where),
                    .changes = Changes(thread, call, *known)};
}

bool CallFilter::Matches(const TracedCall& call) const {
  const bool is_below = call.path == directory || call.path.starts_with(directory + "/");
  if (names.empty()) return is_below && call.changes;
  const bool is_named = std::find(names.begin(), names.end(), call.name) != names.end();
  return is_named && (is_below || call.path.empty());
}

}  // namespace sealpoint::testing
