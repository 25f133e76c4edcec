// SPDX-License-Identifier: Apache-2.0
//
// The storage on files with failures of system calls that no limit can provoke: the functions of
// the C library are replaced.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/codec/chunk_codec.h"
#include "lib/device/host_mapping.h"
#include "lib/device/staging_pool.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/mapped_tensor.h"
#include "sealpoint/storage.h"
#include "sealpoint/verify.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/container/rule_matchers.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/descriptor_path.h"

namespace {

using sealpoint::testing::PathOf;

// The next call of this name whose path ends with `end` fails, once.
struct NextFault {
  std::string call{};
  std::string end{};
  int error_number = EIO;     // 0: the call returns 0
  bool takes_effect = false;  // the call is made all the same
  long flips = -1;            // the offset at which a read returns a wrong byte, and no error
  int passes = 0;             // so many such calls before it are made
};

NextFault& Next() {
  static NextFault next;
  return next;
}

constexpr std::size_t kMapSizeMin = 64 * 1024;  // of a mapping that may fail

// The next allocation of so many bytes or more fails, once; 0: none does.
std::atomic<std::size_t> failing_size_min{0};

// All calls of the replaced functions: "<name> <last component of the path>".
std::vector<std::string>& Calls() {
  static std::vector<std::string> calls;
  return calls;
}

// What statx says of direct I/O on any file: an alignment, 0 where there is none, or what the file
// system says.
std::optional<unsigned> alignment_of_direct_io;

// False: as on a file system without RENAME_NOREPLACE.
bool has_exclusive_rename = true;

constexpr long kPageBytes = 65536;  // of the system, as it says here

const void* last_unmapped = nullptr;

bool IsNext(const char* call, const std::string& path) {
  Calls().push_back(std::string(call) + " " + path.substr(path.rfind('/') + 1));
  return Next().call == call && path.ends_with(Next().end) && Next().passes-- == 0;
}

// The real function, unless this call is the one to fail.
template <typename Function, typename... Arguments>
auto Stand(const char* call, const std::string& path, Arguments... arguments) {
  const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, call));
  using Value = decltype(real(arguments...));
  if (!IsNext(call, path)) return real(arguments...);
  const NextFault fault = std::exchange(Next(), {});
  if (fault.takes_effect) static_cast<void>(real(arguments...));
  errno = fault.error_number;
  if constexpr (std::is_pointer_v<Value>) {
    return static_cast<Value>(nullptr);
  } else {
    return static_cast<Value>(fault.error_number == 0 ? 0 : -1);
  }
}

}  // namespace

extern "C" {

int fsync(int fd) { return Stand<int (*)(int)>("fsync", PathOf(fd), fd); }

int close(int fd) { return Stand<int (*)(int)>("close", PathOf(fd), fd); }

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  using Function = ssize_t (*)(int, const void*, size_t, off_t);
  return Stand<Function>("pwrite", PathOf(fd), fd, data, size, offset);
}

ssize_t pread(int fd, void* data, size_t size, off_t offset) {
  if (const long at = Next().flips; at >= 0 && PathOf(fd).ends_with(Next().end)) {
    Next() = {};
    const ssize_t got = pread(fd, data, size, offset);
    static_cast<char*>(data)[at] ^= 1;
    return got;
  }
  using Function = ssize_t (*)(int, void*, size_t, off_t);
  return Stand<Function>("pread", PathOf(fd), fd, data, size, offset);
}

int linkat(int from_fd, const char* from, int to_fd, const char* to, int flags) {
  using Function = int (*)(int, const char*, int, const char*, int);
  return Stand<Function>("linkat", to, from_fd, from, to_fd, to, flags);
}

int link(const char* from, const char* to) noexcept {
  return Stand<int (*)(const char*, const char*)>("link", to, from, to);
}

int renameat2(int from_fd, const char* from, int to_fd, const char* to, unsigned flags) noexcept {
  if (!has_exclusive_rename && (flags & RENAME_NOREPLACE) != 0) {
    errno = EINVAL;
    return -1;
  }
  using Function = int (*)(int, const char*, int, const char*, unsigned);
  return Stand<Function>("renameat2", to, from_fd, from, to_fd, to, flags);
}

int unlinkat(int fd, const char* name, int flags) noexcept {
  return Stand<int (*)(int, const char*, int)>("unlinkat", name, fd, name, flags);
}

int mkdir(const char* path, mode_t mode) noexcept {
  return Stand<int (*)(const char*, mode_t)>("mkdir", path, path, mode);
}

int fstatat(int fd, const char* name, struct stat* info, int flags) noexcept {
  using Function = int (*)(int, const char*, struct stat*, int);
  return Stand<Function>("fstatat", name, fd, name, info, flags);
}

int statx(int fd, const char* name, int flags, unsigned mask, struct statx* info) noexcept {
  using Function = int (*)(int, const char*, int, unsigned, struct statx*);
  const int result = Stand<Function>("statx", PathOf(fd), fd, name, flags, mask, info);
  if (alignment_of_direct_io) {
    info->stx_mask |= STATX_DIOALIGN;
    info->stx_dio_mem_align = info->stx_dio_offset_align = *alignment_of_direct_io;
  }
  return result;
}

void* __libc_malloc(size_t size);  // glibc's own

void* malloc(size_t size) noexcept {
  if (failing_size_min == 0 || size < failing_size_min) return __libc_malloc(size);
  failing_size_min = 0;
  return nullptr;
}

void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return Stand<void* (*)(size_t, size_t)>("aligned_alloc", "", alignment, size);
}

int madvise(void* data, size_t size, int advice) noexcept {
  const std::string path = std::to_string(size) + " bytes, advice " + std::to_string(advice);
  return Stand<int (*)(void*, size_t, int)>("madvise", path, data, size, advice);
}

// Not for most callers, some of whom come before this program can look for the real function.
void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  if (Next().call == "mmap" && size >= kMapSizeMin) {
    errno = std::exchange(Next(), {}).error_number;
    return MAP_FAILED;
  }
  const long data = syscall(SYS_mmap, at, size, protection, flags, fd, offset);
  return reinterpret_cast<void*>(data);  // NOLINT(performance-no-int-to-ptr)
}

int munmap(void* at, size_t size) noexcept {
  last_unmapped = at;
  return static_cast<int>(syscall(SYS_munmap, at, size));
}

long sysconf(int name) noexcept {
  if (name == _SC_PAGESIZE) return kPageBytes;
  return reinterpret_cast<long (*)(int)>(dlsym(RTLD_NEXT, "sysconf"))(name);
}

int memfd_create(const char* name, unsigned flags) noexcept {
  return Stand<int (*)(const char*, unsigned)>("memfd_create", name, name, flags);
}

DIR* fdopendir(int fd) { return Stand<DIR* (*)(int)>("fdopendir", PathOf(fd), fd); }

dirent* readdir(DIR* stream) {
  return Stand<dirent* (*)(DIR*)>("readdir", PathOf(dirfd(stream)), stream);
}

int fcntl(int fd, int command, ...) {
  std::va_list list;
  va_start(list, command);
  const long argument = va_arg(list, long);
  va_end(list);
  const std::string path = PathOf(fd) + (command == F_GETFL ? ".get" : ".set");
  return Stand<int (*)(int, int, ...)>("fcntl", path, fd, command, argument);
}

}  // extern "C"

namespace sealpoint::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SystemCalls : public ::testing::Test {
 protected:
  SystemCalls() : directory_(PosixStorage()->OpenDirectory(temp_.path()).value()) {
    Next() = {};
    Calls().clear();
  }
  ~SystemCalls() override { Next() = {}; }

  void Fail(const NextFault& fault) { Next() = fault; }
  std::string Base() const { return temp_.path().substr(temp_.path().rfind('/') + 1); }
  std::vector<std::string> Files() const { return FileNames(*PosixStorage(), temp_.path()); }
  Status MakeDirectory(const std::string& name) const {
    return PosixStorage()->CreateDirectories(temp_.path() + "/" + name);
  }

  TempDir temp_;
  std::unique_ptr<Directory> directory_;
};

TEST_F(SystemCalls, AFailedSyncOfADirectoryIsAnError) {
  Fail({.call = "fsync", .end = Base()});
  EXPECT_THAT(directory_->Sync(), HasCode(Code::kIo));
}

TEST_F(SystemCalls, ALevelThatIsNotDurableIsTakenBack) {
  Fail({.call = "fsync", .end = Base()});
  EXPECT_THAT(MakeDirectory("a"), HasCode(Code::kIo));
  EXPECT_THAT(Files(), IsEmpty());
}

// Another process makes the level between the look at it and mkdir.
TEST_F(SystemCalls, ALevelThatAnotherMadeIsSynced) {
  Fail({.call = "mkdir", .end = "a", .error_number = EEXIST, .takes_effect = true});
  ASSERT_TRUE(MakeDirectory("a").ok());
  EXPECT_THAT(Calls(), Contains("fsync " + Base()));
}

TEST_F(SystemCalls, ARemovalThatIsNotDurableIsAnError) {
  ASSERT_TRUE(MakeDirectory("a").ok());
  Fail({.call = "fsync", .end = Base()});
  EXPECT_THAT(PosixStorage()->OpenDirectory(temp_.path()).value()->RemoveSubdirectory("a"),
              HasCode(Code::kIo));
}

TEST_F(SystemCalls, AReplacementThatIsNotDurableIsAnError) {
  ASSERT_TRUE(directory_->Replace("f", AsBytes("old")).ok());
  Fail({.call = "fsync", .end = ".tmp"});
  EXPECT_THAT(directory_->Replace("f", AsBytes("newer")), HasCode(Code::kIo));
  EXPECT_THAT(Files(), ElementsAre("f"));
  EXPECT_EQ(AsText(ReadWholeFile(*PosixStorage(), temp_.path(), "f")), "old");
  Fail({.call = "fsync", .end = Base()});
  EXPECT_THAT(directory_->Replace("f", AsBytes("newer")), HasCode(Code::kIo));
}

TEST_F(SystemCalls, SyncAllReportsEachFileAndDirectory) {
  ASSERT_TRUE(MakeDirectory("a").ok());
  const Bytes content = NoiseBytes(1, 10);
  ReplaceFile(*PosixStorage(), temp_ / "a", "f", &content);
  for (const std::string& end : {std::string("a/f"), std::string("/a"), Base()}) {
    Fail({.call = "fsync", .end = end});
    EXPECT_THAT(DefaultStorage()->SyncAll(temp_.path()), HasCode(Code::kIo)) << end;
  }
  Fail({.call = "fsync", .end = "a/f"});
  EXPECT_THAT(DefaultStorage()->SyncAll(temp_ / "a/f"), HasCode(Code::kIo));
  EXPECT_TRUE(DefaultStorage()->SyncAll(temp_.path()).ok());
}

TEST_F(SystemCalls, AMoveThatIsNotDurableIsAnError) {
  ASSERT_TRUE(MakeDirectory("a").ok());
  ASSERT_TRUE(directory_->Replace("f", AsBytes("x")).ok());
  Fail({.call = "fsync", .end = "/a"});
  EXPECT_THAT(PosixStorage()->Move(temp_ / "f", temp_ / "a/f"), HasCode(Code::kIo));
  Fail({.call = "fsync", .end = Base()});
  EXPECT_THAT(PosixStorage()->Move(temp_ / "a/f", temp_ / "f"), HasCode(Code::kIo));
}

TEST_F(SystemCalls, AMoveReplacesNothingWithoutExclusiveRename) {
  has_exclusive_rename = false;
  const auto move = [&](const char* to) {
    return PosixStorage()->Move(temp_ / "f", temp_ / to).code();
  };
  for (const int error_number : {0, EPERM}) {  // 0: the file system has links
    ASSERT_TRUE(directory_->Replace("f", AsBytes("new")).ok());
    ASSERT_TRUE(directory_->Replace("g", AsBytes("old")).ok());
    if (error_number != 0) Fail({.call = "link", .end = "g", .error_number = error_number});
    EXPECT_EQ(move("g"), Code::kAlreadyExists);
    EXPECT_EQ(AsText(ReadWholeFile(*PosixStorage(), temp_.path(), "g")), "old");
    if (error_number != 0) Fail({.call = "link", .end = "h", .error_number = error_number});
    EXPECT_EQ(move("h"), Code::kOk);
    EXPECT_THAT(Files(), ElementsAre("g", "h"));
    ASSERT_TRUE(directory_->Remove("h").ok());
  }
  ASSERT_TRUE(directory_->Replace("f", AsBytes("new")).ok());
  Fail({.call = "link", .end = "h", .error_number = EIO});
  EXPECT_EQ(move("h"), Code::kIo);
  has_exclusive_rename = true;
}

// After the second try the kernel would report success for pages that it has dropped.
TEST_F(SystemCalls, AFailedSyncIsTriedOnceAndPoisonsTheFile) {
  const auto file = directory_->CreateExclusive("f", {}).value();
  Fail({.call = "fsync", .end = "/f"});
  EXPECT_THAT(file->Sync(), HasCode(Code::kIo));
  EXPECT_THAT(Calls(), ElementsAre("fsync f"));
  EXPECT_THAT(file->Sync(), HasCode(Code::kIo));
  EXPECT_THAT(file->Close(), HasCode(Code::kIo));
  EXPECT_THAT(Calls(), ElementsAre("fsync f", "close f"));
}

TEST_F(SystemCalls, AWriteOfNothingIsAnError) {
  const auto file = directory_->CreateExclusive("f", {}).value();
  Fail({.call = "pwrite", .end = "/f", .error_number = 0});
  EXPECT_THAT(file->WriteAt(0, NoiseBytes(1, 10)), HasCode(Code::kIo));
}

TEST_F(SystemCalls, AFailedReadIsAnError) {
  const Bytes content = NoiseBytes(1, 10);
  ReplaceFile(*PosixStorage(), temp_.path(), "f", &content);
  const auto file = directory_->OpenForRead("f", IoMode::kBuffered).value();
  Fail({.call = "pread", .end = "/f"});
  Bytes found(10);
  EXPECT_THAT(file->ReadAt(0, found), HasCode(Code::kIo));
}

TEST_F(SystemCalls, WithoutItsFlagsAFileIsWrittenBuffered) {
  Fail({.call = "fcntl", .end = "f.get"});
  const auto file = directory_->CreateExclusive("f", {.mode = IoMode::kDirect}).value();
  EXPECT_FALSE(file->is_direct());
  EXPECT_THAT(Calls(), Not(Contains(EndsWith(".set"))));
}

// Memory and files of which the device says what alignment it asks for.
class DirectSystemCalls : public SystemCalls {
 protected:
  static constexpr std::size_t kDeviceBlock = 4 * kDirectIoAlignmentBytes;

  void SetUp() override {
    if (!directory_->CreateExclusive("probe", {.mode = IoMode::kDirect}).value()->is_direct()) {
      GTEST_SKIP() << "no direct I/O at " << temp_.path();
    }
    Calls().clear();
  }
  void TearDown() override { alignment_of_direct_io.reset(); }

  std::unique_ptr<WritableFile> Create() {
    return directory_->CreateExclusive("f", {.mode = IoMode::kDirect}).value();
  }
  // `kDeviceBlock` bytes, `shift` behind a multiple of that.
  MutableByteSpan Block(std::size_t shift = 0) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    const std::size_t begin = kDeviceBlock - address % kDeviceBlock + shift;
    return MutableByteSpan(memory_).subspan(begin, kDeviceBlock);
  }

  Bytes memory_ = NoiseBytes(1, 3 * kDeviceBlock);
};

TEST_F(DirectSystemCalls, AnAlignmentThatTheDeviceAsksForIsKept) {
  alignment_of_direct_io = kDeviceBlock;
  const auto file = Create();
  ASSERT_TRUE(file->WriteAt(0, Block()).ok());
  EXPECT_TRUE(file->is_direct());
  ASSERT_TRUE(file->WriteAt(kDeviceBlock, Block().first(kDirectIoAlignmentBytes)).ok());
  EXPECT_FALSE(file->is_direct());
  const auto reader = directory_->OpenForRead("f", IoMode::kDirect).value();
  Bytes expected(Block().begin(), Block().end());
  ASSERT_TRUE(reader->ReadAt(0, Block()).ok());
  EXPECT_EQ(Bytes(Block().begin(), Block().end()), expected);
  EXPECT_TRUE(reader->is_direct());
  ASSERT_TRUE(reader->ReadAt(kDeviceBlock, Block().first(kDirectIoAlignmentBytes)).ok());
  EXPECT_FALSE(reader->is_direct());
}

TEST_F(DirectSystemCalls, MemoryThatTheDeviceRefusesIsWrittenBuffered) {
  alignment_of_direct_io = kDeviceBlock;
  const auto file = Create();
  ASSERT_TRUE(file->WriteAt(0, Block(kDirectIoAlignmentBytes)).ok());
  EXPECT_FALSE(file->is_direct());
}

TEST_F(DirectSystemCalls, WhereThereIsNoDirectIoTheFlagIsNotTried) {
  alignment_of_direct_io = 0;
  EXPECT_FALSE(Create()->is_direct());
  EXPECT_THAT(Calls(), Not(Contains(EndsWith(".set"))));
}

TEST_F(DirectSystemCalls, AKernelThatKnowsNoAlignmentWritesDirectly) {
  Fail({.call = "statx", .end = "/f", .error_number = ENOSYS});
  const auto file = Create();
  ASSERT_TRUE(file->WriteAt(0, Block().first(kDirectIoAlignmentBytes)).ok());
  EXPECT_TRUE(file->is_direct());
}

TEST_F(SystemCalls, AListingThatBreaksOffIsAnError) {
  const Bytes content = NoiseBytes(1, 10);
  ReplaceFile(*PosixStorage(), temp_.path(), "f", &content);
  for (const NextFault& fault : {NextFault{.call = "fdopendir"}, NextFault{.call = "readdir"},
                                 NextFault{.call = "fstatat", .end = "f"}}) {
    Fail(fault);
    EXPECT_THAT(directory_->List().status(), HasCode(Code::kIo)) << fault.call;
  }
}

TEST_F(SystemCalls, ALinkWhoseTargetCannotBeSeenIsNoLinkToNowhere) {
  const Bytes content = NoiseBytes(1, 10);
  ReplaceFile(*PosixStorage(), temp_.path(), "target", &content);
  ASSERT_EQ(::symlink("target", (temp_ / "link").c_str()), 0);
  const NextFault behind_the_link{.call = "fstatat", .end = "link", .passes = 1};
  Fail(behind_the_link);
  EXPECT_THAT(directory_->Stat("link").status(), HasCode(Code::kIo));
  Fail(behind_the_link);
  EXPECT_EQ(directory_->List().value().front().size_bytes, 0u) << "it may be anybody's";
}

// Where a file cannot have a second name, a saver copies; any other failure is the save's.
TEST_F(SystemCalls, AFileThatCannotBeLinkedIsUnsupportedAndNoOtherErrorIs) {
  const Bytes content = NoiseBytes(1, 10);
  ASSERT_TRUE(MakeDirectory("from").ok());
  const std::string from = temp_ / "from";
  ReplaceFile(*PosixStorage(), from, "f", &content);
  for (const int found : {EXDEV, EPERM, EMLINK, EACCES, EOPNOTSUPP, ENOSYS}) {
    Fail({.call = "linkat", .end = "f", .error_number = found});
    EXPECT_THAT(directory_->LinkFrom(from, "f", 9), HasCode(Code::kUnsupported)) << found;
  }
  Fail({.call = "linkat", .end = "f", .error_number = EIO});
  EXPECT_THAT(directory_->LinkFrom(from, "f", 9), HasCode(Code::kIo));
  ASSERT_EQ(::symlink("f", (temp_ / "from/link").c_str()), 0);
  EXPECT_THAT(directory_->LinkFrom(from, "link", 9), HasCode(Code::kUnsupported));
  EXPECT_THAT(directory_->LinkFrom(from, "gone", 9), HasCode(Code::kNotFound));
  EXPECT_THAT(directory_->LinkFrom(from, "f", 1), HasCode(Code::kUnsupported));
  EXPECT_THAT(directory_->LinkFrom(from, "f", 2), HasCode(Code::kOk));
}

// What a probe finds decides how a commit is published.
class ProbeCalls : public SystemCalls {
 protected:
  Result<Capabilities> Probe() { return directory_->Probe("probe"); }
};

TEST_F(ProbeCalls, EveryCallThatFailsEndsTheProbe) {
  const std::vector<NextFault> faults = {
      {.call = "pwrite", .end = "probe.file"},
      {.call = "aligned_alloc"},
      {.call = "fsync", .end = "probe.file"},
      {.call = "close", .end = "probe.file"},
      {.call = "pread", .end = "probe.file"},
      {.call = "fsync", .end = Base()},
      {.call = "linkat", .end = "link-target", .error_number = ENOSPC},
      {.call = "unlinkat", .end = "probe.file", .takes_effect = true},
  };
  for (const NextFault& fault : faults) {
    Fail(fault);
    const Code code = fault.error_number == ENOSPC ? Code::kNoSpace : Code::kIo;
    const Status status = Probe().status();
    EXPECT_THAT(status, HasCode(code))
        << fault.call << " " << fault.end << ": " << status.ToString();
    EXPECT_EQ(Next().call, "") << "the call was not made: " << status.ToString();
    EXPECT_THAT(Files(), IsEmpty()) << fault.call;
  }
}

TEST_F(ProbeCalls, WhatReadsBackChangedIsAnError) {
  for (const long at : {0L, 4095L}) {
    Fail({.call = "none", .end = "probe.file", .flips = at});
    EXPECT_THAT(Probe().status(), HasCode(Code::kIo)) << at;
  }
}

TEST_F(ProbeCalls, WritesSyncsAndClosesAFile) {
  ASSERT_TRUE(Probe().ok());
  EXPECT_THAT(Calls(), Contains("fsync probe.file"));
  EXPECT_THAT(Calls(), Contains("fsync " + Base()));
}

TEST_F(ProbeCalls, ADirectoryThatCannotBeSyncedIsFound) {
  Fail({.call = "fsync", .end = Base(), .error_number = EINVAL});
  EXPECT_FALSE(Probe().value().directory_sync);
}

// The storage reports a failure, but the name is taken: a second try would take it for durable.
TEST_F(ProbeCalls, ALinkThatReportsAFailureIsNotReliedOn) {
  Fail({.call = "linkat", .end = "link-target", .error_number = EPERM, .takes_effect = true});
  EXPECT_NE(Probe().value().publish, PublishMethod::kLink);
}

// Staging memory: only whole mappings are given out, and none is lost.
TEST_F(SystemCalls, MemoryThatCannotBeHadIsAnError) {
  const auto pool = internal::device::StagingPool::Create(64 * kKiB, 16 * kKiB).value();
  for (const int advice : {MADV_DONTFORK, MADV_POPULATE_WRITE}) {
    Fail({.call = "madvise", .end = std::to_string(advice), .error_number = ENOMEM});
    EXPECT_THAT(pool->Reserve(1), HasCode(Code::kIo));
    Fail({.call = "madvise", .end = std::to_string(advice), .error_number = ENOMEM});
    EXPECT_THAT(pool->Acquire().status(), HasCode(Code::kIo));
  }
  EXPECT_TRUE(pool->Reserve(4).ok());
}

// Linux unmaps whole pages of the system, and refuses a range that begins within one.
TEST_F(SystemCalls, WhatAnAlignedMappingHasTooMuchIsUnmappedInWholePages) {
  const MutableByteSpan bytes = internal::device::MapHostMemory(2 * kMiB + 4096).value();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(last_unmapped) % kPageBytes, 0u);
  internal::device::UnmapHostMemory(bytes);
}

// A tensor that is mapped: from its file, or copied into memory that is sealed.
class MapCalls : public SystemCalls {
 protected:
  MapCalls() {
    MiniTensor tensor =
        CutTensor("t", DType::kUInt8, {kSize}, NoiseBytes(1, kSize), {Region::Whole({kSize})});
    StoreFiles(*PosixStorage(), temp_ / "c", BuildMini({.tensors = {tensor}}).files);
    checkpoint_ = Checkpoint::Open(temp_ / "c").value();
  }
  Status Map(bool host_copy) {
    return MapTensor(*checkpoint_, "t", {.host_copy = host_copy}).status();
  }

  static constexpr std::uint64_t kSize = 128 * 1024;
  std::unique_ptr<Checkpoint> checkpoint_;
};

TEST_F(MapCalls, EachThatFailsIsAnError) {
  const std::string populate = "advice 22";  // MADV_POPULATE_READ
  Fail({.call = "mmap", .error_number = ENOMEM});
  EXPECT_THAT(Map(false), HasCode(Code::kIo));
  Fail({.call = "madvise", .end = populate, .error_number = EIO});
  EXPECT_THAT(Map(false), HasCode(Code::kIo));
  Fail({.call = "madvise", .end = populate, .error_number = EFAULT});
  EXPECT_THAT(Map(false), FailsRule(Code::kIncomplete, "R-BLB-01"));
  Fail({.call = "madvise", .end = populate, .error_number = EINVAL});
  EXPECT_THAT(Map(false), HasCode(Code::kOk)) << "an older kernel";
  Fail({.call = "memfd_create", .end = "sealpoint", .error_number = EMFILE});
  EXPECT_THAT(Map(true).message(), HasSubstr("memfd_create"));
  Fail({.call = "fcntl", .end = "sealpoint (deleted).set", .error_number = EBUSY});
  EXPECT_THAT(Map(true), HasCode(Code::kIo)) << "it is not sealed";
  const auto copy = MapTensor(*checkpoint_, "t", {.host_copy = true}).value();
  Fail({.call = "fcntl", .end = "sealpoint (deleted).set", .error_number = EMFILE, .passes = 1});
  EXPECT_THAT(MapSealed(*checkpoint_, "t", *copy->descriptor()).status().message(),
              HasSubstr("fcntl"));
}

// Verifies one coded chunk of `size` bytes, noise and then zeros, while the first allocation of so
// many bytes fails.
class VerifyWithoutMemory : public SystemCalls {
 protected:
  VerifyReport Check(std::uint64_t size, std::uint64_t noise_size) {
    Bytes bytes = NoiseBytes(1, noise_size);
    bytes.resize(size);
    MiniTensor tensor = CutTensor("t", DType::kUInt8, {1}, Bytes(1), {Region::Whole({1})});
    tensor.shape = {size};
    tensor.chunk_size = size;
    tensor.codec = Codec::kZstd;
    tensor.shards = {{.region = Region::Whole(tensor.shape), .bytes = std::move(bytes)}};
    const auto storage = MemoryStorage();
    StoreFiles(*storage, "c", BuildMini({.tensors = {tensor}}).files);
    Fail({.call = "madvise",
          .end = std::to_string(size) + " bytes, advice " + std::to_string(MADV_DONTFORK),
          .error_number = ENOMEM});
    return Verify("c", {.storage = storage}).value();
  }
  static void ExpectUnreadableChunk(const VerifyReport& report) {
    EXPECT_EQ(report.verdict, Verdict::kUnreadable);
    ASSERT_EQ(report.violations.size(), 1u);
    EXPECT_THAT(report.violations[0], HasCode(Code::kIo));
    EXPECT_EQ(report.violations[0].place().tensor, "t");
  }
};

// The chunk is read in two parts of at most 4 MiB.
TEST_F(VerifyWithoutMemory, ToPutAChunkTogether) {
  ExpectUnreadableChunk(Check(8 * kMiB, 5 * kMiB));
}

TEST_F(VerifyWithoutMemory, ToDecodeAChunk) { ExpectUnreadableChunk(Check(kMiB, 64 * kKiB)); }

// What a codec allocates: its context, zstd's tables, and the memory for the byte split.
class CodecWithoutMemory : public ::testing::Test {
 protected:
  ~CodecWithoutMemory() override { failing_size_min = 0; }

  Status Encode(Codec codec, std::size_t size_min) {
    internal::codec::ChunkCodec encoder;
    failing_size_min = size_min;
    return encoder.Encode(codec, 1, 4, raw_, stored_).status();
  }
  Status Decode(Codec codec, std::size_t size_min) {
    internal::codec::ChunkCodec decoder;
    const auto size = internal::codec::ChunkCodec().Encode(codec, 1, 4, raw_, stored_);
    failing_size_min = size_min;
    return decoder.Decode(codec, 4, ByteSpan(stored_).first(size.value()), raw_);
  }

  Bytes raw_ = Bytes(kMiB);
  Bytes stored_ = Bytes(internal::codec::ChunkCodec::EncodedSizeBound(kMiB));
};

TEST_F(CodecWithoutMemory, CannotEncode) {
  EXPECT_THAT(Encode(Codec::kZstd, kKiB), HasCode(Code::kIo)) << "context";
  EXPECT_THAT(Encode(Codec::kZstd, 16 * kKiB), HasCode(Code::kIo)) << "tables";
  EXPECT_THAT(Encode(Codec::kByteSplitZstd, kMiB), HasCode(Code::kIo)) << "byte split";
  EXPECT_TRUE(Encode(Codec::kByteSplitZstd, 0).ok());
}

TEST_F(CodecWithoutMemory, CannotDecode) {
  EXPECT_THAT(Decode(Codec::kZstd, kKiB), HasCode(Code::kIo)) << "context";
  EXPECT_THAT(Decode(Codec::kByteSplitZstd, kMiB), HasCode(Code::kIo)) << "byte split";
  EXPECT_TRUE(Decode(Codec::kByteSplitZstd, 0).ok());
}

}  // namespace
}  // namespace sealpoint::testing
