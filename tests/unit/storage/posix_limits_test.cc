// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "tests/unit/storage/storage_fixture.h"

// Limits of the process and of the file system. Each test sets its limit in a child process, which
// reports by its exit status.

namespace sealpoint {
namespace {

using testing::TempDir;

constexpr int kSkipped = 77;

// The exit status of a child that runs `body`, which returns "" for success or what is wrong.
int RunInChild(const std::function<std::string()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string wrong = body();
    if (!wrong.empty()) std::fprintf(stderr, "in the child: %s\n", wrong.c_str());
    ::_exit(wrong.empty() ? 0 : wrong == "skipped" ? kSkipped : 1);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

std::string Expect(const Status& status, Code code) {
  return status.code() == code ? "" : "got " + status.ToString();
}

std::unique_ptr<Directory> Open(const std::string& path) {
  auto directory = PosixStorage()->OpenDirectory(path);
  return directory.ok() ? std::move(*directory) : nullptr;
}

// Mounts an own file system of 64 KiB and 8 inodes at `path`; false if that is not allowed.
bool MountTiny(const std::string& path) {
  if (::unshare(CLONE_NEWNS) != 0) return false;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return ::mount("tiny", path.c_str(), "tmpfs", 0, "size=64k,nr_inodes=8") == 0;
}

TEST(PosixLimits, TooManyOpenFilesIsAnError) {
  const TempDir temp;
  EXPECT_EQ(RunInChild([&]() -> std::string {
              const auto directory = Open(temp.path());
              const rlimit none = {3, 3};
              if (::setrlimit(RLIMIT_NOFILE, &none) != 0) return "setrlimit";
              std::string wrong = Expect(directory->CreateExclusive("a", {}).error(), Code::kIo);
              wrong += Expect(directory->List().error(), Code::kIo);
              return wrong + Expect(PosixStorage()->OpenDirectory("/").error(), Code::kIo);
            }),
            0);
}

// The kernel writes what the limit allows, which is a short write, and refuses the rest. The odd
// rest of a direct write falls back to buffered.
TEST(PosixLimits, ShortWriteIsContinuedAndItsErrorNamesTheOffset) {
  const TempDir temp;
  for (const IoMode mode : {IoMode::kBuffered, IoMode::kDirect}) {
    EXPECT_EQ(RunInChild([&]() -> std::string {
                constexpr std::uint64_t kLimit = kDirectIoAlignmentBytes + 100;
                struct alignas(kDirectIoAlignmentBytes) Blocks {
                  std::array<std::byte, 2 * kDirectIoAlignmentBytes> bytes;
                };
                const auto blocks = std::make_unique<Blocks>();
                auto file = Open(temp.path())
                                ->CreateExclusive(mode == IoMode::kDirect ? "direct" : "buffered",
                                                  {.mode = mode});
                if (!file.ok()) return file.error().ToString();
                const rlimit limit = {kLimit, kLimit};
                if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return "setrlimit";
                const Status status = (*file)->WriteAt(0, blocks->bytes);
                if (status.place().offset != kLimit) return status.ToString();
                if ((*file)->Close() != status) return "not poisoned";
                sigset_t left{};
                sigset_t blocked{};
                ::sigpending(&left);
                ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
                if (sigismember(&left, SIGXFSZ) != 0) return "SIGXFSZ is pending";
                if (sigismember(&blocked, SIGXFSZ) != 0) return "SIGXFSZ is still blocked";
                return Expect(status, Code::kIo);
              }),
              0);
  }
}

TEST(PosixLimits, FullFileSystemIsNoSpace) {
  const TempDir temp;
  const int result = RunInChild([&]() -> std::string {
    if (!MountTiny(temp.path())) return "skipped";
    const auto directory = Open(temp.path());
    auto file = directory->CreateExclusive("a", {});
    if (!file.ok()) return file.error().ToString();
    std::string wrong = Expect((*file)->Preallocate(1 << 20), Code::kNoSpace);
    const Status first = (*file)->WriteAt(0, Bytes(1 << 20));
    wrong += Expect(first, Code::kNoSpace);
    if ((*file)->Sync() != first) wrong += "not poisoned";
    return wrong;
  });
  if (result == kSkipped) GTEST_SKIP() << "mounting is not allowed";
  EXPECT_EQ(result, 0);
}

TEST(PosixLimits, NoInodesLeftIsNoSpace) {
  const TempDir temp;
  const int result = RunInChild([&]() -> std::string {
    if (!MountTiny(temp.path())) return "skipped";
    const auto directory = Open(temp.path());
    for (int i = 0; directory->FreeSpace().value().free_inodes > 0; ++i) {
      if (i > 8) return "inodes are not counted";
      (void)directory->CreateExclusive(std::to_string(i), {});
    }
    std::string wrong = Expect(directory->CreateExclusive("x", {}).error(), Code::kNoSpace);
    wrong += Expect(PosixStorage()->CreateDirectories(temp / "x/y"), Code::kNoSpace);
    return wrong + Expect(directory->Probe("probe").error(), Code::kNoSpace);
  });
  if (result == kSkipped) GTEST_SKIP() << "mounting is not allowed";
  EXPECT_EQ(result, 0);
}

// As many FUSE and network mounts do, which have room all the same.
TEST(PosixLimits, AFileSystemThatTellsNoSpaceIsNotFull) {
  struct statvfs info = {};
  ASSERT_EQ(::statvfs("/proc", &info), 0);
  if (info.f_blocks != 0) GTEST_SKIP() << "/proc has blocks here";
  const SpaceInfo space = Open("/proc")->FreeSpace().value();
  EXPECT_EQ(space.free_bytes, ~std::uint64_t{0});
  EXPECT_EQ(space.free_inodes, ~std::uint64_t{0});
}

TEST(PosixLimits, ReadOnlyFileSystemIsAnErrorButCanBeRead) {
  const TempDir temp;
  const int result = RunInChild([&]() -> std::string {
    if (!MountTiny(temp.path())) return "skipped";
    testing::WriteFile(*Open(temp.path()), "a", "content");
    if (::mount(nullptr, temp.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) {
      return "skipped";
    }
    const auto directory = Open(temp.path());
    if (testing::ReadFile(*directory, "a") != "content") return "cannot read";
    std::string wrong = Expect(directory->CreateExclusive("b", {}).error(), Code::kIo);
    wrong += Expect(directory->Remove("a"), Code::kIo);
    wrong += Expect(directory->PublishExclusive("a", "b", PublishMethod::kLink), Code::kIo);
    return wrong + Expect(PosixStorage()->CreateDirectories(temp / "d"), Code::kIo);
  });
  if (result == kSkipped) GTEST_SKIP() << "mounting is not allowed";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace sealpoint
