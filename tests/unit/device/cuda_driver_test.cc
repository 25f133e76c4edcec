// SPDX-License-Identifier: Apache-2.0
// Finding a driver, and what its absence looks like.
#include "lib/device/cuda_driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "lib/device/cuda_runtime.h"
#include "tests/support/device/fake_cuda_driver.h"
#include "tests/support/process/in_child.h"

namespace sealpoint::testing {
namespace {

using internal::device::CudaRuntime;
using internal::device::MakeCudaRuntime;

bool Mentions(const Status& status, const std::string& text) {
  return status.message().find(text) != std::string::npos;
}

TEST(CudaDriver, NoLibraryIsAnAnswer) {
  const Status status = internal::cuda::LoadDriver("libno_such_cuda.so.1").status();
  EXPECT_EQ(status.code(), Code::kDevice);
  EXPECT_TRUE(Mentions(status, "libno_such_cuda.so.1")) << status.ToString();
}

// Any library without the functions is like a driver that is too old for one of them.
TEST(CudaDriver, AMissingFunctionIsAnAnswer) {
  const Status status = internal::cuda::LoadDriver("libc.so.6").status();
  EXPECT_EQ(status.code(), Code::kDevice);
  EXPECT_TRUE(Mentions(status, "cuInit")) << status.ToString();
}

TEST(CudaDriver, TheStubLibraryOfAToolkitIsAnAnswer) {
  const std::string stub = "/usr/local/cuda/lib64/stubs/libcuda.so";
  if (access(stub.c_str(), R_OK) != 0) GTEST_SKIP() << "no " << stub;
  const auto runtime = MakeCudaRuntime([&] { return internal::cuda::LoadDriver(stub); });
  EXPECT_EQ(runtime->CheckAvailable(0).code(), Code::kDevice);
}

TEST(CudaRuntime, AnswersWhateverTheMachineHas) {
  const auto runtime = CudaRuntime();
  const Status status = runtime->CheckAvailable(0);
  EXPECT_TRUE(status.ok() || status.code() == Code::kDevice) << status.ToString();
  EXPECT_EQ(runtime->MakeQueue(0).ok(), status.ok());
  EXPECT_EQ(runtime->CheckAvailable(100000).code(), Code::kDevice);
  EXPECT_EQ(runtime->CheckAvailable(-1).code(), Code::kDevice);
  EXPECT_EQ(CudaRuntime(), runtime);
}

class CudaAnswers : public ::testing::Test {
 protected:
  Status Check(int device = 0) { return runtime_->CheckAvailable(device); }

  FakeCudaDriver fake_{2};
  int loads_ = 0;
  std::shared_ptr<internal::device::DeviceRuntime> runtime_ =
      MakeCudaRuntime([this]() -> Result<internal::cuda::Driver> {
        ++loads_;
        return fake_.table();
      });
};

TEST_F(CudaAnswers, NothingIsTouchedBeforeTheFirstUse) {
  EXPECT_EQ(loads_, 0);
  EXPECT_EQ(fake_.Calls("init"), 0U);
}

TEST_F(CudaAnswers, InitialisesOnce) {
  EXPECT_TRUE(Check(0).ok());
  EXPECT_TRUE(Check(1).ok());
  EXPECT_TRUE(Check(0).ok());
  EXPECT_EQ(loads_, 1);
  EXPECT_EQ(fake_.Calls("init"), 1U);
  EXPECT_EQ(fake_.Calls("primary_context_retain"), 2U);
}

TEST_F(CudaAnswers, FailureToInitialiseIsRememberedByName) {
  for (const auto& [result, name] :
       {std::pair{kCudaNoDevice, "CUDA_ERROR_NO_DEVICE"},
        std::pair{kCudaStubLibrary, "CUDA_ERROR_STUB_LIBRARY"},
        std::pair{kCudaInsufficientDriver, "CUDA_ERROR_INSUFFICIENT_DRIVER"},
        std::pair{12345, "unknown error"}}) {
    const auto runtime = MakeCudaRuntime([this] { return fake_.table(); });
    const std::uint64_t before = fake_.Calls("init");
    fake_.Fail("init", result);
    for (int i = 0; i < 2; ++i) {
      const Status status = runtime->CheckAvailable(0);
      EXPECT_EQ(status.code(), Code::kDevice);
      EXPECT_TRUE(Mentions(status, name)) << status.ToString();
      EXPECT_TRUE(Mentions(status, "(" + std::to_string(result) + ")")) << status.ToString();
      EXPECT_TRUE(Mentions(status, "CUDA device 0 is not available")) << status.ToString();
    }
    EXPECT_EQ(fake_.Calls("init"), before + 1);
  }
}

TEST_F(CudaAnswers, OnlyDevicesThatExistAreAvailable) {
  EXPECT_TRUE(Check(1).ok());
  for (const int device : {-1, 2}) {
    EXPECT_EQ(Check(device).code(), Code::kDevice) << device;
    EXPECT_TRUE(Mentions(Check(device), "there are 2")) << Check(device).ToString();
    EXPECT_EQ(runtime_->MakeQueue(device).status().code(), Code::kDevice) << device;
  }
}

TEST_F(CudaAnswers, EachCallThatOpensADeviceMayFail) {
  for (const char* call :
       {"device_get_count", "device_get", "device_get_attribute", "primary_context_retain"}) {
    const auto runtime = MakeCudaRuntime([this] { return fake_.table(); });
    fake_.Fail(call, kCudaOutOfMemory);
    const Status status = runtime->CheckAvailable(0);
    EXPECT_EQ(status.code(), Code::kDevice) << call;
    EXPECT_TRUE(Mentions(status, "CUDA_ERROR_OUT_OF_MEMORY")) << status.ToString();
    fake_.Fail(call, 0, 0);
  }
}

// A device without memory left may have some again.
TEST_F(CudaAnswers, AContextThatCouldNotBeHadIsAskedForAgain) {
  fake_.Fail("primary_context_retain", kCudaOutOfMemory);
  EXPECT_FALSE(Check().ok());
  fake_.Fail("primary_context_retain", 0, 0);
  EXPECT_TRUE(Check().ok());
}

TEST_F(CudaAnswers, AChildOfAUserIsRefusedAndDestroysNothing) {
  Bytes host(100);
  Bytes other(100);
  auto queue = runtime_->MakeQueue(0).value();
  const std::uint64_t ticket = queue->Mark().value();
  ASSERT_TRUE(runtime_->Pin(host).ok());
  const std::uint64_t pushes = fake_.Calls("context_push");
  EXPECT_TRUE(HoldsInChild([&] {
    bool refused = runtime_->CheckAvailable(0).code() == Code::kDevice &&
                   runtime_->CheckAvailable(1).code() == Code::kDevice &&
                   runtime_->CheckKernels(0).code() == Code::kDevice &&
                   runtime_->MakeQueue(0).status().code() == Code::kDevice &&
                   runtime_->Pin(other).code() == Code::kDevice &&
                   queue->WaitFor(nullptr).code() == Code::kDevice &&
                   queue->CopyToHost({other.data(), 1, 100}, host).code() == Code::kDevice &&
                   queue->CopyToDevice(host, {other.data(), 1, 100}).code() == Code::kDevice &&
                   queue->Mark().status().code() == Code::kDevice &&
                   queue->IsDone(ticket).status().code() == Code::kDevice &&
                   queue->Wait(ticket).code() == Code::kDevice;
    runtime_->Unpin(host);
    queue.reset();
    return refused && fake_.Calls("context_push") == pushes && fake_.LiveStreams() == 1 &&
           fake_.RegisteredBytes() == 100;
  }));
  runtime_->Unpin(host);
}

TEST_F(CudaAnswers, AChildOfAProcessThatUsedNoneMayUseIt) {
  EXPECT_TRUE(HoldsInChild([&] { return Check().ok(); }));
}

}  // namespace
}  // namespace sealpoint::testing
