// SPDX-License-Identifier: Apache-2.0
// How fast a queue copies and digests are computed, beside one copy of the same bytes by the driver
// alone. SEALPOINT_CUDA_RATE_MIB: the size, 1024 by default. Printed; checked as the design says.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "lib/device/device_copies.h"
#include "lib/fingerprint/part.h"
#include "sealpoint/id.h"
#include "tests/cuda/cuda_rate_fixture.h"
#include "tests/support/process/seconds.h"

namespace sealpoint::testing {
namespace {

constexpr int kRounds = 11;

class CudaRateTest : public CudaRateFixture {
 protected:
  // One pinned copy by the driver, synchronised: what the link does.
  void CopyPlainly() const {
    const internal::cuda::CurrentContext current(driver_, context_);
    const auto address =
        static_cast<internal::cuda::Address>(reinterpret_cast<std::uintptr_t>(memory_->address()));
    ASSERT_EQ(driver_.copy_to_host(host_.data(), address, size_, stream_), 0);
    ASSERT_EQ(driver_.stream_synchronize(stream_), 0);
  }
  void Complete() const { ASSERT_TRUE(queue_->Wait(queue_->Mark().value()).ok()); }
  // Pieces of the size of staging buffers, as a save queues them.
  void CopyInPieces() {
    constexpr std::uint64_t kPiece = 4 * kMiB;
    internal::device::DeviceCopies copies(runtime_, {.idle_queues = &idle_queues_});
    for (std::uint64_t at = 0; at < size_; at += kPiece) {
      const std::uint64_t piece = std::min(kPiece, size_ - at);
      const auto queue_it = [&](internal::device::CopyQueue& queue) {
        return queue.CopyToHost({memory_->address() + at, 1, piece}, host_.subspan(at, piece));
      };
      ASSERT_TRUE(copies.Queue(0, piece, queue_it).ok());
    }
    ASSERT_TRUE(copies.WaitForAll().ok());
  }

  // The median over rounds of how long `ours` takes by how long the plain copy does.
  double MedianRatio(const char* name, const std::function<void()>& ours) const {
    ours();  // memory and kernels are made in the first round
    std::vector<double> ratios;
    double ours_seconds = 0;
    for (int round = 0; round < kRounds; ++round) {
      const double plain = SecondsOf([this] { CopyPlainly(); });
      ours_seconds = SecondsOf(ours);
      ratios.push_back(ours_seconds / plain);
    }
    std::nth_element(ratios.begin(), ratios.begin() + kRounds / 2, ratios.end());
    std::printf("%s: %.3f of a plain copy, last %.1f GB/s\n", name, ratios[kRounds / 2],
                static_cast<double>(size_) / ours_seconds / 1e9);
    return ratios[kRounds / 2];
  }

  internal::device::QueuePool idle_queues_;
};

TEST_F(CudaRateTest, CopiesInPiecesAtTheRateOfTheLink) {
  EXPECT_LE(MedianRatio("copies in pieces", [this] { CopyInPieces(); }), 1.05);
}

TEST_F(CudaRateTest, DigestsAreAtLeastTwiceAsFastAsTheLink) {
  const Status offered = runtime_->CheckKernels(0);
  if (!offered.ok()) GTEST_SKIP() << offered.ToString();
  const internal::device::DeviceChunks chunks{memory_->address(), size_, 4 * kMiB};
  std::vector<Digest> digests(chunks.count());
  const auto compute = [&] {
    ASSERT_TRUE(queue_->QueueDigests(chunks, digests).ok());
    Complete();
  };
  EXPECT_LE(MedianRatio("digests of 4 MiB", compute), 0.5);
}

// The goal, 1 TB/s on an H100, is printed and not checked: devices differ.
TEST_F(CudaRateTest, FingerprintsAreAtLeastTwiceAsFastAsTheLink) {
  const Status offered = runtime_->CheckKernels(0);
  if (!offered.ok()) GTEST_SKIP() << offered.ToString();
  const auto rate = [this](const char* name, std::uint64_t columns) {
    const Shape shape = {size_ / 2 / columns, columns};
    const internal::fingerprint::Part part(shape, 2, Region::Whole(shape));
    internal::fingerprint::Pair sum{};
    const auto compute = [&] {
      ASSERT_TRUE(queue_->QueueFingerprint(part, memory_->address(), sum).ok());
      Complete();
    };
    return MedianRatio(name, compute);
  };
  EXPECT_LE(rate("fingerprints of bf16, rows of 8192", 8192), 0.5);
  EXPECT_LE(rate("fingerprints of bf16, rows of 128", 128), 0.5);
}

}  // namespace
}  // namespace sealpoint::testing
