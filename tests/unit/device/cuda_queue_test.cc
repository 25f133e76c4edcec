// SPDX-License-Identifier: Apache-2.0
// CudaQueue over a driver that does nothing earlier than it must.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lib/device/cuda_runtime.h"
#include "lib/device/kernel_image.h"
#include "lib/fingerprint/part.h"
#include "sealpoint/digest.h"
#include "tests/support/device/fake_cuda_driver.h"
#include "tests/support/process/in_child.h"
#include "tests/unit/device/pattern.h"

namespace sealpoint::testing {
namespace {

namespace device = internal::device;

using device::CopyQueue;
using device::DeviceChunks;
using device::DeviceRows;
using device::MutableDeviceRows;

class CudaQueueTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(fake_.OpenContexts(), 0U) << "a context stayed on a thread";
    EXPECT_EQ(fake_.CaptureModeOfThisThread(), 0) << "the capture mode stayed changed";
  }
  std::unique_ptr<CopyQueue> MakeQueue(int device = 0) {
    return runtime_->MakeQueue(device).value();
  }
  static void Complete(CopyQueue& queue) { ASSERT_TRUE(queue.Wait(queue.Mark().value()).ok()); }

  FakeCudaDriver fake_{2};
  std::shared_ptr<device::DeviceRuntime> runtime_ =
      device::MakeCudaRuntime([this]() -> Result<internal::cuda::Driver> { return fake_.table(); });
};

TEST_F(CudaQueueTest, CopiesBothWaysInOrder) {
  Bytes device(1000);
  const Bytes out = Pattern(1000);
  Bytes back(1000);
  const auto queue = MakeQueue();
  ASSERT_TRUE(queue->CopyToDevice(out, {device.data(), 1, 1000}).ok());
  ASSERT_TRUE(queue->CopyToHost({device.data(), 1, 1000}, back).ok());
  EXPECT_NE(back, out) << "a copy ran when it was queued";
  Complete(*queue);
  EXPECT_EQ(back, out);
}

TEST_F(CudaQueueTest, CopiesRowsOfAnyPitch) {
  const Bytes device = Pattern(1000);
  const auto queue = MakeQueue();
  for (const std::int64_t pitch : {30, 10, 7, 0, -30}) {
    Bytes rows(100);
    ASSERT_TRUE(queue->CopyToHost({device.data() + 500, 10, 10, pitch}, rows).ok());
    Complete(*queue);
    for (std::int64_t r = 0; r < 10; ++r) {
      EXPECT_TRUE(std::equal(rows.begin() + r * 10, rows.begin() + r * 10 + 10,
                             device.begin() + 500 + r * pitch))
          << pitch << " row " << r;
    }
  }
  EXPECT_EQ(fake_.Calls("copy_2d"), 1U) << "of 30 alone";
  EXPECT_EQ(fake_.Calls("copy_to_host"), 31U) << "one of 10, ten of each other";
}

TEST_F(CudaQueueTest, RowsFurtherApartThanTheEngineTakesAreCopiedOneByOne) {
  constexpr std::int64_t kPitchMax = 1 << 20;  // as the driver says
  const Bytes device = Pattern((3 << 20) + 4);
  Bytes rows(12);
  const auto queue = MakeQueue();
  for (const std::int64_t pitch : {kPitchMax, kPitchMax + 1}) {
    ASSERT_TRUE(queue->CopyToHost({device.data(), 3, 4, pitch}, rows).ok());
    Complete(*queue);
    for (std::int64_t r = 0; r < 3; ++r) {
      EXPECT_TRUE(
          std::equal(rows.begin() + r * 4, rows.begin() + r * 4 + 4, device.begin() + r * pitch));
    }
    EXPECT_EQ(fake_.Calls("copy_2d"), 1U) << "the first time";
  }
}

TEST_F(CudaQueueTest, WritesRowsAndNothingBetween) {
  const Bytes rows = Pattern(12);
  for (const std::int64_t pitch : {10, -10}) {
    Bytes device(60);
    const auto queue = MakeQueue();
    ASSERT_TRUE(queue->CopyToDevice(rows, MutableDeviceRows{device.data() + 25, 3, 4, pitch}).ok());
    Complete(*queue);
    Bytes expected(60);
    for (std::int64_t i = 0; i < 12; ++i) {
      expected.at(static_cast<std::size_t>(25 + i / 4 * pitch + i % 4)) =
          rows[static_cast<std::size_t>(i)];
    }
    EXPECT_EQ(device, expected) << pitch;
  }
}

TEST_F(CudaQueueTest, NothingIsQueuedForNothing) {
  const auto queue = MakeQueue();
  EXPECT_TRUE(queue->CopyToHost({nullptr, 0, 10, 20}, {}).ok());
  EXPECT_TRUE(queue->CopyToDevice({}, {nullptr, 5, 0, 20}).ok());
  EXPECT_EQ(fake_.Calls("copy_2d") + fake_.Calls("copy_to_host"), 0U);
}

TEST_F(CudaQueueTest, RunsBehindWhatTheCallersStreamHoldsAtThatMoment) {
  Bytes device(1);
  auto* const byte = reinterpret_cast<unsigned char*>(device.data());
  Bytes copied(1);
  for (void* const stream : {fake_.MakeStream(0), static_cast<void*>(nullptr)}) {
    const auto queue = MakeQueue();
    fake_.QueueWrite(0, stream, byte, 7);
    ASSERT_TRUE(queue->WaitFor(stream).ok());
    ASSERT_TRUE(queue->CopyToHost({device.data(), 1, 1}, copied).ok());
    fake_.QueueWrite(0, stream, byte, 9);  // behind the call: not waited for
    Complete(*queue);
    EXPECT_EQ(copied[0], std::byte{7});
    device[0] = {};
  }
}

TEST_F(CudaQueueTest, SeveralStreamsAreWaitedForOneByOne) {
  Bytes device(2);
  auto* const bytes = reinterpret_cast<unsigned char*>(device.data());
  void* const first = fake_.MakeStream(0);
  void* const second = fake_.MakeStream(0);
  Bytes copied(2);
  const auto queue = MakeQueue();
  fake_.QueueWrite(0, first, bytes, 1);
  fake_.QueueWrite(0, second, bytes + 1, 2);
  ASSERT_TRUE(queue->WaitFor(first).ok());
  ASSERT_TRUE(queue->WaitFor(second).ok());
  ASSERT_TRUE(queue->CopyToHost({device.data(), 1, 2}, copied).ok());
  Complete(*queue);
  EXPECT_EQ(copied, (Bytes{std::byte{1}, std::byte{2}}));
}

TEST_F(CudaQueueTest, AStreamOfAnotherDeviceIsRefused) {
  const auto queue = MakeQueue(0);
  EXPECT_EQ(queue->WaitFor(fake_.MakeStream(1)).code(), Code::kDevice);
}

TEST_F(CudaQueueTest, AStreamUnderCaptureIsRefusedAndNotTouched) {
  const auto queue = MakeQueue();
  void* const stream = fake_.MakeStream(0);
  fake_.SetCapturing(stream, true);
  const Status status = queue->WaitFor(stream);
  EXPECT_EQ(status.code(), Code::kDevice);
  EXPECT_NE(status.message().find("captured"), std::string::npos) << status.ToString();
  EXPECT_EQ(fake_.Calls("event_record"), 0U);
}

TEST_F(CudaQueueTest, TicketsAreDoneInOrder) {
  const Bytes device = Pattern(10);
  Bytes host(30);
  const MutableByteSpan to(host);
  const auto queue = MakeQueue();
  std::vector<std::uint64_t> tickets;
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(queue->CopyToHost({device.data(), 1, 10}, to.subspan(i * 10, 10)).ok());
    tickets.push_back(queue->Mark().value());
  }
  EXPECT_LT(tickets[0], tickets[1]);
  EXPECT_FALSE(queue->IsDone(tickets[1]).value());
  ASSERT_TRUE(queue->Wait(tickets[1]).ok());
  EXPECT_TRUE(queue->IsDone(tickets[0]).value());
  EXPECT_EQ(to[19], device[9]);
  EXPECT_EQ(to[29], std::byte{0});
  while (!queue->IsDone(tickets[2]).value()) {
  }
  EXPECT_EQ(to[29], device[9]);
}

TEST_F(CudaQueueTest, EventsAreUsedAgain) {
  const auto queue = MakeQueue();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(queue->WaitFor(nullptr).ok());
    Complete(*queue);
  }
  EXPECT_LE(fake_.Calls("event_create"), 3U);
}

TEST_F(CudaQueueTest, TheDestructorWaitsAndLeavesNothing) {
  const Bytes device = Pattern(100);
  Bytes host(100);
  auto queue = MakeQueue();
  ASSERT_TRUE(queue->CopyToHost({device.data(), 1, 100}, host).ok());
  static_cast<void>(queue->Mark().value());  // never asked for
  queue.reset();
  EXPECT_EQ(host, device);
  EXPECT_EQ(fake_.LiveStreams(), 0U);
  EXPECT_EQ(fake_.LiveEvents(), 0U);
  EXPECT_EQ(fake_.AllocatedBytes(), 0U);
}

TEST_F(CudaQueueTest, TheCallersContextStaysCurrent) {
  void* const own = fake_.MakeForeignContext();
  fake_.PushForeign(own);
  const Bytes device = Pattern(100);
  Bytes host(100);
  {
    const auto queue = MakeQueue();
    ASSERT_TRUE(queue->CopyToHost({device.data(), 1, 100}, host).ok());
    Complete(*queue);
    ASSERT_TRUE(runtime_->Pin(host).ok());
    runtime_->Unpin(host);
    EXPECT_EQ(fake_.CurrentOfThisThread(), own);
  }
  EXPECT_EQ(fake_.CurrentOfThisThread(), own);
  EXPECT_EQ(fake_.PopForeign(), own);
}

TEST_F(CudaQueueTest, AnotherThreadCompletes) {
  const Bytes device = Pattern(100);
  std::vector<Bytes> hosts(50, Bytes(100));
  std::vector<std::uint64_t> tickets(50);
  std::atomic<std::size_t> queued = 0;
  const auto queue = MakeQueue();
  std::thread completer([&] {
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      while (queued.load() <= i) std::this_thread::yield();
      if (i % 2 == 0) {
        EXPECT_TRUE(queue->Wait(tickets[i]).ok());
      } else {
        while (!queue->IsDone(tickets[i]).value()) std::this_thread::yield();
      }
      EXPECT_EQ(hosts[i], device);
    }
  });
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    EXPECT_TRUE(queue->CopyToHost({device.data(), 1, 100}, hosts[i]).ok());
    tickets[i] = queue->Mark().value();
    ++queued;
  }
  completer.join();
}

// Each call may fail, is reported by name, and leaves the contexts as they were.
TEST_F(CudaQueueTest, EachCallMayFail) {
  const auto use = [&]() -> Status {
    Bytes device(100);
    Bytes host(100);
    const MutableByteSpan part = MutableByteSpan(host).first(20);
    auto made = runtime_->MakeQueue(0);
    if (!made) return made.error();
    CopyQueue& queue = **made;
    Status status = queue.WaitFor(nullptr);
    if (status.ok()) status = queue.CopyToHost({device.data(), 1, 100}, host);
    if (status.ok()) status = queue.CopyToDevice(host, {device.data(), 1, 100});
    if (status.ok()) status = queue.CopyToHost({device.data(), 2, 10, 30}, part);
    const auto ticket = queue.Mark();
    if (status.ok()) status = ticket.status();
    if (status.ok()) status = queue.IsDone(*ticket).status();
    if (status.ok()) status = queue.Wait(*ticket);
    if (status.ok()) status = runtime_->Pin(host);
    if (status.ok()) runtime_->Unpin(host);
    return status;
  };
  ASSERT_TRUE(use().ok());
  for (const char* call : {"context_push", "stream_create", "stream_is_capturing", "event_create",
                           "event_record", "stream_wait_event", "copy_to_host", "copy_to_device",
                           "copy_2d", "event_query", "event_synchronize", "host_register"}) {
    fake_.Fail(call, kCudaIllegalAddress);
    const Status status = use();
    EXPECT_EQ(status.code(), Code::kDevice) << call;
    EXPECT_NE(status.message().find("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), std::string::npos)
        << call << ": " << status.ToString();
    fake_.Fail(call, 0, 0);
    EXPECT_EQ(fake_.OpenContexts(), 0U) << call;
  }
}

// Where its context cannot be made current, nothing is called without it.
TEST_F(CudaQueueTest, EachCallNeedsItsContext) {
  Bytes device(100);
  Bytes host(100);
  const auto queue = MakeQueue();
  const std::uint64_t ticket = queue->Mark().value();
  fake_.Fail("context_push", kCudaIllegalAddress);
  const Status results[] = {queue->WaitFor(nullptr),
                            queue->CopyToHost({device.data(), 1, 100}, host),
                            queue->CopyToDevice(host, {device.data(), 1, 100}),
                            queue->Mark().status(),
                            queue->IsDone(ticket).status(),
                            queue->Wait(ticket),
                            runtime_->Pin(host)};
  for (const Status& result : results) {
    EXPECT_EQ(result.code(), Code::kDevice);
    EXPECT_NE(result.message().find("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), std::string::npos)
        << &result - results << ": " << result.ToString();
  }
  fake_.Fail("context_push", 0, 0);
  EXPECT_TRUE(queue->Wait(ticket).ok());
}

TEST_F(CudaQueueTest, ATicketThatWasDoneStaysDone) {
  const auto queue = MakeQueue();
  const std::uint64_t ticket = queue->Mark().value();
  ASSERT_TRUE(queue->Wait(ticket).ok());
  fake_.Fail("event_query", kCudaIllegalAddress);
  fake_.Fail("event_synchronize", kCudaIllegalAddress);
  EXPECT_TRUE(queue->IsDone(ticket).value());
  EXPECT_TRUE(queue->Wait(ticket).ok());
}

TEST_F(CudaQueueTest, PinsForAllDevicesOnceOneIsUsed) {
  Bytes host(100);
  EXPECT_EQ(runtime_->Pin(host).code(), Code::kDevice);
  const auto queue = MakeQueue();
  ASSERT_TRUE(runtime_->Pin(host).ok());
  EXPECT_EQ(fake_.RegisteredBytes(), 100U);
  runtime_->Unpin(host);
  EXPECT_EQ(fake_.RegisteredBytes(), 0U);
}

class CudaKernelsTest : public CudaQueueTest {
 protected:
  void SetUp() override {
    if (device::KernelImage().empty()) {
      GTEST_SKIP() << "built without the CUDA Toolkit: " << runtime_->CheckKernels(0).ToString();
    }
  }
};

class CudaDigestsTest : public CudaKernelsTest {};
class CudaFingerprintsTest : public CudaKernelsTest {
 protected:
  // The bytes of the region begin at an address of any alignment.
  void ExpectThatOfTheHost(device::CopyQueue& queue, const Shape& shape, std::uint32_t element_size,
                           const Region& region) {
    const internal::fingerprint::Part part(shape, element_size, region);
    const Bytes memory = Pattern(region.run.size() * element_size + 3);
    for (const std::size_t shift : {0U, 1U, 3U}) {
      const ByteSpan bytes = ByteSpan(memory).subspan(shift, region.run.size() * element_size);
      internal::fingerprint::Pair sum{};
      ASSERT_TRUE(queue.QueueFingerprint(part, bytes.data(), sum).ok());
      Complete(queue);
      EXPECT_EQ(Fingerprint(sum), part.Of(0, bytes)) << region.ToString() << " at " << shift;
    }
  }
};

TEST_F(CudaFingerprintsTest, AreThoseOfTheHost) {
  const auto queue = MakeQueue();
  ExpectThatOfTheHost(*queue, {}, 4, Region::Whole({}));
  ExpectThatOfTheHost(*queue, {5}, 1, Region::Whole({5}));
  ExpectThatOfTheHost(*queue, {70000}, 2, Region::Whole({70000}));
  ExpectThatOfTheHost(*queue, {3, 40, 50000}, 2, Region::Of({{1, 7, 12345}, {2, 3, 30001}}));
  ExpectThatOfTheHost(*queue, {200, 3000}, 8, Region::Of({{100, 510}, {40, 5}}));
  ExpectThatOfTheHost(*queue, {9000, 7}, 16, Region({{0, 0}, {9000, 7}}, {11, 62990}));
}

TEST_F(CudaFingerprintsTest, AreThoseOfTheHostForAnyRegion) {
  std::mt19937_64 random(44);
  const auto draw = [&](std::uint64_t max) { return random() % max; };
  const auto queue = MakeQueue();
  for (int round = 0; round < 300; ++round) {
    Shape shape(1 + draw(4));
    Box box{.offset = shape, .extent = shape};
    for (std::size_t d = 0; d < shape.size(); ++d) {
      box.extent[d] = 1 + draw(d + 1 == shape.size() ? 1 + draw(3000) : 1 + draw(12));
      box.offset[d] = draw(draw(2) == 0 ? 3 : 3000);
      shape[d] = box.offset[d] + box.extent[d] + draw(3);
    }
    Region region = Region::Of(box);
    const std::uint64_t count = region.run.end;
    region.run.begin = draw(count);
    region.run.end = region.run.begin + 1 + draw(count - region.run.begin);
    ExpectThatOfTheHost(*queue, shape, std::uint32_t{1} << draw(5), region);
  }
}

// More tiles than the scratch memory has room for.
TEST_F(CudaFingerprintsTest, PassThroughTheScratchMemoryInBatches) {
  const Shape shape = {300'000, 3};
  ExpectThatOfTheHost(*MakeQueue(), shape, 1, Region::Whole(shape));
}

TEST_F(CudaFingerprintsTest, CoefficientsAreLoadedOncePerDevice) {
  for (int i = 0; i < 2; ++i) ExpectThatOfTheHost(*MakeQueue(), {5}, 1, Region::Whole({5}));
  EXPECT_EQ(fake_.Calls("copy_to_device"), 1U);
}

TEST_F(CudaFingerprintsTest, EachCallMayFail) {
  const internal::fingerprint::Part part({100, 5000}, 1, Region::Whole({100, 5000}));
  const Bytes device = Pattern(500'000);
  internal::fingerprint::Pair sum{};
  for (const char* call : {"context_push", "memory_allocate", "copy_to_device",
                           "stream_synchronize", "launch_kernel", "copy_to_host"}) {
    const auto queue = MakeQueue();
    for (std::uint64_t nth = 1; nth <= 2; ++nth) {
      const std::uint64_t before = fake_.Calls(call);
      fake_.Fail(call, kCudaOutOfMemory, nth);
      const Status status = queue->QueueFingerprint(part, device.data(), sum);
      fake_.Fail(call, 0, 0);
      if (fake_.Calls(call) < before + nth) continue;
      EXPECT_EQ(status.code(), Code::kDevice) << call << " " << nth;
    }
  }
}

TEST_F(CudaDigestsTest, AreThoseOfTheHost) {
  ASSERT_TRUE(runtime_->CheckKernels(0).ok());
  const Bytes device = Pattern(300001);
  const auto queue = MakeQueue();
  for (const std::uint64_t chunk_size : {4096U, 65536U, 1048576U}) {
    const DeviceChunks chunks{device.data() + 1, 300000, chunk_size};
    std::vector<Digest> digests(chunks.count());
    ASSERT_TRUE(queue->QueueDigests(chunks, digests).ok());
    Complete(*queue);
    for (std::size_t i = 0; i < digests.size(); ++i) {
      const ByteSpan rest = ByteSpan(device).subspan(1 + i * chunk_size);
      EXPECT_EQ(digests[i], ComputeDigest(rest.first(std::min(chunk_size, rest.size()))))
          << chunk_size << " chunk " << i;
    }
  }
}

// More chunks than the scratch memory has room for; each is shorter than a block.
TEST_F(CudaDigestsTest, PassThroughTheScratchMemoryInBatches) {
  const Bytes device = Pattern(70000 * 16 + 5);
  const auto queue = MakeQueue();
  const DeviceChunks chunks{device.data(), device.size(), 16};
  std::vector<Digest> digests(chunks.count());
  ASSERT_TRUE(queue->QueueDigests(chunks, digests).ok());
  Complete(*queue);
  EXPECT_EQ(fake_.Calls("memory_allocate"), 1U);
  for (const std::size_t i : {0UL, 32767UL, 32768UL, 65535UL, 65536UL, 69999UL, 70000UL}) {
    const ByteSpan rest = ByteSpan(device).subspan(i * 16);
    EXPECT_EQ(digests[i], ComputeDigest(rest.first(std::min<std::size_t>(16, rest.size())))) << i;
  }
}

TEST_F(CudaDigestsTest, KernelsAreLoadedOncePerDevice) {
  ASSERT_TRUE(runtime_->CheckKernels(0).ok());
  ASSERT_TRUE(runtime_->CheckKernels(0).ok());
  EXPECT_EQ(fake_.Calls("module_load_data"), 1U);
  ASSERT_TRUE(runtime_->CheckKernels(1).ok());
  EXPECT_EQ(fake_.Calls("module_load_data"), 2U);
}

TEST_F(CudaDigestsTest, AreNotOfferedWhereTheDriverTakesNoImage) {
  fake_.Fail("module_load_data", kCudaInvalidValue);
  EXPECT_EQ(runtime_->CheckKernels(0).code(), Code::kDevice);
  EXPECT_TRUE(runtime_->CheckAvailable(0).ok());
}

TEST_F(CudaDigestsTest, EachCallMayFail) {
  const Bytes device = Pattern(5000);
  std::vector<Digest> digests(2);
  for (const char* call : {"memory_allocate", "launch_kernel", "copy_to_host"}) {
    const auto queue = MakeQueue();
    fake_.Fail(call, kCudaOutOfMemory);
    EXPECT_EQ(queue->QueueDigests({device.data(), 5000, 4096}, digests).code(), Code::kDevice);
    fake_.Fail(call, 0, 0);
  }
  EXPECT_EQ(fake_.AllocatedBytes(), 0U);
}

TEST_F(CudaDigestsTest, EachCallNeedsItsContext) {
  const Bytes device = Pattern(5000);
  std::vector<Digest> digests(2);
  ASSERT_TRUE(runtime_->CheckKernels(1).ok()) << "loads the kernels of one device";
  for (const int number : {0, 1}) {
    const auto queue = MakeQueue(number);
    fake_.Fail("context_push", kCudaIllegalAddress);
    const Status status = queue->QueueDigests({device.data(), 5000, 4096}, digests);
    EXPECT_NE(status.message().find("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), std::string::npos)
        << status.ToString();
    fake_.Fail("context_push", 0, 0);
  }
}

TEST_F(CudaDigestsTest, AChildOfAUserIsRefused) {
  ASSERT_TRUE(runtime_->CheckKernels(0).ok());
  const Bytes device = Pattern(5000);
  std::vector<Digest> digests(2);
  const auto queue = MakeQueue();
  const std::uint64_t pushes = fake_.Calls("context_push");
  EXPECT_TRUE(HoldsInChild([&] {
    const Status status = queue->QueueDigests({device.data(), 5000, 4096}, digests);
    return status.code() == Code::kDevice && fake_.Calls("context_push") == pushes;
  }));
}

TEST_F(CudaDigestsTest, ChunksOfTheLargestSizeOfTheFormatAreTaken) {
  const Bytes device = Pattern(5000);
  Digest digest;
  const auto queue = MakeQueue();
  ASSERT_TRUE(queue->QueueDigests({device.data(), 5000, 128 * kMiB}, {&digest, 1}).ok());
  Complete(*queue);
  EXPECT_EQ(digest, ComputeDigest(device));
}

TEST_F(CudaDigestsTest, ChunksBeyondTheLargestOfTheFormatAreRefused) {
  Digest digest;
  EXPECT_EQ(
      MakeQueue()->QueueDigests({nullptr, 128 * kMiB + 1, 128 * kMiB + 1}, {&digest, 1}).code(),
      Code::kDevice);
}

}  // namespace
}  // namespace sealpoint::testing
