// SPDX-License-Identifier: Apache-2.0
//
// Collective loads to device memory. Each rank has devices of its own, which are late.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/device/host_device.h"
#include "tests/support/device/use_devices.h"
#include "tests/support/state/collective_load_job.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kHeight = 96;
constexpr std::uint64_t kWidth = 64;
constexpr std::uint64_t kStateBytes = kHeight * kWidth * 4;
const Shape kStateShape = {kHeight, kWidth};

Bytes Numbers() {
  Bytes bytes(kStateBytes);
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    const auto value = static_cast<float>(i % 251);
    std::memcpy(bytes.data() + i, &value, sizeof(value));
  }
  return bytes;
}

MiniContainer Stored(const Bytes& numbers) {
  MiniSpec spec;
  spec.tensors.push_back(
      CutTensor("w", DType::kF32, kStateShape, numbers,
                {Region::Of({{0, 0}, {40, kWidth}}), Region::Of({{40, 0}, {56, kWidth}})}, {0, 1}));
  spec.tensors.back().codec = Codec::kZstd;
  return BuildMini(spec);
}

// One rank that loads to memory of its device 0, beside the same to host memory.
struct DeviceJob : CollectiveLoadJob {
  explicit DeviceJob(Communicator& communicator, const Bytes& numbers = Numbers())
      : CollectiveLoadJob(communicator, Stored(numbers)) {
    reader = Open();
    UseDevices(reader->checkpoint(), devices);
  }
  std::unique_ptr<DeviceMemory> Allocate(std::uint64_t size) const {
    auto allocated = devices->Allocate(0, size);
    std::fill(allocated->contents().begin(), allocated->contents().end(), std::byte{0xee});
    return allocated;
  }

  std::shared_ptr<HostDevice> devices =
      std::make_shared<HostDevice>(HostDeviceOptions{.delay_max = std::chrono::microseconds(50)});
  std::unique_ptr<CollectiveReader> reader;
};

TEST(CollectiveDeviceTest, EveryLayoutArrivesAsOnTheHost) {
  const Region box = Region::Of({{5, 3}, {80, 50}});
  OnRanks([&](Communicator& comm) {
    DeviceJob job(comm);
    constexpr std::uint64_t kStridedSize = 80 * 60 * 8;
    for (const std::vector<std::int64_t>& strides :
         std::vector<std::vector<std::int64_t>>{{}, {60 * 8, 8}, {8, 80 * 8}, {-60 * 8, 8}}) {
      for (const bool converts : {false, true}) {
        const std::uint64_t origin = !strides.empty() && strides[0] < 0 ? 79 * 60 * 8 : 0;
        const std::uint64_t size = strides.empty() ? 80 * 50 * (converts ? 8 : 4) : kStridedSize;
        Bytes host(size, std::byte{0xee});
        const auto memory = job.Allocate(size);
        ReadRequest request;
        request.Add("w", box, MutableMemoryView::Host(host, strides, origin));
        request.Add("w", box,
                    MutableMemoryView::Cuda(memory->addresses(), 0, nullptr, strides, origin));
        if (converts) {
          for (ReadItem& item : request.items) item.convert = Conversion{DType::kF64};
        }
        // A few chunks at a time, so that there are many exchanges.
        const auto report = job.reader->Load(request, {}, {.memory_budget_bytes = 48 * kKiB});
        ASSERT_TRUE(report.ok()) << report.error().ToString();
        EXPECT_EQ(Bytes(memory->contents().begin(), memory->contents().end()), host);
      }
    }
    EXPECT_EQ(job.devices->counters().bytes_pageable, 0u);
  });
}

TEST(CollectiveDeviceTest, ACopyThatFailsOnOneRankFailsOnAllAndNamesTheTensor) {
  // The first and the last of the seven chunks.
  for (const auto& [when_queued, nth] :
       {std::pair(true, 1u), {true, 7u}, {false, 1u}, {false, 7u}}) {
    const bool fails_when_queued = when_queued;
    const std::uint64_t number = nth;
    OnRanks([&](Communicator& comm) {
      DeviceJob job(comm);
      const auto memory = job.Allocate(kStateBytes);
      const int last = comm.size() - 1;
      if (comm.rank() == last && fails_when_queued) job.devices->FailCopyWhenQueued(number);
      if (comm.rank() == last && !fails_when_queued) job.devices->FailCopyWhenRun(number);
      ReadRequest request;
      request.Add("w", MutableMemoryView::Cuda(memory->addresses(), 0, nullptr));
      const Status error = job.reader->Load(request).status();
      EXPECT_THAT(error, HasCode(Code::kDevice));
      EXPECT_EQ(error.place().tensor, "w");
      EXPECT_EQ(error.place().rank, last);
      ASSERT_TRUE(job.reader->Load(request).ok());  // still in step
      EXPECT_EQ(Bytes(memory->contents().begin(), memory->contents().end()), Numbers());
    });
  }
}

// The copies of all other chunks succeed, also those behind it.
TEST(CollectiveDeviceTest, AnElementThatCannotBeConvertedFailsOnAll) {
  for (const std::size_t at : {std::size_t{0}, kStateBytes / 2, kStateBytes - 4}) {
    Bytes numbers = Numbers();
    constexpr float kThird = 1.0F / 3;
    std::memcpy(numbers.data() + at, &kThird, sizeof(kThird));
    OnRanks([&](Communicator& comm) {
      DeviceJob job(comm, numbers);
      const auto memory = job.Allocate(kStateBytes / 2);
      ReadRequest request;
      request.Add("w", MutableMemoryView::Cuda(memory->addresses(), 0, nullptr));
      request.items.back().convert = Conversion{DType::kF16};
      const Status error =
          job.reader->Load(request, {}, {.memory_budget_bytes = 48 * kKiB}).status();
      EXPECT_THAT(error, HasCode(Code::kMismatch));
      EXPECT_EQ(error.place().tensor, "w");
    });
  }
}

TEST(CollectiveDeviceTest, ADeviceThatOneRankLacksFailsOnAll) {
  OnRanks([](Communicator& comm) {
    DeviceJob job(comm);
    const auto memory = job.Allocate(kStateBytes);
    ReadRequest request;
    request.Add("w",
                MutableMemoryView::Cuda(memory->addresses(), comm.rank() == 0 ? 9 : 0, nullptr));
    const Status error = job.reader->Load(request).status();
    EXPECT_THAT(error, HasCode(Code::kDevice));
    EXPECT_EQ(error.place().tensor, "w");
    EXPECT_EQ(error.place().rank, 0);
  });
}

}  // namespace
}  // namespace sealpoint::testing
