// SPDX-License-Identifier: Apache-2.0
// Copies, order, pinning and digests on a real device.
#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "lib/device/staging_pool.h"
#include "lib/fingerprint/part.h"
#include "sealpoint/digest.h"
#include "tests/cuda/cuda_fixture.h"

namespace sealpoint::testing {
namespace {

using internal::device::CopyQueue;
using internal::device::DeviceChunks;
using internal::device::StagingBuffer;
using internal::device::StagingPool;

Bytes RandomBytes(std::size_t size, unsigned seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

void Complete(CopyQueue& queue) {
  const auto ticket = queue.Mark();
  ASSERT_TRUE(ticket.ok()) << ticket.error().ToString();
  const Status status = queue.Wait(*ticket);
  ASSERT_TRUE(status.ok()) << status.ToString();
}

class CudaDeviceTest : public CudaFixture {
 protected:
  std::unique_ptr<CopyQueue> MakeQueue() { return runtime_->MakeQueue(0).value(); }
};

TEST_F(CudaDeviceTest, CopiesBothWaysAtAnyAlignment) {
  const Bytes out = RandomBytes(3 * kMiB + 17, 1);
  const auto memory = Allocate(out.size() + 64);
  for (const std::size_t shift : {0U, 1U, 2U, 4U, 7U, 63U}) {
    Bytes back(out.size());
    const auto queue = MakeQueue();
    ASSERT_TRUE(queue->CopyToDevice(out, {memory->address() + shift, 1, out.size()}).ok());
    ASSERT_TRUE(queue->CopyToHost({memory->address() + shift, 1, out.size()}, back).ok());
    Complete(*queue);
    EXPECT_EQ(back, out) << shift;
  }
}

TEST_F(CudaDeviceTest, CopiesRowsOfAnyPitch) {
  const Bytes content = RandomBytes(100000, 2);
  const auto memory = Allocate(content.size());
  Write(content, memory->address());
  const auto queue = MakeQueue();
  for (const std::int64_t pitch : {999, 400, 100, 57, 0, -450}) {
    Bytes rows(10000);
    ASSERT_TRUE(queue->CopyToHost({memory->address() + 50001, 100, 100, pitch / 2}, rows).ok());
    Complete(*queue);
    for (std::int64_t r = 0; r < 100; ++r) {
      EXPECT_TRUE(std::equal(rows.begin() + r * 100, rows.begin() + r * 100 + 100,
                             content.begin() + 50001 + r * (pitch / 2)))
          << pitch / 2 << " row " << r;
    }
  }
}

TEST_F(CudaDeviceTest, WritesRowsAndNothingBetween) {
  for (const std::int64_t pitch : {50, 20, -50}) {
    Bytes expected = RandomBytes(2000, 3);
    const Bytes rows = RandomBytes(200, 4);
    const auto memory = Allocate(expected.size());
    Write(expected, memory->address());
    const auto queue = MakeQueue();
    ASSERT_TRUE(queue->CopyToDevice(rows, {memory->address() + 701, 10, 20, pitch}).ok());
    Bytes back(expected.size());
    ASSERT_TRUE(queue->CopyToHost({memory->address(), 1, back.size()}, back).ok());
    Complete(*queue);
    for (std::int64_t i = 0; i < 200; ++i) {
      expected.at(static_cast<std::size_t>(701 + i / 20 * pitch + i % 20)) =
          rows[static_cast<std::size_t>(i)];
    }
    EXPECT_EQ(back, expected) << pitch;
  }
}

// The last of many long writes decides; without the wait the copy would overtake it.
TEST_F(CudaDeviceTest, RunsBehindTheCallersStream) {
  const auto pool = StagingPool::Create(8 * 16 * kMiB, 16 * kMiB).value();
  const auto queue = MakeQueue();
  pool->PinWith(runtime_);
  const StagingBuffer early = pool->Acquire().value();
  const StagingBuffer late = pool->Acquire().value();
  const StagingBuffer copied = pool->Acquire().value();
  std::fill(early.bytes().begin(), early.bytes().end(), std::byte{1});
  const auto memory = Allocate(16 * kMiB);
  for (internal::cuda::Stream* const stream :
       {stream_, static_cast<internal::cuda::Stream*>(nullptr)}) {
    for (unsigned round = 2; round < 6; ++round) {
      std::fill(late.bytes().begin(), late.bytes().end(), static_cast<std::byte>(round));
      for (int i = 0; i < 8; ++i) QueueWrite(stream, early.bytes(), memory->address());
      QueueWrite(stream, late.bytes(), memory->address());
      ASSERT_TRUE(queue->WaitFor(stream).ok());
      ASSERT_TRUE(queue->CopyToHost({memory->address(), 1, 16 * kMiB}, copied.bytes()).ok());
      Complete(*queue);
      EXPECT_TRUE(std::equal(copied.bytes().begin(), copied.bytes().end(), late.bytes().begin()));
    }
  }
}

TEST_F(CudaDeviceTest, AnotherThreadCompletesWhatThisOneQueues) {
  const Bytes content = RandomBytes(kMiB, 5);
  const auto memory = Allocate(content.size());
  Write(content, memory->address());
  std::vector<Bytes> copies(20, Bytes(content.size()));
  const auto queue = MakeQueue();
  std::vector<std::uint64_t> tickets;
  for (Bytes& copy : copies) {
    ASSERT_TRUE(queue->CopyToHost({memory->address(), 1, copy.size()}, copy).ok());
    tickets.push_back(queue->Mark().value());
  }
  std::thread completer([&] {
    for (std::size_t i = 0; i < copies.size(); ++i) {
      EXPECT_TRUE(queue->Wait(tickets[i]).ok());
      EXPECT_TRUE(queue->IsDone(tickets[i]).value());
      EXPECT_EQ(copies[i], content);
    }
  });
  completer.join();
}

TEST_F(CudaDeviceTest, TheUsersContextStaysCurrent) {
  const auto queue = MakeQueue();
  const internal::cuda::CurrentContext current(driver_, context_);
  Complete(*queue);
  internal::cuda::Context* top = nullptr;
  ASSERT_EQ(driver_.context_pop(&top), 0);
  EXPECT_EQ(top, context_);
  ASSERT_EQ(driver_.context_push(top), 0);
}

TEST_F(CudaDeviceTest, PinsTheStagingPool) {
  const auto pool = StagingPool::Create(64 * kMiB, 4 * kMiB).value();
  const auto queue = MakeQueue();
  pool->PinWith(runtime_);
  ASSERT_TRUE(pool->Reserve(16).ok());
  EXPECT_TRUE(pool->pin_failure().ok()) << pool->pin_failure().ToString();
  EXPECT_EQ(pool->pinned_bytes(), 64 * kMiB);
  const StagingBuffer buffer = pool->Acquire().value();
  const auto memory = Allocate(4 * kMiB);
  const Bytes content = RandomBytes(4 * kMiB, 6);
  Write(content, memory->address());
  ASSERT_TRUE(queue->CopyToHost({memory->address(), 1, 4 * kMiB}, buffer.bytes()).ok());
  Complete(*queue);
  EXPECT_TRUE(std::equal(content.begin(), content.end(), buffer.bytes().begin()));
}

TEST_F(CudaDeviceTest, ReportsAnAddressThatIsNone) {
  Bytes host(16);
  const auto queue = MakeQueue();
  auto* const nowhere = reinterpret_cast<std::byte*>(std::uintptr_t{16});
  Status status = queue->CopyToHost({nowhere, 1, 16}, host);
  if (status.ok()) status = queue->Wait(queue->Mark().value());
  EXPECT_EQ(status.code(), Code::kDevice);
  EXPECT_NE(status.message().find("CUDA_ERROR_"), std::string::npos) << status.ToString();
}

class CudaDigestTest : public CudaDeviceTest {
 protected:
  void SetUp() override {
    CudaDeviceTest::SetUp();
    if (IsSkipped()) return;
    const Status offered = runtime_->CheckKernels(0);
    if (!offered.ok()) GTEST_SKIP() << offered.ToString();
  }
  void ExpectEqualToTheHosts(const Memory& memory, ByteSpan content, std::size_t shift,
                             std::uint64_t chunk_size) {
    const ByteSpan part = content.subspan(shift);
    const DeviceChunks chunks{memory.address() + shift, part.size(), chunk_size};
    std::vector<Digest> digests(chunks.count());
    const auto queue = MakeQueue();
    const Status status = queue->QueueDigests(chunks, digests);
    ASSERT_TRUE(status.ok()) << status.ToString();
    Complete(*queue);
    for (std::size_t i = 0; i < digests.size(); ++i) {
      const ByteSpan rest = part.subspan(i * chunk_size);
      ASSERT_EQ(digests[i], ComputeDigest(rest.first(std::min(chunk_size, rest.size()))))
          << "chunk " << i << " of " << chunk_size << " at " << shift;
    }
  }
};

TEST_F(CudaDigestTest, AreThoseOfTheHostAtEveryShortLength) {
  const Bytes content = RandomBytes(5000, 7);
  const auto memory = Allocate(content.size());
  Write(content, memory->address());
  for (std::size_t size = 1; size <= 2100; size += size < 300 ? 1 : 37) {
    ExpectEqualToTheHosts(*memory, ByteSpan(content).first(size), 0, size);
  }
}

TEST_F(CudaDigestTest, AreThoseOfTheHostAtAnyAlignment) {
  const Bytes content = RandomBytes(3 * kMiB + 333, 8);
  const auto memory = Allocate(content.size());
  Write(content, memory->address());
  for (const std::size_t shift : {0U, 1U, 2U, 3U, 4U, 8U, 15U}) {
    for (const std::uint64_t chunk_size : {4 * kKiB, 64 * kKiB, kMiB, 4 * kMiB}) {
      ExpectEqualToTheHosts(*memory, content, shift, chunk_size);
    }
  }
}

// More than one batch of the scratch memory, and a shorter last chunk.
TEST_F(CudaDigestTest, AreThoseOfTheHostForManyBatches) {
  const Bytes content = RandomBytes(300 * kMiB + 12345, 9);
  const auto memory = Allocate(content.size());
  Write(content, memory->address());
  for (const std::uint64_t chunk_size : {4 * kKiB, 4 * kMiB, 128 * kMiB}) {
    ExpectEqualToTheHosts(*memory, content, 0, chunk_size);
  }
}

class CudaFingerprintTest : public CudaDigestTest {
 protected:
  void ExpectEqualToTheHosts(const Shape& shape, std::uint32_t element_size, const Region& region,
                             std::size_t shift) {
    const std::uint64_t size = region.run.size() * element_size;
    const Bytes content = RandomBytes(shift + size, 10);
    const auto memory = Allocate(content.size());
    Write(content, memory->address());
    const internal::fingerprint::Part part(shape, element_size, region);
    internal::fingerprint::Pair sum{};
    const auto queue = MakeQueue();
    const Status status = queue->QueueFingerprint(part, memory->address() + shift, sum);
    ASSERT_TRUE(status.ok()) << status.ToString();
    Complete(*queue);
    EXPECT_EQ(Fingerprint(sum), part.Of(0, ByteSpan(content).subspan(shift)))
        << region.ToString() << " at " << shift;
  }
};

TEST_F(CudaFingerprintTest, AreThoseOfTheHost) {
  const Shape large = {300, 30011};
  for (const std::size_t shift : {0U, 1U, 2U, 4U, 8U, 13U}) {
    ExpectEqualToTheHosts({}, 8, Region::Whole({}), shift);
    ExpectEqualToTheHosts({7}, 2, Region::Whole({7}), shift);
    ExpectEqualToTheHosts({9, 11, 4096}, 2, Region::Of({{3, 5, 100}, {4, 6, 3000}}), shift);
    ExpectEqualToTheHosts({400'000, 6}, 2, Region::Whole({400'000, 6}), shift);
    ExpectEqualToTheHosts(large, 2, Region({{0, 0}, large}, {777, 9'000'001}), shift);
  }
}

}  // namespace
}  // namespace sealpoint::testing
