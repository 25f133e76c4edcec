// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a program (LD_PRELOAD), stands in for the functions of the C library by which it
// makes system calls, and lets those on the files below a directory go wrong. The environment says
// how:
//
//   SHIM_UNDER=DIRECTORY   only calls on files below it count, and getrandom
//   SHIM_RANK=RANK         only in this rank of a job of MPI; the others run as ever
//   SHIM_CALLS=NAME,NAME   only these count; without it all
//   SHIM_AT=N              the call that goes wrong, from 1
//   SHIM_LATER=counted     so does each counted one after it; =all: each one, counted or not
//   SHIM_DO=FAULT          kill, kill-after     SIGKILL before, or after, the call took effect
//                          errno:E, late:E      it does nothing, or takes effect, and reports E
//                          delay:MS             it is late
//                          short:N              it moves at most N bytes
//   SHIM_REFUSE=NAME,NAME  these fail with EPERM throughout, as where a file system lacks them
//   SHIM_LOG=FILE          a line for each call: name, path, and the fault if it went wrong
//
// NAME is that of the function. Unlike call_faults this needs no ptrace, and a call fails where the
// program makes it.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

namespace sealpoint::testing {
namespace {

constexpr std::size_t kNoBound = SSIZE_MAX;

struct Fault {
  enum class Kind : std::uint8_t { kNone, kKill, kKillAfter, kErrno, kLateErrno, kDelay, kShort };
  Kind kind = Kind::kNone;
  int number = 0;
};

std::string Setting(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::set<std::string> Names(const char* setting) {
  std::set<std::string> names;
  std::stringstream words(Setting(setting));
  for (std::string one; std::getline(words, one, ',');) names.insert(one);
  return names;
}

Fault ParseFault(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const int number = colon == std::string::npos ? 0 : std::atoi(text.c_str() + colon + 1);
  if (kind == "kill") return {.kind = Fault::Kind::kKill};
  if (kind == "kill-after") return {.kind = Fault::Kind::kKillAfter};
  if (kind == "errno") return {.kind = Fault::Kind::kErrno, .number = number};
  if (kind == "late") return {.kind = Fault::Kind::kLateErrno, .number = number};
  if (kind == "delay") return {.kind = Fault::Kind::kDelay, .number = number};
  if (kind == "short") return {.kind = Fault::Kind::kShort, .number = number};
  return {};
}

class Shim {
 public:
  // Never destroyed: files are closed by what is destroyed last.
  static Shim& Get() {
    static Shim* const shim = new Shim;
    return *shim;
  }

  // What becomes of a call that is about to be made.
  Fault Next(const std::string& name, const std::string& path) {
    if (!is_active_ || !Counts(path)) return {};
    if (refused_.contains(name)) return {.kind = Fault::Kind::kErrno, .number = EPERM};
    const bool is_hit = IsHit(name);
    if (!log_.empty()) Log(name + "\t" + path + "\t" + (is_hit ? fault_text_ : "") + "\n");
    return is_hit ? fault_ : Fault();
  }

  bool Counts(const std::string& path) const {
    return path.empty() || path == under_ || path.starts_with(under_ + "/");
  }

 private:
  Shim() {
    const std::string rank = Setting("SHIM_RANK");
    is_active_ = !under_.empty() && (rank.empty() || rank == Setting("OMPI_COMM_WORLD_RANK") ||
                                     rank == Setting("PMI_RANK"));
  }

  bool IsHit(const std::string& name) {
    if (later_ == "all" && has_struck_.load()) return true;
    if (at_ == 0 || (!names_.empty() && !names_.contains(name))) return false;
    const long number = ++count_;
    const bool is_hit = number == at_ || (number > at_ && later_ == "counted");
    if (is_hit) has_struck_.store(true);
    return is_hit;
  }

  // Past the functions below, and by one write, since all threads share the file.
  void Log(const std::string& line) const {
    const long file = ::syscall(SYS_openat, AT_FDCWD, log_.c_str(),
                                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    ::syscall(SYS_write, file, line.data(), line.size());
    ::syscall(SYS_close, file);
  }

  const std::string under_ = Setting("SHIM_UNDER");
  const std::set<std::string> names_ = Names("SHIM_CALLS");
  const std::set<std::string> refused_ = Names("SHIM_REFUSE");
  const long at_ = std::atol(Setting("SHIM_AT").c_str());
  const std::string later_ = Setting("SHIM_LATER");
  const std::string fault_text_ = Setting("SHIM_DO");
  const Fault fault_ = ParseFault(fault_text_);
  const std::string log_ = Setting("SHIM_LOG");
  bool is_active_ = false;
  std::atomic<long> count_ = 0;
  std::atomic<bool> has_struck_ = false;
};

[[noreturn]] void Die() {
  while (true) ::kill(::getpid(), SIGKILL);
}

void Sleep(int milliseconds) {
  const timespec time = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};
  ::nanosleep(&time, nullptr);
}

struct KeepAll {
  template <typename Result>
  void operator()(Result /*result*/) const {}
};

// Makes a call, or lets it go wrong. `call` gets the most bytes that it may move, and makes it with
// the errno that the caller left. `undo` gives back what a call made that is reported as failed.
template <typename Result, typename Call, typename Undo = KeepAll>
Result Make(const char* name, const std::string& path, Result failed, const Call& call,
            const Undo& undo = {}) {
  const int error_before = errno;
  const Fault fault = Shim::Get().Next(name, path);
  if (fault.kind == Fault::Kind::kDelay) Sleep(fault.number);
  errno = error_before;
  switch (fault.kind) {
    case Fault::Kind::kNone:
    case Fault::Kind::kDelay:
      return call(kNoBound);
    case Fault::Kind::kShort:
      return call(static_cast<std::size_t>(fault.number));
    case Fault::Kind::kKill:
      Die();
    case Fault::Kind::kKillAfter:
      static_cast<void>(call(kNoBound));
      Die();
    case Fault::Kind::kLateErrno:
      undo(call(kNoBound));
      break;
    case Fault::Kind::kErrno:
      break;
  }
  errno = fault.number;
  return failed;
}

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::string ReadLink(const std::string& path) {
  const int error_before = errno;
  std::string target(PATH_MAX, '\0');
  const long size = ::syscall(SYS_readlinkat, AT_FDCWD, path.c_str(), target.data(), target.size());
  target.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  errno = error_before;
  return size < 0 ? "?" : target;
}

std::string PathOf(int descriptor) {
  return ReadLink(descriptor == AT_FDCWD ? "/proc/self/cwd"
                                         : "/proc/self/fd/" + std::to_string(descriptor));
}

std::string PathOf(int directory, std::string_view name) {
  if (name.starts_with('/')) return std::string(name);
  return PathOf(directory) + "/" + std::string(name);
}

void Close(int descriptor) {
  if (descriptor >= 0) ::syscall(SYS_close, descriptor);
}

int Open(const char* name, int directory, const char* path, int flags, mode_t mode) {
  return Make(
      name, PathOf(directory, path), -1,
      [&](std::size_t) {
        return Real<int(int, const char*, int, mode_t)>("openat")(directory, path, flags, mode);
      },
      Close);
}

int Stat(const char* name, int directory, const char* path, struct stat* info, int flags) {
  return Make(name, PathOf(directory, path), -1, [&](std::size_t) {
    return Real<int(int, const char*, struct stat*, int)>("fstatat")(directory, path, info, flags);
  });
}

// Linux frees a descriptor whatever close reports, and so must a fault.
template <typename Call>
int CloseOnce(const char* name, int descriptor, const Call& call) {
  bool is_closed = false;
  const int result = Make(name, PathOf(descriptor), -1, [&](std::size_t) {
    is_closed = true;
    return call();
  });
  const int error = errno;
  if (!is_closed) static_cast<void>(call());
  errno = error;
  return result;
}

// What a stream of the C library calls: its own calls cannot be stood in for.
ssize_t ReadCookie(void* cookie, char* buffer, std::size_t size) {
  return ::read(static_cast<int>(reinterpret_cast<std::intptr_t>(cookie)), buffer, size);
}
// A stream of files goes on after a short write, and one of cookies takes it for an error.
ssize_t WriteCookie(void* cookie, const char* buffer, std::size_t size) {
  const auto descriptor = static_cast<int>(reinterpret_cast<std::intptr_t>(cookie));
  std::size_t done = 0;
  while (done < size) {
    const ssize_t written = ::write(descriptor, buffer + done, size - done);
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  return static_cast<ssize_t>(done);
}
int CloseCookie(void* cookie) {
  return ::close(static_cast<int>(reinterpret_cast<std::intptr_t>(cookie)));
}

int FlagsOf(std::string_view mode) {
  const int both = mode.find('+') == std::string_view::npos ? 0 : O_RDWR;
  if (mode.starts_with('r')) return both | O_RDONLY;
  const int made = O_CREAT | (mode.starts_with('a') ? O_APPEND : O_TRUNC);
  return made | (both != 0 ? both : O_WRONLY);
}

}  // namespace
}  // namespace sealpoint::testing

namespace shim = sealpoint::testing;

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return shim::Open("open", AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return shim::Open("openat", directory, path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) {
  if (!shim::Shim::Get().Counts(path))
    return shim::Real<FILE*(const char*, const char*)>("fopen")(path, mode);
  const int descriptor = shim::Open("fopen", AT_FDCWD, path, shim::FlagsOf(mode), 0666);
  if (descriptor < 0) return nullptr;
  return ::fopencookie(reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)), mode,
                       {.read = shim::ReadCookie,
                        .write = shim::WriteCookie,
                        .seek = nullptr,
                        .close = shim::CloseCookie});
}

int close(int descriptor) {
  return shim::CloseOnce("close", descriptor,
                         [&] { return shim::Real<int(int)>("close")(descriptor); });
}

ssize_t read(int descriptor, void* buffer, std::size_t size) {
  return shim::Make("read", shim::PathOf(descriptor), ssize_t{-1}, [&](std::size_t bound) {
    return shim::Real<ssize_t(int, void*, std::size_t)>("read")(descriptor, buffer,
                                                                std::min(size, bound));
  });
}

ssize_t pread(int descriptor, void* buffer, std::size_t size, off_t offset) {
  return shim::Make("pread", shim::PathOf(descriptor), ssize_t{-1}, [&](std::size_t bound) {
    return shim::Real<ssize_t(int, void*, std::size_t, off_t)>("pread")(
        descriptor, buffer, std::min(size, bound), offset);
  });
}

ssize_t write(int descriptor, const void* buffer, std::size_t size) {
  return shim::Make("write", shim::PathOf(descriptor), ssize_t{-1}, [&](std::size_t bound) {
    return shim::Real<ssize_t(int, const void*, std::size_t)>("write")(descriptor, buffer,
                                                                       std::min(size, bound));
  });
}

ssize_t pwrite(int descriptor, const void* buffer, std::size_t size, off_t offset) {
  return shim::Make("pwrite", shim::PathOf(descriptor), ssize_t{-1}, [&](std::size_t bound) {
    return shim::Real<ssize_t(int, const void*, std::size_t, off_t)>("pwrite")(
        descriptor, buffer, std::min(size, bound), offset);
  });
}

int fallocate(int descriptor, int mode, off_t offset, off_t size) {
  return shim::Make("fallocate", shim::PathOf(descriptor), -1, [&](std::size_t) {
    return shim::Real<int(int, int, off_t, off_t)>("fallocate")(descriptor, mode, offset, size);
  });
}

int fsync(int descriptor) {
  return shim::Make("fsync", shim::PathOf(descriptor), -1,
                    [&](std::size_t) { return shim::Real<int(int)>("fsync")(descriptor); });
}

int fcntl(int descriptor, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return shim::Make("fcntl", shim::PathOf(descriptor), -1, [&](std::size_t) {
    return shim::Real<int(int, int, ...)>("fcntl")(descriptor, command, argument);
  });
}

int fstat(int descriptor, struct stat* info) noexcept {
  return shim::Make("fstat", shim::PathOf(descriptor), -1, [&](std::size_t) {
    return shim::Real<int(int, struct stat*)>("fstat")(descriptor, info);
  });
}

int fstatat(int directory, const char* path, struct stat* info, int flags) noexcept {
  return shim::Stat("fstatat", directory, path, info, flags);
}

int stat(const char* path, struct stat* info) noexcept {
  return shim::Stat("stat", AT_FDCWD, path, info, 0);
}

int lstat(const char* path, struct stat* info) noexcept {
  return shim::Stat("lstat", AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW);
}

int fstatfs(int descriptor, struct statfs* info) noexcept {
  return shim::Make("fstatfs", shim::PathOf(descriptor), -1, [&](std::size_t) {
    return shim::Real<int(int, struct statfs*)>("fstatfs")(descriptor, info);
  });
}

int fstatvfs(int descriptor, struct statvfs* info) noexcept {
  return shim::Make("fstatvfs", shim::PathOf(descriptor), -1, [&](std::size_t) {
    return shim::Real<int(int, struct statvfs*)>("fstatvfs")(descriptor, info);
  });
}

int mkdir(const char* path, mode_t mode) noexcept {
  return shim::Make("mkdir", shim::PathOf(AT_FDCWD, path), -1, [&](std::size_t) {
    return shim::Real<int(const char*, mode_t)>("mkdir")(path, mode);
  });
}

int rmdir(const char* path) noexcept {
  return shim::Make("rmdir", shim::PathOf(AT_FDCWD, path), -1,
                    [&](std::size_t) { return shim::Real<int(const char*)>("rmdir")(path); });
}

int unlinkat(int directory, const char* path, int flags) noexcept {
  return shim::Make("unlinkat", shim::PathOf(directory, path), -1, [&](std::size_t) {
    return shim::Real<int(int, const char*, int)>("unlinkat")(directory, path, flags);
  });
}

int linkat(int from_directory, const char* from, int to_directory, const char* to,
           int flags) noexcept {
  return shim::Make("linkat", shim::PathOf(to_directory, to), -1, [&](std::size_t) {
    return shim::Real<int(int, const char*, int, const char*, int)>("linkat")(
        from_directory, from, to_directory, to, flags);
  });
}

int renameat2(int from_directory, const char* from, int to_directory, const char* to,
              unsigned flags) noexcept {
  return shim::Make("renameat2", shim::PathOf(to_directory, to), -1, [&](std::size_t) {
    return shim::Real<int(int, const char*, int, const char*, unsigned)>("renameat2")(
        from_directory, from, to_directory, to, flags);
  });
}

// What a stream took cannot be given back: late failures are not for this one.
DIR* fdopendir(int descriptor) {
  return shim::Make("fdopendir", shim::PathOf(descriptor), static_cast<DIR*>(nullptr),
                    [&](std::size_t) { return shim::Real<DIR*(int)>("fdopendir")(descriptor); });
}

dirent* readdir(DIR* stream) {
  return shim::Make("readdir", shim::PathOf(::dirfd(stream)), static_cast<dirent*>(nullptr),
                    [&](std::size_t) { return shim::Real<dirent*(DIR*)>("readdir")(stream); });
}

int closedir(DIR* stream) {
  return shim::CloseOnce("closedir", ::dirfd(stream),
                         [&] { return shim::Real<int(DIR*)>("closedir")(stream); });
}

ssize_t getrandom(void* buffer, std::size_t size, unsigned flags) {
  return shim::Make("getrandom", "", ssize_t{-1}, [&](std::size_t bound) {
    return shim::Real<ssize_t(void*, std::size_t, unsigned)>("getrandom")(
        buffer, std::min(size, bound), flags);
  });
}

}  // extern "C"
