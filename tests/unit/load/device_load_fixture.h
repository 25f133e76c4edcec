// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_UNIT_LOAD_DEVICE_LOAD_FIXTURE_H_
#define SEALPOINT_TESTS_UNIT_LOAD_DEVICE_LOAD_FIXTURE_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/device/host_device.h"
#include "tests/support/device/use_devices.h"
#include "tests/unit/load/load_fixture.h"

namespace sealpoint::testing {

// A checkpoint in memory that is loaded to devices that are late in every way.
class DeviceLoadFixture : public LoadFixture {
 protected:
  static constexpr std::uint64_t kChunk = 4096;
  // "w", 256 x 64 elements of f32: 16 chunks of 16 rows, cut at row 160 into two blobs.
  static constexpr std::uint64_t kRows = 256;
  static constexpr std::uint64_t kColumns = 64;
  static constexpr std::uint64_t kTensorBytes = kRows * kColumns * 4;

  static MiniSpec Matrix(Codec codec = Codec::kNone) {
    MiniSpec spec;
    Bytes bytes = NoiseBytes(1, kTensorBytes);
    // Small whole numbers, which every dtype has, and which compress.
    for (std::size_t i = 0; i < bytes.size(); i += 4) {
      const auto value = static_cast<float>(static_cast<unsigned>(bytes[i]) % 16);
      std::memcpy(bytes.data() + i, &value, sizeof(value));
    }
    spec.tensors.push_back(CutTensor(
        "w", DType::kF32, {kRows, kColumns}, bytes,
        {Region::Of({{0, 0}, {160, kColumns}}), Region::Of({{160, 0}, {96, kColumns}})}, {0, 1}));
    spec.tensors.back().codec = codec;
    return spec;
  }
  void OpenMatrix(Codec codec = Codec::kNone, OpenOptions options = {}) {
    memory_ = MemoryStorage();
    storage_ = std::make_shared<ReadingStorage>(memory_);
    container_ = BuildMini(Matrix(codec));
    StoreFiles(*memory_, "c", container_.files);
    OpenHere(std::move(options));
  }
  void OpenHere(OpenOptions options = {}) {
    Reopen(std::move(options));
    UseDevices(*checkpoint_, devices_);
  }

  // Memory of a device, filled with 0xee.
  std::unique_ptr<DeviceMemory> Allocate(std::uint64_t size, int device = 0) {
    auto memory = devices_->Allocate(device, size);
    std::fill(memory->contents().begin(), memory->contents().end(), std::byte{0xee});
    return memory;
  }
  static Bytes ContentsOf(const DeviceMemory& memory) {
    return {memory.contents().begin(), memory.contents().end()};
  }
  // The whole tensor, densely.
  Result<LoadReport> LoadAll(const DeviceMemory& memory, const ReadOptions& options = {},
                             HostStream* stream = nullptr, int device = 0) {
    ReadRequest request;
    request.Add("w", MutableMemoryView::Cuda(memory.addresses(), device, stream));
    return checkpoint_->Load(request, {}, options);
  }
  // So that each is a range of its own.
  static ReadRequest EverySecondChunk(const DeviceMemory& memory) {
    ReadRequest request;
    for (std::uint64_t row = 0; row < kRows; row += 32) {
      request.Add(
          "w", Box{{row, 0}, {16, kColumns}},
          MutableMemoryView::Cuda(memory.addresses().subspan(row * kColumns * 4, 16 * kColumns * 4),
                                  0, nullptr));
    }
    return request;
  }
  Bytes All() { return ReadDense("w", Region::Whole({kRows, kColumns})).value(); }

  // Nothing writes to the memory any more.
  static void ExpectStill(const DeviceMemory& memory) {
    const Bytes before = ContentsOf(memory);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(ContentsOf(memory), before);
  }

  std::shared_ptr<HostDevice> devices_ = std::make_shared<HostDevice>();
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_UNIT_LOAD_DEVICE_LOAD_FIXTURE_H_
