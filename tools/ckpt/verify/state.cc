// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/verify/state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "tools/common/text.h"

namespace sealpoint::tools::verify {
namespace {

constexpr std::chrono::seconds kSavePeriod{5};

Status SystemError(std::string_view call, const std::string& path) {
  const int number = errno;
  const bool is_full = number == ENOSPC || number == EDQUOT;
  return Status(is_full ? Code::kNoSpace : Code::kIo,
                fmt::format("{}: {} (errno {})", call, std::strerror(number), number))
      .AtPath(path);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// Nothing if there is no such file.
Result<std::optional<std::string>> ReadAll(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0 && errno == ENOENT) return std::optional<std::string>();
  if (file.get() < 0) return SystemError("open", path);
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return SystemError("fstat", path);
  if (!S_ISREG(info.st_mode)) return Status(Code::kIo, "not a regular file").AtPath(path);
  std::string text;
  std::array<char, 1 << 16> part{};
  while (true) {
    const ssize_t count = ::read(file.get(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("read", path);
    if (count == 0) return std::optional(std::move(text));
    text.append(part.data(), static_cast<std::size_t>(count));
  }
}

Status WriteAndSync(const std::string& path, std::string_view text) {
  // Not a file, or a link, that somebody has laid here.
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return SystemError("unlink", path);
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) return SystemError("open", path);
  while (!text.empty()) {
    const ssize_t count = ::write(file.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("write", path);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  if (::fsync(file.get()) != 0) return SystemError("fsync", path);
  return {};
}

// A file system that cannot sync directories loses at most the last version.
void SyncFolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() >= 0) (void)::fsync(file.get());
}

volatile std::sig_atomic_t caught_signal = 0;

}  // namespace

StateFile::StateFile(std::string path, std::shared_ptr<VerifiedChunks> verified, std::string note)
    : path_(std::move(path)), verified_(std::move(verified)), note_(std::move(note)) {}

Result<std::unique_ptr<StateFile>> StateFile::Open(const std::string& path) {
  Result<std::optional<std::string>> text = ReadAll(path);
  if (!text) return text.error();
  std::shared_ptr<VerifiedChunks> verified;
  std::string note;
  if (*text) {
    auto decoded = VerifiedChunks::Decode(**text);
    if (decoded) {
      verified = *std::move(decoded);
      note = fmt::format("goes on with the verification begun at {}",
                         FormatTime(verified->begun_unix_s() * 1'000'000'000));
    } else if (decoded.error().code() == Code::kCorrupt) {
      note = decoded.error().message() + "; the verification begins anew";
    } else {
      return Status(decoded.error()).AtPath(path);
    }
  }
  if (!verified) verified = VerifiedChunks::Create();
  std::unique_ptr<StateFile> file(new StateFile(path, std::move(verified), std::move(note)));
  if (Status status = file->Save(); !status.ok()) return status;
  return file;
}

// A name of this process's own, so that two of them never write into one file.
Status StateFile::Save() const {
  const std::string fresh = fmt::format("{}.{}", path_, ::getpid());
  Status status = WriteAndSync(fresh, verified_->Encode());
  if (status.ok() && std::rename(fresh.c_str(), path_.c_str()) != 0) {
    status = SystemError("rename", path_);
  }
  if (!status.ok()) {
    (void)::unlink(fresh.c_str());
    return status;
  }
  SyncFolderOf(path_);
  return {};
}

void StateFile::SaveNowAndThen() {
  if (Clock::now() - saved_ < kSavePeriod) return;
  if (Status status = Save(); failure_.ok()) failure_ = std::move(status);
  saved_ = Clock::now();
}

Status StateFile::Remove() const {
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) return SystemError("unlink", path_);
  SyncFolderOf(path_);
  return {};
}

void CatchSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) { caught_signal = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction before = {};
    // What the caller ignores, as nohup does, stays ignored.
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    (void)::sigaction(signal, &action, nullptr);
  }
}

int CaughtSignal() { return caught_signal; }

void EndBySignal(int signal) {
  (void)std::signal(signal, SIG_DFL);
  (void)std::raise(signal);
  std::_Exit(128 + signal);
}

}  // namespace sealpoint::tools::verify
