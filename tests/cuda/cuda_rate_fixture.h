// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_CUDA_CUDA_RATE_FIXTURE_H_
#define SEALPOINT_TESTS_CUDA_CUDA_RATE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "lib/device/host_mapping.h"
#include "tests/cuda/cuda_fixture.h"

namespace sealpoint::testing {

inline std::string Setting(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

// As many bytes as SEALPOINT_CUDA_RATE_MIB says, pinned on the host and on the device, and a queue
// between the two.
class CudaRateFixture : public CudaFixture {
 protected:
  void SetUp() override {
    CudaFixture::SetUp();
    if (IsSkipped()) return;
    size_ = std::stoull(Setting("SEALPOINT_CUDA_RATE_MIB", "1024")) * kMiB;
    host_ = internal::device::MapHostMemory(size_).value();
    memory_ = Allocate(size_);
    queue_ = runtime_->MakeQueue(0).value();
    ASSERT_TRUE(runtime_->Pin(host_).ok());
  }
  void TearDown() override {
    queue_.reset();
    memory_.reset();
    if (!host_.empty()) {
      runtime_->Unpin(host_);
      internal::device::UnmapHostMemory(host_);
    }
    CudaFixture::TearDown();
  }

  std::uint64_t size_ = 0;
  MutableByteSpan host_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<internal::device::CopyQueue> queue_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CUDA_CUDA_RATE_FIXTURE_H_
