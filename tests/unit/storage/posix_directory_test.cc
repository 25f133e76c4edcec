// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/posix_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/storage/storage_fixture.h"

// Features that only the operating system's file systems have: links, pipes, modes.

namespace sealpoint {
namespace {

using testing::Names;
using testing::ReadFile;
using testing::TempDir;
using testing::WriteFile;

class PosixDirectoryTest : public ::testing::Test {
 protected:
  const TempDir temp_;
  const std::shared_ptr<Storage> storage_ = PosixStorage();
  const std::unique_ptr<Directory> directory_ = storage_->OpenDirectory(temp_.path()).value();
};

TEST_F(PosixDirectoryTest, CreationDoesNotFollowALink) {
  ASSERT_EQ(::symlink("target", (temp_ / "link").c_str()), 0);
  EXPECT_EQ(directory_->CreateExclusive("link", {}).error().code(), Code::kAlreadyExists);
  EXPECT_EQ(directory_->Stat("target").error().code(), Code::kNotFound);
}

TEST_F(PosixDirectoryTest, AReplacedFileIsOldOrNew) {
  ASSERT_TRUE(directory_->Replace("f", AsBytes("old")).ok());
  const auto open = directory_->OpenForRead("f", IoMode::kBuffered).value();
  ASSERT_TRUE(directory_->Replace("f", AsBytes("newer")).ok());
  EXPECT_EQ(open->size_bytes(), 3u);
  EXPECT_EQ(ReadFile(*directory_, "f"), "newer");
  std::filesystem::create_directory(temp_ / "d");
  EXPECT_FALSE(directory_->Replace("d", AsBytes("x")).ok());
  EXPECT_EQ(Names(*directory_), (std::vector<std::string>{"d", "f"}));
}

TEST_F(PosixDirectoryTest, AMoveReplacesNothingButAnEmptyDirectory) {
  for (const char* const name : {"a", "b", "full/c"}) {
    std::filesystem::create_directories((temp_ / name).substr(0, (temp_ / name).rfind('/')));
    std::ofstream(temp_ / name) << name;
  }
  std::filesystem::create_directory(temp_ / "empty");
  const auto move = [&](const std::string& from, const std::string& to) {
    return storage_->Move(temp_ / from, temp_ / to).code();
  };
  EXPECT_EQ(move("a", "b"), Code::kAlreadyExists);
  EXPECT_EQ(move("empty", "full"), Code::kAlreadyExists);
  EXPECT_EQ(move("full", "b"), Code::kAlreadyExists);
  EXPECT_EQ(move("none", "c"), Code::kNotFound);
  EXPECT_EQ(ReadFile(*directory_, "b"), "b");
  EXPECT_EQ(move("full", "empty"), Code::kOk);
  EXPECT_EQ(move("a", "empty/a"), Code::kOk);
  EXPECT_EQ(Names(*directory_), (std::vector<std::string>{"b", "empty"}));
  EXPECT_TRUE(storage_->SyncAll(temp_.path()).ok());
  EXPECT_EQ(storage_->SyncAll(temp_ / "none").code(), Code::kNotFound);
}

TEST_F(PosixDirectoryTest, RemoveAllFollowsNoLink) {
  std::filesystem::create_directories(temp_ / "tree/inner/deep");
  std::ofstream(temp_ / "file") << "stays";
  ASSERT_EQ(::symlink((temp_ / "file").c_str(), (temp_ / "tree/link").c_str()), 0);
  ASSERT_EQ(::symlink(temp_.path().c_str(), (temp_ / "tree/inner/up").c_str()), 0);
  EXPECT_TRUE(RemoveAll(*storage_, temp_ / "tree/").ok());
  EXPECT_TRUE(RemoveAll(*storage_, temp_ / "tree").ok());
  EXPECT_EQ(Names(*directory_), (std::vector<std::string>{"file"}));
  EXPECT_EQ(RemoveAll(*storage_, "/").code(), Code::kInvalidArgument);
}

TEST_F(PosixDirectoryTest, ReadingFollowsALink) {
  WriteFile(*directory_, "target", "content");
  ASSERT_EQ(::symlink("target", (temp_ / "link").c_str()), 0);
  EXPECT_EQ(ReadFile(*directory_, "link"), "content");
  EXPECT_EQ(directory_->Stat("link").value(), (EntryInfo{"link", EntryKind::kSymlink, 7}));
}

TEST_F(PosixDirectoryTest, LinkToNowhereIsListedButNotFound) {
  ASSERT_EQ(::symlink("nowhere", (temp_ / "link").c_str()), 0);
  EXPECT_EQ(directory_->OpenForRead("link", IoMode::kBuffered).error().code(), Code::kNotFound);
  EXPECT_EQ(directory_->List().value(), (std::vector<EntryInfo>{{"link", EntryKind::kSymlink, 0}}));
}

TEST_F(PosixDirectoryTest, LinksInACircleAreAnError) {
  ASSERT_EQ(::symlink("b", (temp_ / "a").c_str()), 0);
  ASSERT_EQ(::symlink("a", (temp_ / "b").c_str()), 0);
  EXPECT_EQ(directory_->OpenForRead("a", IoMode::kBuffered).error().code(), Code::kIo);
}

TEST_F(PosixDirectoryTest, RemovingALinkLeavesItsTarget) {
  WriteFile(*directory_, "target", "content");
  ASSERT_EQ(::symlink("target", (temp_ / "link").c_str()), 0);
  ASSERT_TRUE(directory_->Remove("link").ok());
  EXPECT_EQ(ReadFile(*directory_, "target"), "content");
}

TEST_F(PosixDirectoryTest, LinkAtTheTargetIsNotPublishedThrough) {
  WriteFile(*directory_, "from", "content");
  ASSERT_EQ(::symlink("elsewhere", (temp_ / "COMMIT").c_str()), 0);
  for (const auto method : {PublishMethod::kLink, PublishMethod::kRenameNoReplace}) {
    EXPECT_EQ(directory_->PublishExclusive("from", "COMMIT", method).code(), Code::kAlreadyExists);
  }
  EXPECT_EQ(directory_->Stat("elsewhere").error().code(), Code::kNotFound);
}

TEST_F(PosixDirectoryTest, PipeIsRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo((temp_ / "pipe").c_str(), 0600), 0);
  std::atomic<bool> has_returned = false;
  std::thread writer([&] {  // lets a reader that waits go
    for (int ms = 0; ms < 2000 && !has_returned; ++ms) usleep(1000);
    EXPECT_TRUE(has_returned);
    ::close(::open((temp_ / "pipe").c_str(), O_RDWR | O_NONBLOCK));
  });
  const auto file = directory_->OpenForRead("pipe", IoMode::kBuffered);
  has_returned = true;
  writer.join();
  EXPECT_EQ(file.error().code(), Code::kIo);
  EXPECT_EQ(file.error().message(), "not a regular file");
  EXPECT_EQ(directory_->Stat("pipe").value().kind, EntryKind::kOther);
}

TEST_F(PosixDirectoryTest, DeviceIsRefused) {
  ASSERT_EQ(::symlink("/dev/zero", (temp_ / "zero").c_str()), 0);
  EXPECT_EQ(directory_->OpenForRead("zero", IoMode::kBuffered).error().message(),
            "not a regular file");
}

TEST_F(PosixDirectoryTest, FilesAreNotInheritedByPrograms) {
  const auto before = std::filesystem::directory_iterator("/proc/self/fd");
  std::vector<std::string> old;
  for (const auto& entry : before) old.push_back(entry.path().string());
  WriteFile(*directory_, "a", "");
  const auto writer = directory_->CreateExclusive("b", {.mode = IoMode::kDirect});
  const auto reader = directory_->OpenForRead("a", IoMode::kDirect);
  int seen = 0;
  for (int fd = 3; fd < 256; ++fd) {
    const int flags = ::fcntl(fd, F_GETFD);
    const std::string name = "/proc/self/fd/" + std::to_string(fd);
    if (flags < 0 || std::find(old.begin(), old.end(), name) != old.end()) continue;
    EXPECT_NE(flags & FD_CLOEXEC, 0) << fd;
    ++seen;
  }
  EXPECT_EQ(seen, 2);
}

TEST_F(PosixDirectoryTest, RenamedDirectoryIsStillTheSame) {
  ASSERT_TRUE(storage_->CreateDirectories(temp_ / "old").ok());
  const auto inner = storage_->OpenDirectory(temp_ / "old").value();
  ASSERT_EQ(::rename((temp_ / "old").c_str(), (temp_ / "new").c_str()), 0);
  WriteFile(*inner, "a", "content");
  EXPECT_EQ(ReadFile(*storage_->OpenDirectory(temp_ / "new").value(), "a"), "content");
}

TEST_F(PosixDirectoryTest, PathOfADirectoryMayBeALink) {
  ASSERT_TRUE(storage_->CreateDirectories(temp_ / "real").ok());
  ASSERT_EQ(::symlink("real", (temp_ / "link").c_str()), 0);
  EXPECT_TRUE(storage_->OpenDirectory(temp_ / "link").ok());
  ASSERT_TRUE(storage_->CreateDirectories(temp_ / "link/below").ok());
  EXPECT_EQ(Names(*storage_->OpenDirectory(temp_ / "real").value()),
            std::vector<std::string>{"below"});
}

TEST_F(PosixDirectoryTest, LinkToNowhereIsNotMadeADirectory) {
  ASSERT_EQ(::symlink("nowhere", (temp_ / "link").c_str()), 0);
  EXPECT_EQ(storage_->CreateDirectories(temp_ / "link").code(), Code::kNotFound);
}

TEST_F(PosixDirectoryTest, PathThatIsTooLongIsAnError) {
  std::string path = temp_.path();
  while (path.size() < 5000) path.append("/0123456789");
  EXPECT_EQ(storage_->OpenDirectory(path).error().code(), Code::kIo);
  EXPECT_EQ(storage_->CreateDirectories(path).code(), Code::kIo);
}

TEST_F(PosixDirectoryTest, SyncThatIsNotOfferedIsUnsupported) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const internal::storage::UniqueFd reader(ends[0]);
  const internal::storage::UniqueFd writer(ends[1]);  // fsync(2) of a pipe gives EINVAL
  const Status status = internal::storage::SyncDirectoryFd(writer.get(), "p");
  EXPECT_EQ(status.code(), Code::kUnsupported) << status.ToString();
  EXPECT_EQ(status.place().path, "p");
}

TEST_F(PosixDirectoryTest, ErrorNamesOperationAndErrno) {
  const auto file = directory_->OpenForRead("a", IoMode::kBuffered);
  EXPECT_EQ(file.error().message(), "openat: No such file or directory (errno 2)");
}

TEST_F(PosixDirectoryTest, ProbeRemovesNothingThatItDidNotMake) {
  WriteFile(*directory_, "probe.link-target", "mine");
  const auto found = directory_->Probe("probe");
  EXPECT_EQ(found.error().code(), Code::kAlreadyExists);
  EXPECT_EQ(Names(*directory_), std::vector<std::string>{"probe.link-target"});
}

TEST_F(PosixDirectoryTest, ProbeLeavesNothingBehindWhenItFails) {
  WriteFile(*directory_, "probe.link-second", "mine");
  EXPECT_FALSE(directory_->Probe("probe").ok());
  EXPECT_EQ(Names(*directory_), std::vector<std::string>{"probe.link-second"});
}

TEST_F(PosixDirectoryTest, ProbeAgreesWithWhatFilesDo) {
  const auto found = directory_->Probe("probe").value();
  const auto file = directory_->CreateExclusive("a", {.mode = IoMode::kDirect});
  ASSERT_TRUE(file.ok()) << file.error().ToString();
  EXPECT_EQ((*file)->is_direct(), found.direct_io);
}

TEST_F(PosixDirectoryTest, ProbeTellsWhetherBlocksCanBeReserved) {
  const auto found = directory_->Probe("probe").value();
  const internal::storage::UniqueFd fd(
      ::open((temp_ / "a").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_EQ(::fallocate(fd.get(), FALLOC_FL_KEEP_SIZE, 0, 4096) == 0, found.preallocate);
}

TEST(PosixStorage, ListsAndFallsBackWhereDirectIoIsRefused) {
  const auto proc = PosixStorage()->OpenDirectory("/proc/self");
  ASSERT_TRUE(proc.ok());
  const auto file = (*proc)->OpenForRead("status", IoMode::kDirect);
  ASSERT_TRUE(file.ok()) << file.error().ToString();
  EXPECT_FALSE((*file)->is_direct());
  EXPECT_FALSE((*proc)->CreateExclusive("a", {}).ok());
}

}  // namespace
}  // namespace sealpoint
