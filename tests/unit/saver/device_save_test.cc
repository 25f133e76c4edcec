// SPDX-License-Identifier: Apache-2.0
//
// Saves from device memory, over a stand-in with the worst timing that a device may have. Its
// addresses cannot be read by the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/internal_access.h"
#include "lib/pipeline/engine_parts.h"
#include "sealpoint/saver.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/device/host_device.h"
#include "tests/support/process/seconds.h"
#include "tests/support/state/save_in_mode.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kRows = 300;
constexpr std::uint64_t kColumns = 70;

// One process that saves from two stand-in devices.
class DeviceSaveTest : public ::testing::Test {
 protected:
  explicit DeviceSaveTest(HostDeviceOptions options = {})
      : device(std::make_shared<HostDevice>(options)) {
    InternalAccess::PartsOf(*engine).device = device;
  }

  // A tensor of bytes in dense memory of a device.
  void AddDense(const std::string& name, std::uint64_t size, int number,
                HostStream* stream = nullptr, Codec codec = Codec::kNone,
                std::uint64_t chunk_size_bytes = kChunkSizeMinBytes) {
    TensorSpec tensor = ByteTensor(name, size);
    tensor.codec = codec;
    tensor.chunk_size_bytes = chunk_size_bytes;
    const Bytes content = NoiseBytes(std::hash<std::string>()(name), size);
    // Memory without any alignment.
    auto& memory = memories.emplace_back(device->Allocate(number, size + 3));
    std::copy(content.begin(), content.end(), memory->contents().begin() + 3);
    Add({.tensor = tensor}, MemoryView::Cuda(memory->addresses().subspan(3), number, stream),
        content);
  }

  void Add(DeclaredTensor held, MemoryView view, Bytes content) {
    names.push_back(held.tensor.name);
    contents.push_back(std::move(content));
    views.push_back(std::move(view));
    declaration.Add(std::move(held)).value();
  }

  // Overwrites what is to be saved.
  void Spoil() {
    for (const auto& memory : memories) {
      std::fill(memory->contents().begin(), memory->contents().end(), std::byte{0xee});
    }
  }

  // Another engine for the same devices.
  std::unique_ptr<Engine> EngineOver(std::shared_ptr<Storage> over, int buffer_count) {
    auto made = SmallEngine(std::move(over), buffer_count);
    InternalAccess::PartsOf(*made).device = device;
    return made;
  }

  Result<CommitInfo> Save(SaverOptions options = {}) {
    const auto saver = Saver::Create(*engine, *comm, options).value();
    Sources sources(declaration);
    for (std::size_t i = 0; i < views.size(); ++i) {
      const Status bound = sources.Bind(i, views[i]);
      if (!bound.ok()) return bound;
    }
    return SaveInMode(*saver, SaveTarget::Directory("ckpt"), {.step = 1}, sources,
                      [this] { Spoil(); });
  }

  void ExpectSaved() {
    const auto info = Save();
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    EXPECT_EQ(FindDamage(storage, "ckpt"), "");
    const auto checkpoint = OpenFrom(storage, "ckpt");
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(LoadWhole(*checkpoint, names[i]), contents[i]) << names[i];
    }
  }

  // One error of the device, that names the tensor, and nothing left behind.
  void ExpectDeviceError(const Status& status) {
    EXPECT_EQ(status.code(), Code::kDevice) << status.ToString();
    EXPECT_NE(status.place().tensor, "") << status.ToString();
    EXPECT_THAT(FileNames(*storage, "ckpt"), IsEmpty());
  }

  const std::shared_ptr<HostDevice> device;
  const std::shared_ptr<Storage> storage = MemoryStorage();
  // A few times smaller than what is saved, unless saves are held.
  const std::unique_ptr<Engine> engine = SmallEngine(storage, BufferCountForSaves(3));
  const std::unique_ptr<Communicator> comm = SelfCommunicator();
  std::vector<std::unique_ptr<DeviceMemory>> memories;
  Declaration declaration;
  std::vector<std::string> names;
  std::vector<MemoryView> views;
  std::vector<Bytes> contents;
};

TEST_F(DeviceSaveTest, DenseMemoryOfSeveralDevicesAndOfTheHost) {
  AddDense("a", 100000, 0);
  AddDense("b", 5, 1);
  AddDense("c", 70001, 1);
  Add({.tensor = ByteTensor("host", 40000)}, {}, NoiseBytes(1, 40000));
  views.back() = MemoryView::Host(contents.back());
  AddDense("d", 50000, 0);
  ExpectSaved();
  EXPECT_EQ(device->counters().bytes_to_host, 100000u + 5 + 70001 + 50000);
  EXPECT_EQ(device->counters().queues, 2u);
}

TEST_F(DeviceSaveTest, ChunksWithACodec) {
  AddDense("a", 100000, 0, nullptr, Codec::kZstd);
  AddDense("b", 30000, 0);
  ExpectSaved();
}

TEST_F(DeviceSaveTest, AnyStrides) {
  struct Case {
    std::string name;
    std::vector<std::int64_t> strides;
    std::int64_t begin;
  };
  constexpr auto kRow = static_cast<std::int64_t>(kColumns * 4);
  const std::vector<Case> cases = {
      {"padded", {kRow + 20, 4}, 0},
      {"transposed", {4, static_cast<std::int64_t>(kRows * 4)}, 0},
      {"backwards", {-kRow, 4}, kRow * static_cast<std::int64_t>(kRows - 1)},
      {"mirrored", {kRow, -4}, kRow - 4},
      {"repeated", {0, 4}, 0},
  };
  for (const Case& layout_case : cases) {
    auto& memory = memories.emplace_back(device->Allocate(0, kRows * (kColumns * 4 + 20)));
    const Bytes noise = NoiseBytes(cases.size(), memory->contents().size());
    std::copy(noise.begin(), noise.end(), memory->contents().begin());
    Bytes wanted;
    for (std::uint64_t row = 0; row < kRows; ++row) {
      for (std::uint64_t column = 0; column < kColumns; ++column) {
        const std::int64_t at = layout_case.begin +
                                static_cast<std::int64_t>(row) * layout_case.strides[0] +
                                static_cast<std::int64_t>(column) * layout_case.strides[1];
        wanted.insert(wanted.end(), noise.begin() + at, noise.begin() + at + 4);
      }
    }
    const TensorSpec tensor{.name = layout_case.name,
                            .dtype = DType::kF32,
                            .shape = {kRows, kColumns},
                            .chunk_size_bytes = kChunkSizeMinBytes};
    Add({.tensor = tensor},
        MemoryView::Cuda(memory->addresses(), 0, nullptr, layout_case.strides,
                         static_cast<std::size_t>(layout_case.begin)),
        wanted);
  }
  ExpectSaved();
}

// What fills a buffer begins and ends within rows: it is copied in parts, each of which may fail.
TEST_F(DeviceSaveTest, AnyPartOfAStridedRunThatIsRefusedIsAnError) {
  auto& memory = memories.emplace_back(device->Allocate(0, 300 * 100));
  TensorSpec tensor = ByteTensor("w", 0);
  tensor.shape = {300, 70};
  tensor.chunk_size_bytes = kChunkSizeMinBytes;
  Add({.tensor = tensor}, MemoryView::Cuda(memory->addresses(), 0, nullptr, {100, 1}),
      Bytes(300 * 70));
  for (std::uint64_t nth = 1; nth <= 4; ++nth) {
    const std::uint64_t before = device->counters().copies;
    device->FailCopyWhenQueued(nth);
    const Status status = Save().status();
    EXPECT_EQ(status.code(), Code::kDevice) << nth << ": " << status.ToString();
    EXPECT_EQ(device->counters().copies - before, nth);
  }
}

// What was queued on the caller's stream before the save comes first, however late it runs: here
// long after the save began.
TEST_F(DeviceSaveTest, WaitsForTheStreamOfEachView) {
  const auto first = device->MakeStream();
  const auto second = device->MakeStream();
  for (HostStream* const stream : {first.get(), second.get()}) {
    AddDense(stream == first.get() ? "first" : "second", 60000, 0, stream);
    const MutableByteSpan memory = memories.back()->contents();
    const Bytes late = contents.back();
    std::fill(memory.begin(), memory.end(), std::byte{0});
    stream->Run([memory, late] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      std::copy(late.begin(), late.end(), memory.begin() + 3);
    });
  }
  ExpectSaved();
}

TEST_F(DeviceSaveTest, ACopyThatIsRefusedIsOneError) {
  AddDense("a", 100000, 0);
  device->FailCopyWhenQueued(3);
  ExpectDeviceError(Save().status());
}

TEST_F(DeviceSaveTest, ACopyThatFailsLateIsOneError) {
  AddDense("a", 100000, 0);
  AddDense("coded", 100000, 0, nullptr, Codec::kZstd);
  for (const std::uint64_t nth : {1u, 5u, 9u}) {
    device->FailCopyWhenRun(nth);
    EXPECT_EQ(Save().status().code(), Code::kDevice) << nth;
    EXPECT_THAT(FileNames(*storage, "ckpt"), IsEmpty());
  }
}

// The stand-in's copies are late: whoever does not wait for them copies what came after.
TEST_F(DeviceSaveTest, MemoryMayChangeOnceASaveInTheBackgroundHasBegun) {
  const auto large = EngineOver(storage, 64);
  AddDense("a", 100000, 0);
  const auto saver = Saver::Create(*large, *comm).value();
  Sources sources(declaration);
  ASSERT_TRUE(sources.Bind(0, views[0]).ok());
  const auto pending = saver->SaveAsync(SaveTarget::Directory("ckpt"), {}, sources).value();
  Spoil();
  ASSERT_TRUE(pending->Wait().ok());
  EXPECT_EQ(LoadWhole(*OpenFrom(storage, "ckpt"), "a"), contents.back());
}

// In the background: the snapshot comes first, and where it fails nothing is made on the disk.
TEST_F(DeviceSaveTest, AFailedSnapshotLeavesTheDiskAlone) {
  const auto seen = std::make_shared<FailingStorage>(storage);
  const auto large = EngineOver(seen, 64);
  AddDense("a", 100000, 0);
  const auto saver = Saver::Create(*large, *comm).value();
  Sources sources(declaration);
  ASSERT_TRUE(sources.Bind(0, views[0]).ok());
  device->FailCopyWhenQueued(3);
  seen->ClearLog();
  const auto pending = saver->SaveAsync(SaveTarget::Directory("ckpt"), {}, sources).value();
  EXPECT_THAT(pending->Wait().status(), HasCode(Code::kDevice));
  EXPECT_THAT(seen->calls(), IsEmpty());
}

TEST_F(DeviceSaveTest, ALostDeviceIsOneErrorAndTheHostCanStillSave) {
  AddDense("a", 100000, 0);
  device->LoseDevice(0);
  ExpectDeviceError(Save().status());
  declaration = Declaration();
  names.clear();
  views.clear();
  contents.clear();
  AddDense("b", 100000, 1);
  ExpectSaved();
}

// A disk that fails while copies are under way: they must not land in buffers of somebody else.
TEST_F(DeviceSaveTest, BuffersStayUntilTheirCopiesAreOver) {
  const auto failing = std::make_shared<FailingStorage>(storage);
  const auto small = EngineOver(failing, BufferCountForSaves(6));
  failing->Fail({.op = StorageOp::kWrite, .nth = 2});
  AddDense("a", 100000, 0);
  {
    const auto saver = Saver::Create(*small, *comm).value();
    Sources sources(declaration);
    ASSERT_TRUE(sources.Bind(0, views[0]).ok());
    const auto info = SaveInMode(*saver, SaveTarget::Directory("ckpt"), {.step = 1}, sources);
    EXPECT_EQ(info.status().code(), Code::kIo) << info.status().ToString();
  }
  ExpectSaved();
}

TEST_F(DeviceSaveTest, StridedElementsThatFitNoBufferAreRefused) {
  auto& memory = memories.emplace_back(device->Allocate(0, 30000));
  const TensorSpec tensor{
      .name = "wide", .dtype = static_cast<DType>(200), .shape = {10, 10}, .element_size = 128};
  Add({.tensor = tensor}, MemoryView::Cuda(memory->addresses(), 0, nullptr, {2000, 128}),
      Bytes(12800));
  EXPECT_THAT(Save().status(), HasCode(Code::kInvalidArgument));
}

TEST_F(DeviceSaveTest, DigestsOfTheDeviceAreCompared) {
  AddDense("a", 100000, 0);
  AddDense("coded", 50000, 0, nullptr, Codec::kZstd);
  // What the device cannot digest in one piece, or has not, is saved without.
  auto& memory = memories.emplace_back(device->Allocate(0, 1000));
  Bytes column;
  for (std::size_t i = 0; i < 100; ++i) {
    memory->contents()[i * 10] = static_cast<std::byte>(i);
    column.push_back(static_cast<std::byte>(i));
  }
  Add({.tensor = ByteTensor("column", 100)},
      MemoryView::Cuda(memory->addresses(), 0, nullptr, {10}), column);
  Add({.tensor = ByteTensor("host", 40000)}, {}, NoiseBytes(1, 40000));
  views.back() = MemoryView::Host(contents.back());
  const auto info = Save({.check_device_copies = true});
  ASSERT_TRUE(info.ok()) << info.error().ToString();
  EXPECT_EQ(device->counters().digests, (100000u + 4095) / 4096 + (50000u + 4095) / 4096);
}

TEST_F(DeviceSaveTest, ABitThatTheLinkFlippedIsFound) {
  AddDense("a", 100000, 0);
  AddDense("coded", 50000, 0, nullptr, Codec::kZstd);
  for (const std::uint64_t nth : {3u, 10u}) {  // of 7 and 13
    device->FlipBitInCopy(nth);
    const Status status = Save({.check_device_copies = true}).status();
    EXPECT_EQ(status.code(), Code::kDevice) << nth << ": " << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("digest mismatch, computed in device memory"));
    EXPECT_THAT(FileNames(*storage, "ckpt"), IsEmpty());
  }
}

// A link of a known rate, and memory for the whole state.
class StallTest : public DeviceSaveTest {
 protected:
  StallTest()
      : DeviceSaveTest(
            {.delay_max = std::chrono::microseconds(0), .link_bytes_per_second = 200e6}) {}

  // The same bytes in one copy into memory that is there and pinned.
  void CopyPlainly(const std::byte* data, std::uint64_t size) {
    if (plain_.empty()) {
      plain_.resize(size);
      queue_ = device->MakeQueue(0).value();
      ASSERT_TRUE(device->Pin(plain_).ok());
    }
    ASSERT_TRUE(queue_->CopyToHost({.data = data, .row_bytes = size}, plain_).ok());
    ASSERT_TRUE(queue_->Wait(queue_->Mark().value()).ok());
  }
  ~StallTest() override {
    if (!plain_.empty()) device->Unpin(plain_);
  }

 private:
  Bytes plain_;
  std::unique_ptr<internal::device::CopyQueue> queue_;
};

// Training stands still for one copy over the link: hashing, the disk and the other ranks come
// later. The disk stands still meanwhile.
TEST_F(StallTest, IsTheTimeOfTheCopy) {
  constexpr std::uint64_t kSize = 20000000;
  constexpr int kRounds = 5;
  const auto blocked = std::make_shared<FailingStorage>(storage);
  std::atomic<bool> is_open = true;
  blocked->SetHook([&](StorageOp, std::string_view) {
    while (!is_open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  const auto large = Engine::Create({.memory_budget_bytes = 64 * kMiB, .storage = blocked}).value();
  InternalAccess::PartsOf(*large).device = device;
  AddDense("a", kSize, 0, nullptr, Codec::kNone, kChunkSizeDefaultBytes);
  const auto saver = Saver::Create(*large, *comm).value();
  Sources sources(declaration);
  ASSERT_TRUE(sources.Bind(0, views[0]).ok());
  const auto save = [&](const std::string& directory) {
    return saver->SaveAsync(SaveTarget::Directory(directory), {}, sources).value();
  };
  ASSERT_TRUE(save("first")->Wait().ok()) << "maps and pins the memory";
  std::vector<double> ratios;
  for (int round = 0; round < kRounds; ++round) {
    const double copy_seconds = SecondsOf([&] { CopyPlainly(views[0].data, kSize); });
    const std::string directory = "ckpt-" + std::to_string(round);
    is_open = false;
    std::unique_ptr<PendingSave> pending;
    ratios.push_back(SecondsOf([&] { pending = save(directory); }) / copy_seconds);
    Spoil();
    is_open = true;
    ASSERT_TRUE(pending->Wait().ok());
    EXPECT_EQ(LoadWhole(*OpenFrom(storage, directory), "a"), contents.back());
    std::copy(contents.back().begin(), contents.back().end(),
              memories.back()->contents().begin() + 3);
  }
  std::sort(ratios.begin(), ratios.end());
  const double median = ratios[kRounds / 2];
  EXPECT_LE(ratios.front(), 1.2) << "the best round: the machine may be busy in others";
  std::cout << "stall / plain copy over the link: median " << median << " (" << ratios.front()
            << " to " << ratios.back() << ", " << kRounds << " rounds)\n";
}

class NoDigestsTest : public DeviceSaveTest {
 protected:
  NoDigestsTest() : DeviceSaveTest({.has_kernels = false}) {}
};

// What is frozen is copied to be digested, before it is written; the digest of what did not arrive
// is no digest.
TEST_F(NoDigestsTest, AFrozenGroupThatCannotBeDigestedFailsTheSave) {
  const auto large = EngineOver(storage, 64);
  AddDense("a", 100000, 0);
  declaration = Declaration();
  TensorSpec tensor = ByteTensor("a", 100000);
  tensor.group = "frozen";
  declaration.Add({.tensor = tensor}).value();
  const auto saver = Saver::Create(*large, *comm, {.frozen_groups = {"frozen"}}).value();
  Sources sources(declaration);
  ASSERT_TRUE(sources.Bind(0, views[0]).ok());
  device->FailCopyWhenQueued(1);
  const auto pending = saver->SaveAsync(SaveTarget::Directory("ckpt"), {}, sources).value();
  EXPECT_THAT(pending->Wait().status(), HasCode(Code::kDevice));
}

TEST_F(NoDigestsTest, ChecksThatTheDeviceCannotMakeAreUnsupported) {
  AddDense("a", 100000, 0);
  EXPECT_THAT(Save({.check_device_copies = true}).status(), HasCode(Code::kUnsupported));
  std::copy(contents[0].begin(), contents[0].end(), memories[0]->contents().begin() + 3);
  ExpectSaved();
}

}  // namespace
}  // namespace sealpoint::testing
