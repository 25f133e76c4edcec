// SPDX-License-Identifier: Apache-2.0
// The stand-in keeps the promises of DeviceRuntime and CopyQueue, and no more than those.
#include "tests/support/device/host_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "sealpoint/digest.h"
#include "tests/support/process/in_child.h"
#include "tests/unit/device/pattern.h"

namespace sealpoint::testing {
namespace {

using internal::device::CopyQueue;
using internal::device::DeviceChunks;
using internal::device::DeviceRows;
using internal::device::MutableDeviceRows;

void Fill(const DeviceMemory& memory, const Bytes& bytes) {
  std::copy(bytes.begin(), bytes.end(), memory.contents().begin());
}

Bytes ContentsOf(const DeviceMemory& memory) {
  return {memory.contents().begin(), memory.contents().end()};
}

TEST(HostDevice, CopiesBothWays) {
  HostDevice device;
  const auto memory = device.Allocate(0, 300000);
  const auto queue = device.MakeQueue(0).value();
  const Bytes out = Pattern(300000);
  Bytes back(300000);
  ASSERT_TRUE(queue->CopyToDevice(out, {memory->address(), 1, 300000}).ok());
  ASSERT_TRUE(queue->CopyToHost({memory->address(), 1, 300000}, back).ok());
  ASSERT_TRUE(queue->Wait(queue->Mark().value()).ok());
  EXPECT_EQ(back, out);
  EXPECT_EQ(device.counters().bytes_to_device, 300000U);
  EXPECT_EQ(device.counters().bytes_to_host, 300000U);
}

TEST(HostDevice, CopiesRowsOfAnyPitch) {
  HostDevice device;
  const auto memory = device.Allocate(1, 1000);
  Fill(*memory, Pattern(1000));
  const auto queue = device.MakeQueue(1).value();
  for (const std::int64_t pitch : {30, 10, 7, 0, -30}) {
    Bytes rows(100);
    ASSERT_TRUE(queue->CopyToHost({memory->address() + 500, 10, 10, pitch}, rows).ok());
    ASSERT_TRUE(queue->Wait(queue->Mark().value()).ok());
    for (std::int64_t r = 0; r < 10; ++r) {
      EXPECT_TRUE(std::equal(rows.begin() + r * 10, rows.begin() + r * 10 + 10,
                             memory->contents().begin() + 500 + r * pitch))
          << pitch << " row " << r;
    }
  }
}

TEST(HostDevice, WritesRowsAndNothingBetween) {
  HostDevice device;
  const auto memory = device.Allocate(0, 40);
  const auto queue = device.MakeQueue(0).value();
  const Bytes rows = Pattern(12);
  ASSERT_TRUE(queue->CopyToDevice(rows, MutableDeviceRows{memory->address() + 5, 3, 4, 10}).ok());
  ASSERT_TRUE(queue->Wait(queue->Mark().value()).ok());
  Bytes expected(40);
  for (std::size_t i = 0; i < 12; ++i) expected[5 + i / 4 * 10 + i % 4] = rows[i];
  EXPECT_EQ(ContentsOf(*memory), expected);
}

TEST(HostDevice, ReadsTheSourceLate) {
  HostDevice device;
  const auto memory = device.Allocate(0, 1000);
  Fill(*memory, Pattern(1000));
  const auto queue = device.MakeQueue(0).value();
  Bytes copied(1000);
  device.Pause();
  ASSERT_TRUE(queue->CopyToHost({memory->address(), 1, 1000}, copied).ok());
  const std::uint64_t ticket = queue->Mark().value();
  EXPECT_FALSE(queue->IsDone(ticket).value());
  Fill(*memory, Pattern(1000, 99));
  device.Resume();
  ASSERT_TRUE(queue->Wait(ticket).ok());
  EXPECT_TRUE(queue->IsDone(ticket).value());
  EXPECT_EQ(copied, Pattern(1000, 99));
}

TEST(HostDevice, RunsBehindWhatTheCallersStreamHoldsAtThatMoment) {
  HostDevice device({.delay_max = std::chrono::milliseconds(2)});
  const auto memory = device.Allocate(0, 1000);
  const auto queue = device.MakeQueue(0).value();
  const auto stream = device.MakeStream();
  for (unsigned round = 0; round < 10; ++round) {
    Bytes copied(1000);
    stream->Run([&] { Fill(*memory, Pattern(1000, round)); });
    ASSERT_TRUE(queue->WaitFor(stream.get()).ok());
    ASSERT_TRUE(queue->CopyToHost({memory->address(), 1, 1000}, copied).ok());
    ASSERT_TRUE(queue->Wait(queue->Mark().value()).ok());
    EXPECT_EQ(copied, Pattern(1000, round));
  }
}

TEST(HostDevice, ANullStreamIsTheDefaultStream) {
  HostDevice device;
  const auto memory = device.Allocate(1, 10);
  const auto queue = device.MakeQueue(1).value();
  std::atomic<bool> open = false;
  device.default_stream(1).Run([&] {
    while (!open) std::this_thread::yield();
    Fill(*memory, Pattern(10));
  });
  Bytes copied(10);
  ASSERT_TRUE(queue->WaitFor(nullptr).ok());
  ASSERT_TRUE(queue->CopyToHost({memory->address(), 1, 10}, copied).ok());
  const std::uint64_t ticket = queue->Mark().value();
  EXPECT_FALSE(queue->IsDone(ticket).value());
  open = true;
  ASSERT_TRUE(queue->Wait(ticket).ok());
  EXPECT_EQ(copied, Pattern(10));
}

TEST(HostDevice, AnotherThreadMayCompleteWhatThisOneQueues) {
  HostDevice device({.delay_max = std::chrono::microseconds(50)});
  const auto memory = device.Allocate(0, 4096);
  Fill(*memory, Pattern(4096));
  const auto queue = device.MakeQueue(0).value();
  std::vector<Bytes> copies(50, Bytes(4096));
  std::atomic<std::uint64_t> tickets = 0;  // taken, one per copy
  std::vector<std::uint64_t> ticket_of(copies.size());
  std::thread completer([&] {
    for (std::size_t i = 0; i < copies.size(); ++i) {
      while (tickets.load() <= i) std::this_thread::yield();
      EXPECT_TRUE(queue->Wait(ticket_of[i]).ok());
      EXPECT_EQ(copies[i], Pattern(4096));
    }
  });
  for (std::size_t i = 0; i < copies.size(); ++i) {
    EXPECT_TRUE(queue->CopyToHost({memory->address(), 1, 4096}, copies[i]).ok());
    ticket_of[i] = queue->Mark().value();
    ++tickets;
  }
  completer.join();
}

TEST(HostDevice, QueuesOvertakeEachOther) {
  HostDevice device({.delay_max = std::chrono::microseconds(500)});
  const auto memory = device.Allocate(0, 100);
  const auto first = device.MakeQueue(0).value();
  const auto second = device.MakeQueue(0).value();
  bool overtaken = false;
  for (int round = 0; round < 200 && !overtaken; ++round) {
    Bytes a(100);
    Bytes b(100);
    ASSERT_TRUE(first->CopyToHost({memory->address(), 1, 100}, a).ok());
    const std::uint64_t ticket = first->Mark().value();
    ASSERT_TRUE(second->CopyToHost({memory->address(), 1, 100}, b).ok());
    ASSERT_TRUE(second->Wait(second->Mark().value()).ok());
    overtaken = !first->IsDone(ticket).value();
    ASSERT_TRUE(first->Wait(ticket).ok());
  }
  EXPECT_TRUE(overtaken);
}

TEST(HostDevice, TheDestructorWaits) {
  HostDevice device;
  const auto memory = device.Allocate(0, 200000);
  Fill(*memory, Pattern(200000));
  Bytes copied(200000);
  auto queue = device.MakeQueue(0).value();
  ASSERT_TRUE(queue->CopyToHost({memory->address(), 1, 200000}, copied).ok());
  queue.reset();
  EXPECT_EQ(copied, Pattern(200000));
}

TEST(HostDevice, TakesAsLongAsTheLink) {
  HostDevice device({.delay_max = {}, .link_bytes_per_second = 50e6});
  const auto memory = device.Allocate(0, kMiB);
  const auto queue = device.MakeQueue(0).value();
  Bytes copied(kMiB);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(queue->CopyToHost({memory->address(), 1, kMiB}, copied).ok());
  ASSERT_TRUE(queue->Wait(queue->Mark().value()).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));
}

TEST(HostDevice, DigestsAreThoseOfTheHost) {
  HostDevice device;
  const auto memory = device.Allocate(0, 10000);
  Fill(*memory, Pattern(10000));
  const auto queue = device.MakeQueue(0).value();
  ASSERT_TRUE(device.CheckKernels(0).ok());
  const DeviceChunks chunks{memory->address() + 1, 9999, 4096};
  std::vector<Digest> digests(chunks.count());
  ASSERT_TRUE(queue->QueueDigests(chunks, digests).ok());
  ASSERT_TRUE(queue->Wait(queue->Mark().value()).ok());
  ASSERT_EQ(digests.size(), 3U);
  const ByteSpan bytes = memory->contents().subspan(1);
  EXPECT_EQ(digests[0], ComputeDigest(bytes.first(4096)));
  EXPECT_EQ(digests[2], ComputeDigest(bytes.subspan(8192)));
}

TEST(HostDevice, SaysWhereThereAreNoKernels) {
  HostDevice device({.has_kernels = false});
  EXPECT_EQ(device.CheckKernels(0).code(), Code::kDevice);
  const auto memory = device.Allocate(0, 1);
  Digest digest;
  EXPECT_EQ(
      device.MakeQueue(0).value()->QueueDigests({memory->address(), 1, 1}, {&digest, 1}).code(),
      Code::kDevice);
  const internal::fingerprint::Part part({1}, 1, Region::Whole({1}));
  internal::fingerprint::Pair sum{};
  EXPECT_EQ(device.MakeQueue(0).value()->QueueFingerprint(part, memory->address(), sum).code(),
            Code::kDevice);
}

TEST(HostDevice, KnowsItsDevices) {
  HostDevice device({.device_count = 1});
  EXPECT_TRUE(device.CheckAvailable(0).ok());
  EXPECT_EQ(device.CheckAvailable(1).code(), Code::kDevice);
  EXPECT_EQ(device.CheckAvailable(-1).code(), Code::kDevice);
  EXPECT_EQ(device.MakeQueue(1).status().code(), Code::kDevice);
}

TEST(HostDevice, RefusesWhatIsNotMemoryOfTheDevice) {
  HostDevice device;
  const auto memory = device.Allocate(0, 100);
  const auto queue = device.MakeQueue(1).value();
  Bytes bytes(100);
  EXPECT_EQ(queue->CopyToHost({memory->address(), 1, 100}, bytes).code(), Code::kDevice);
  const auto own = device.MakeQueue(0).value();
  EXPECT_EQ(own->CopyToHost({memory->address() + 1, 1, 100}, bytes).code(), Code::kDevice);
  EXPECT_EQ(own->CopyToHost({bytes.data(), 1, 100}, bytes).code(), Code::kDevice);
}

TEST(HostDevice, ACopyFailsWhenQueued) {
  HostDevice device;
  const auto memory = device.Allocate(0, 10);
  Bytes bytes(10);  // outlives what is queued
  const auto queue = device.MakeQueue(0).value();
  device.FailCopyWhenQueued(2);
  const DeviceRows rows{memory->address(), 1, 10};
  EXPECT_TRUE(queue->CopyToHost(rows, bytes).ok());
  EXPECT_EQ(queue->CopyToHost(rows, bytes).code(), Code::kDevice);
}

TEST(HostDevice, ACopyFailsWhenRun) {
  HostDevice device;
  const auto memory = device.Allocate(0, 10);
  const auto queue = device.MakeQueue(0).value();
  Bytes bytes(10);
  device.FailCopyWhenRun(2);
  const DeviceRows rows{memory->address(), 1, 10};
  ASSERT_TRUE(queue->CopyToHost(rows, bytes).ok());
  const std::uint64_t good = queue->Mark().value();
  ASSERT_TRUE(queue->CopyToHost(rows, bytes).ok());
  const std::uint64_t bad = queue->Mark().value();
  EXPECT_EQ(queue->Wait(bad).code(), Code::kDevice);
  EXPECT_EQ(queue->IsDone(bad).status().code(), Code::kDevice);
  EXPECT_TRUE(queue->Wait(good).ok());
  EXPECT_EQ(device.counters().bytes_to_host, 10U);
}

TEST(HostDevice, ALostDeviceFailsAndTheOtherGoesOn) {
  HostDevice device;
  const auto memory = device.Allocate(0, 10);
  const auto queue = device.MakeQueue(0).value();
  Bytes bytes(10);
  device.Pause();
  ASSERT_TRUE(queue->CopyToHost({memory->address(), 1, 10}, bytes).ok());
  const std::uint64_t ticket = queue->Mark().value();
  device.LoseDevice(0);
  device.Resume();
  EXPECT_EQ(queue->Wait(ticket).code(), Code::kDevice);
  EXPECT_EQ(queue->Mark().status().code(), Code::kDevice);
  EXPECT_EQ(device.CheckAvailable(0).code(), Code::kDevice);
  EXPECT_TRUE(device.MakeQueue(1).ok());
}

TEST(HostDevice, KnowsWhatIsPinned) {
  HostDevice device;
  Bytes host(100);
  EXPECT_EQ(device.Pin(host).code(), Code::kDevice) << "no queue was made";
  const auto memory = device.Allocate(0, 100);
  const auto queue = device.MakeQueue(0).value();
  ASSERT_TRUE(queue->CopyToHost({memory->address(), 1, 100}, host).ok());
  ASSERT_TRUE(queue->Wait(queue->Mark().value()).ok());
  EXPECT_EQ(device.counters().bytes_pageable, 100U);
  ASSERT_TRUE(device.Pin(host).ok());
  EXPECT_EQ(device.counters().pinned_bytes, 100U);
  ASSERT_TRUE(queue->CopyToHost({memory->address(), 1, 60}, MutableByteSpan(host).last(60)).ok());
  ASSERT_TRUE(queue->Wait(queue->Mark().value()).ok());
  EXPECT_EQ(device.counters().bytes_pageable, 100U);
  device.Unpin(host);
  EXPECT_EQ(device.counters().pinned_bytes, 0U);
  device.RefusePins();
  EXPECT_EQ(device.Pin(host).code(), Code::kDevice);
}

TEST(HostDevice, AChildIsRefusedAndDestroysNothing) {
  auto device = std::make_unique<HostDevice>();
  const auto memory = device->Allocate(0, 10);
  Bytes bytes(10);
  auto queue = device->MakeQueue(0).value();
  const std::uint64_t ticket = queue->Mark().value();
  EXPECT_TRUE(HoldsInChild([&] {
    const bool refused =
        device->CheckAvailable(0).code() == Code::kDevice &&
        queue->Wait(ticket).code() == Code::kDevice &&
        queue->CopyToHost({memory->address(), 1, 10}, bytes).code() == Code::kDevice;
    queue.reset();
    device.reset();
    return refused;
  }));
}

TEST(HostDeviceDeathTest, TheHostCannotTouchDeviceMemory) {
  HostDevice device;
  const auto memory = device.Allocate(0, 1);
  EXPECT_DEATH(*const_cast<volatile std::byte*>(memory->address()) = std::byte{1}, "");
}

TEST(HostDeviceDeathTest, FindsMemoryThatStaysPinned) {
  EXPECT_DEATH(
      {
        HostDevice device;
        const auto queue = device.MakeQueue(0).value();
        Bytes host(100);
        static_cast<void>(device.Pin(host));
      },
      "pinned_bytes");
}

}  // namespace
}  // namespace sealpoint::testing
