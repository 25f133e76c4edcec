// SPDX-License-Identifier: Apache-2.0
// Files that devices read through cuFile, over a table of functions of ours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "lib/device/cuda_runtime.h"
#include "lib/device/cufile_driver.h"
#include "tests/support/device/fake_cuda_driver.h"
#include "tests/support/process/in_child.h"
#include "tests/unit/device/pattern.h"

namespace sealpoint::testing {
namespace {

namespace device = internal::device;

namespace cufile = internal::cufile;
using device::DeviceFile;
using ::testing::HasSubstr;

constexpr int kIoNotSupported = 5008;
constexpr int kDescriptor = 77;

TEST(CufileDriver, NoLibraryIsAnAnswer) {
  const Status status =
      cufile::LoadDriver({"libno_such_cufile.so.0", "libno_such_either.so"}).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("libno_such_cufile.so.0"));
  EXPECT_THAT(status.message(), HasSubstr("libno_such_either.so"));
}

TEST(CufileDriver, AMissingFunctionIsAnAnswer) {
  const Status status = cufile::LoadDriver({"libno_such_cufile.so.0", "libc.so.6"}).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("cuFileDriverOpen"));
}

// What one read gives: bytes of the file, or an error.
struct ReadAnswer {
  ssize_t result = 0;
  int error_number = 0;
};

// A cuFile over "device" memory of the host. A table of plain functions has no object.
struct FakeCufile {
  FakeCudaDriver* cuda = nullptr;
  Bytes content{};
  cufile::Outcome open_answer{};
  cufile::Outcome register_answer{};
  std::deque<ReadAnswer> read_answers{};  // then all that is asked for
  int opens = 0;
  int registered = 0;  // now
  cufile::Descriptor last_descriptor{};
  int calls_without_context = 0;
  std::vector<std::size_t> read_sizes{};

  void NoteContext() {
    if (cuda->CurrentOfThisThread() == nullptr) ++calls_without_context;
  }
};
FakeCufile* g_fake = nullptr;

cufile::Outcome FakeOpen() {
  g_fake->NoteContext();
  ++g_fake->opens;
  return g_fake->open_answer;
}
cufile::Outcome FakeRegister(void** handle, cufile::Descriptor* descriptor) {
  g_fake->NoteContext();
  if (g_fake->register_answer.error != 0) return g_fake->register_answer;
  g_fake->last_descriptor = *descriptor;
  ++g_fake->registered;
  *handle = g_fake;
  return {};
}
void FakeDeregister(void* handle) {
  if (handle == g_fake) --g_fake->registered;
}
ssize_t FakeRead(void* handle, void* base, std::size_t size, off_t file_offset, off_t base_offset) {
  g_fake->NoteContext();
  g_fake->read_sizes.push_back(size);
  ReadAnswer answer{.result = static_cast<ssize_t>(size)};
  if (!g_fake->read_answers.empty()) {
    answer = g_fake->read_answers.front();
    g_fake->read_answers.pop_front();
  }
  errno = answer.error_number;
  if (handle != g_fake) return -kIoNotSupported;
  if (answer.result > 0) {
    std::memcpy(static_cast<std::byte*>(base) + base_offset, g_fake->content.data() + file_offset,
                static_cast<std::size_t>(answer.result));
  }
  return answer.result;
}

class CufileTest : public ::testing::Test {
 protected:
  CufileTest() { g_fake = &fake_; }
  ~CufileTest() override { g_fake = nullptr; }

  void SetUp() override { queue_ = runtime_->MakeQueue(0).value(); }

  std::unique_ptr<DeviceFile> Open() { return runtime_->OpenFile(kDescriptor).value(); }
  // What a read of `size_` bytes at kOffset says.
  Status Read(std::deque<ReadAnswer> answers) {
    fake_.read_answers = std::move(answers);
    fake_.read_sizes.clear();
    std::fill(memory_.begin(), memory_.end(), std::byte{0xee});
    return Open()->Read(kOffset, 0, memory_.data(), memory_.size());
  }
  bool HasArrived() const {
    return std::equal(memory_.begin(), memory_.end(), fake_.content.begin() + kOffset);
  }

  static constexpr std::uint64_t kOffset = 300;
  FakeCudaDriver cuda_{2};
  FakeCufile fake_{.cuda = &cuda_, .content = Pattern(5000)};
  Bytes memory_ = Bytes(1000);
  int loads_ = 0;
  std::shared_ptr<device::DeviceRuntime> runtime_ = device::MakeCudaRuntime(
      [this]() -> Result<internal::cuda::Driver> { return cuda_.table(); },
      [this]() -> Result<cufile::Driver> {
        ++loads_;
        return cufile::Driver{FakeOpen, FakeRegister, FakeDeregister, FakeRead};
      });
  std::unique_ptr<device::CopyQueue> queue_;
};

TEST_F(CufileTest, IsLookedForOnceWhenFirstNeeded) {
  EXPECT_EQ(loads_, 0);
  EXPECT_TRUE(runtime_->CheckFiles().ok());
  Open();
  EXPECT_TRUE(runtime_->CheckFiles().ok());
  EXPECT_EQ(loads_, 1);
  EXPECT_EQ(fake_.opens, 1);
}

TEST_F(CufileTest, RegistersTheDescriptorAsLongAsTheFileLives) {
  auto file = Open();
  EXPECT_EQ(fake_.last_descriptor.type, 1);
  EXPECT_EQ(fake_.last_descriptor.descriptor, kDescriptor);
  EXPECT_EQ(fake_.last_descriptor.operations, nullptr);
  EXPECT_EQ(fake_.registered, 1);
  file.reset();
  EXPECT_EQ(fake_.registered, 0);
}

TEST_F(CufileTest, FillsTheMemoryFromTheOffset) {
  EXPECT_TRUE(Read({}).ok());
  EXPECT_TRUE(HasArrived());
  EXPECT_EQ(fake_.read_sizes, (std::vector<std::size_t>{1000}));
}

TEST_F(CufileTest, AShortReadIsContinued) {
  EXPECT_TRUE(Read({{.result = 1}, {.result = -1, .error_number = EINTR}, {.result = 499}}).ok());
  EXPECT_TRUE(HasArrived());
  EXPECT_EQ(fake_.read_sizes, (std::vector<std::size_t>{1000, 999, 999, 500}));
}

TEST_F(CufileTest, AFileThatEndsEarlyIsIncomplete) {
  const Status status = Read({{.result = 600}, {.result = 0}});
  EXPECT_EQ(status.code(), Code::kIncomplete);
  EXPECT_EQ(status.place().offset, kOffset + 600);
}

TEST_F(CufileTest, ErrorsOfTheFileAreTold) {
  for (const auto& [answer, text] :
       {std::pair{ReadAnswer{-1, EIO}, "errno 5"}, std::pair{ReadAnswer{-1, ESTALE}, "errno 116"},
        std::pair{ReadAnswer{-5044, 0}, "cuFile error 5044"}}) {
    const Status status = Read({{.result = 600}, answer});
    EXPECT_EQ(status.code(), Code::kIo) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr(text));
    EXPECT_EQ(status.place().offset, kOffset + 600);
  }
}

TEST_F(CufileTest, WhatCannotBeReadSoIsUnsupported) {
  for (const auto& [answer, text] : {std::pair{ReadAnswer{-1, EINVAL}, "errno 22"},
                                     std::pair{ReadAnswer{-1, EOPNOTSUPP}, "errno 95"},
                                     std::pair{ReadAnswer{-1, ENOSYS}, "errno 38"},
                                     std::pair{ReadAnswer{-5008, 0}, "cuFile error 5008"},
                                     std::pair{ReadAnswer{-5036, 0}, "cuFile error 5036"}}) {
    const Status status = Read({answer});
    EXPECT_EQ(status.code(), Code::kUnsupported) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr(text));
  }
}

TEST_F(CufileTest, EachCallHasAContextAndLeavesTheThreadAsItWas) {
  EXPECT_TRUE(Read({}).ok());
  EXPECT_EQ(fake_.calls_without_context, 0);
  EXPECT_EQ(cuda_.CurrentOfThisThread(), nullptr);
  EXPECT_EQ(cuda_.OpenContexts(), 0u);
}

TEST_F(CufileTest, NothingIsCalledWithoutAContext) {
  const auto file = Open();
  fake_.opens = 0;
  const auto unused = device::MakeCudaRuntime(
      [this]() -> Result<internal::cuda::Driver> { return cuda_.table(); },
      []() -> Result<cufile::Driver> {
        return cufile::Driver{FakeOpen, FakeRegister, FakeDeregister, FakeRead};
      });
  ASSERT_TRUE(unused->CheckAvailable(0).ok());
  cuda_.Fail("context_push", kCudaOutOfMemory);
  EXPECT_EQ(unused->CheckFiles().code(), Code::kDevice);
  EXPECT_EQ(runtime_->OpenFile(kDescriptor).status().code(), Code::kDevice);
  EXPECT_EQ(file->Read(kOffset, 0, memory_.data(), 10).code(), Code::kDevice);
  cuda_.Fail("context_push", 0, 0);
  EXPECT_EQ(fake_.opens, 0);
  EXPECT_EQ(fake_.registered, 1);
  EXPECT_TRUE(fake_.read_sizes.empty());
}

TEST_F(CufileTest, ADriverThatDoesNotOpenIsRememberedByNumber) {
  fake_.open_answer = {.error = 5011, .cuda_error = 999};
  for (int i = 0; i < 2; ++i) {
    const Status status = runtime_->CheckFiles();
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_THAT(status.message(),
                HasSubstr("cuFileDriverOpen: cuFile error 5011 (CUDA error 999)"));
  }
  EXPECT_EQ(runtime_->OpenFile(kDescriptor).status().code(), Code::kUnsupported);
  EXPECT_EQ(fake_.opens, 1);
}

TEST_F(CufileTest, AProgramThatUsesCufileItselfIsNoObstacle) {
  fake_.open_answer = {.error = 5026, .cuda_error = 0};
  EXPECT_TRUE(Read({}).ok());
}

TEST_F(CufileTest, AFileThatIsRefusedIsUnsupported) {
  fake_.register_answer = {.error = kIoNotSupported, .cuda_error = 0};
  const Status status = runtime_->OpenFile(kDescriptor).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("cuFileHandleRegister: cuFile error 5008"));
  EXPECT_TRUE(runtime_->CheckFiles().ok());
}

TEST_F(CufileTest, NeedsADeviceThatWasUsed) {
  const auto unused =
      device::MakeCudaRuntime([this]() -> Result<internal::cuda::Driver> { return cuda_.table(); });
  EXPECT_EQ(unused->CheckFiles().code(), Code::kDevice);
  EXPECT_EQ(Open()->Read(0, 7, memory_.data(), 1).code(), Code::kDevice);
}

TEST_F(CufileTest, AChildIsRefusedAndDeregistersNothing) {
  auto file = Open();
  EXPECT_TRUE(HoldsInChild([&] {
    bool good = file->Read(0, 0, memory_.data(), 10).code() == Code::kDevice &&
                runtime_->CheckFiles().code() == Code::kDevice &&
                runtime_->OpenFile(kDescriptor).status().code() == Code::kDevice;
    file.reset();
    good = good && fake_.registered == 1 && fake_.read_sizes.empty();
    return good;
  }));
}

}  // namespace
}  // namespace sealpoint::testing
