// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_CUDA_CUDA_FIXTURE_H_
#define SEALPOINT_TESTS_CUDA_CUDA_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "lib/device/cuda_driver.h"
#include "lib/device/cuda_runtime.h"
#include "sealpoint/bytes.h"

namespace sealpoint::testing {

// The first device of this machine, and a user of it who works beside the library: with memory and
// streams of the primary context, through the same driver. Skips where there is none.
class CudaFixture : public ::testing::Test {
 protected:
  // Memory of the device.
  class Memory {
   public:
    Memory(const internal::cuda::Driver& driver, internal::cuda::Context* context,
           std::uint64_t size_bytes)
        : driver_(driver), context_(context) {
      const internal::cuda::CurrentContext current(driver_, context_);
      EXPECT_EQ(driver_.memory_allocate(&address_, size_bytes), 0);
    }
    ~Memory() {
      const internal::cuda::CurrentContext current(driver_, context_);
      driver_.memory_free(address_);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    std::byte* address() const {
      return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address_));
    }

   private:
    const internal::cuda::Driver& driver_;
    internal::cuda::Context* const context_;
    internal::cuda::Address address_ = 0;
  };

  void SetUp() override {
    const Status available = runtime_->CheckAvailable(0);
    if (!available.ok()) GTEST_SKIP() << available.ToString();
    driver_ = internal::cuda::LoadDriver("libcuda.so.1").value();
    ASSERT_EQ(driver_.primary_context_retain(&context_, 0), 0);
    const internal::cuda::CurrentContext current(driver_, context_);
    ASSERT_EQ(driver_.stream_create(&stream_, internal::cuda::kStreamNonBlocking), 0);
  }
  void TearDown() override {
    if (stream_ == nullptr) return;
    const internal::cuda::CurrentContext current(driver_, context_);
    EXPECT_EQ(driver_.stream_synchronize(stream_), 0);
    EXPECT_EQ(driver_.stream_destroy(stream_), 0);
  }

  std::unique_ptr<Memory> Allocate(std::uint64_t size_bytes) const {
    return std::make_unique<Memory>(driver_, context_, size_bytes);
  }
  // What the user does on a stream; null is the default stream.
  void QueueWrite(internal::cuda::Stream* stream, ByteSpan from, std::byte* to) const {
    const internal::cuda::CurrentContext current(driver_, context_);
    const auto address = static_cast<internal::cuda::Address>(reinterpret_cast<std::uintptr_t>(to));
    ASSERT_EQ(driver_.copy_to_device(address, from.data(), from.size(), stream), 0);
  }
  void Write(ByteSpan from, std::byte* to) const {
    QueueWrite(stream_, from, to);
    const internal::cuda::CurrentContext current(driver_, context_);
    ASSERT_EQ(driver_.stream_synchronize(stream_), 0);
  }

  std::shared_ptr<internal::device::DeviceRuntime> runtime_ = internal::device::CudaRuntime();
  internal::cuda::Driver driver_;
  internal::cuda::Context* context_ = nullptr;
  internal::cuda::Stream* stream_ = nullptr;  // the user's
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CUDA_CUDA_FIXTURE_H_
