// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_UNIT_TRANSFER_DELIVERY_FIXTURE_H_
#define SEALPOINT_TESTS_UNIT_TRANSFER_DELIVERY_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/layout/region_algebra.h"
#include "lib/transfer/delivery_set.h"
#include "lib/transfer/host_delivery.h"
#include "lib/transfer/send_delivery.h"
#include "sealpoint/storage.h"
#include "tests/support/device/host_device.h"
#include "tests/support/storage/descriptor_storage.h"

namespace sealpoint::internal::transfer {
using sealpoint::testing::DescriptorStorage;
using sealpoint::testing::DeviceMemory;
using sealpoint::testing::HostDevice;

// "w", 128 x 64 elements of f32: 8 chunks of 16 rows, 4 in each of two blobs.
inline constexpr std::uint64_t kMatrixRows = 128;
inline constexpr std::uint64_t kMatrixColumns = 64;
inline constexpr std::uint64_t kChunkMatrixRows = 16;
inline constexpr std::uint64_t kChunkBytes = kChunkMatrixRows * kMatrixColumns * 4;
inline constexpr std::uint64_t kChunkCount = kMatrixRows / kChunkMatrixRows;
inline constexpr std::uint64_t kFirstOffset = 4096;

enum class Route : std::uint8_t { kFetched, kNone, kReceived, kSent };

struct DeliveryWay {
  std::string name{};
  Route route = Route::kFetched;
  bool is_on_device = false;
  Box box{{0, 0}, {kMatrixRows, kMatrixColumns}};
  std::vector<std::int64_t> strides = {kMatrixColumns * 4, 4};
  std::int64_t origin = 0;
  std::uint64_t size = kMatrixRows * kMatrixColumns * 4;  // of the memory
  DType to = DType::kF32;
  bool is_coded = false;
  bool isolates = false;
  bool verifies = false;
  bool reads_directly = false;
  std::uint64_t range_chunks = 2;
};

inline void PrintTo(const DeliveryWay& way, std::ostream* out) { *out << way.name; }

// Small whole numbers, which every dtype has.
inline float ValueAt(std::uint64_t row, std::uint64_t column) {
  return static_cast<float>((row * 7 + column * 3) % 16);
}

// A reader of a file in memory. Decoded chunks are gone after Begin, as are those in its memory.
class FakeReader final : public RangeFetcher {
 public:
  FakeReader(const DeliveryPlan& plan, std::vector<Bytes>& blobs) : plan_(plan), blobs_(blobs) {}

  // So many steps are made, then all ends.
  void StopAfter(int steps) { steps_left_ = steps; }

  Status Fetch(const PlanRange& range, Delivery& delivery) override {
    const ByteSpan stored = ByteSpan(blobs_[range.blob]).subspan(range.offset, range.size);
    if (range.in_place != nullptr && delivery.reads_in_place()) {
      std::ranges::copy(stored, range.in_place);
      SEALPOINT_RETURN_IF_ERROR(ForEach(range, {range.in_place, range.size},
                                        [](const PlanChunk&, ByteSpan) { return Status(); }));
      delivery.InPlace(range);
      return {};
    }
    SEALPOINT_ASSIGN_OR_RETURN(const FetchTarget target, delivery.Prepare(range, *this));
    SEALPOINT_RETURN_IF_ERROR(Step());
    if (!target.is_fetched) {
      Bytes scratch(target.memory.empty() ? range.size : 0);
      const MutableByteSpan memory = target.memory.empty() ? scratch : target.memory;
      std::ranges::copy(stored, memory.begin());
      SEALPOINT_RETURN_IF_ERROR(
          ForEach(range, memory.first(range.size), [&](const PlanChunk& chunk, ByteSpan raw) {
            if (chunk.codec == Codec::kNone) return delivery.Begin(chunk, raw);
            Bytes decoded(raw.begin(), raw.end());
            Status status = delivery.Begin(chunk, decoded);
            std::ranges::fill(decoded, std::byte{0x11});
            return status;
          }));
      std::ranges::fill(scratch, std::byte{0x22});
    }
    return delivery.EndRange();
  }

  Status At(const PlanChunk& chunk, Status error) const override {
    if (error.ok()) return error;
    return plan_.AtItem(chunk.name,
                        std::move(error).AtPath(std::to_string(chunk.blob)).AtOffset(chunk.offset));
  }

  Status Step() { return steps_left_-- == 0 ? MakeError(Code::kCancelled, "stopped") : Status(); }

 private:
  using Take = std::function<Status(const PlanChunk&, ByteSpan)>;
  Status ForEach(const PlanRange& range, ByteSpan bytes, const Take& take) {
    for (const PlanChunk& chunk : plan_.ChunksOf(range)) {
      const ByteSpan raw = bytes.subspan(chunk.offset - range.offset, chunk.raw_size);
      if (ComputeDigest(raw) != chunk.raw_digest) {
        return At(chunk, RuleError(Code::kCorrupt, "R-CHK-02", "damaged"));
      }
      SEALPOINT_RETURN_IF_ERROR(At(chunk, take(chunk, raw)));
      SEALPOINT_RETURN_IF_ERROR(Step());
    }
    return {};
  }

  const DeliveryPlan& plan_;
  std::vector<Bytes>& blobs_;
  int steps_left_ = -1;
};

class DeliveryTest : public ::testing::TestWithParam<DeliveryWay> {
 protected:
  DeliveryTest() : way_(GetParam()) { Renew(); }

  // Another device, memory and plan: nothing is left of the last run.
  void Renew() {
    device_memory_.reset();
    device_ = std::make_shared<HostDevice>(sealpoint::testing::HostDeviceOptions{
        .delay_max = std::chrono::microseconds(100), .piece_bytes_max = 512, .reads_files = true});
    pool_ = device::StagingPool::Create(kMiB, 4096).value();
    plan_ = DeliveryPlan();
    plan_.names = {"w"};
    plan_.range_pages_max = way_.range_chunks * kChunkBytes;
    blobs_.assign(2, Bytes(kFirstOffset + kChunkCount / 2 * kChunkBytes));
    host_memory_.assign(way_.is_on_device ? 0 : way_.size, std::byte{0xee});
    target_ = host_memory_.data();
    if (way_.is_on_device) {
      device_memory_ = device_->Allocate(1, way_.size);
      std::ranges::fill(device_memory_->contents(), std::byte{0xee});
      target_ = device_memory_->addresses().data();
      plan_.streams = {{.device = 1, .stream = nullptr, .name = 0}};
    }
    if (way_.to != DType::kF32) {
      plan_.conversions.push_back(
          {.converter = convert::ElementConverter::Make(DType::kF32, Conversion{way_.to}).value(),
           .region = Region::Of(way_.box)});
    }
    for (std::uint64_t i = 0; i < kChunkCount; ++i) AddChunk(i);
    for (std::uint64_t i = 0; i < kChunkCount; i += way_.range_chunks) AddRange(i);
    StoreBlobs();
  }
  void AddChunk(std::uint64_t i) {
    const auto blob = static_cast<std::uint32_t>(2 * i / kChunkCount);
    const std::uint64_t offset = kFirstOffset + i % (kChunkCount / 2) * kChunkBytes;
    const Box rows{{i * kChunkMatrixRows, 0}, {kChunkMatrixRows, kMatrixColumns}};
    for (std::uint64_t e = 0; e < kChunkMatrixRows * kMatrixColumns; ++e) {
      const float value = ValueAt(i * kChunkMatrixRows + e / kMatrixColumns, e % kMatrixColumns);
      std::memcpy(blobs_[blob].data() + offset + 4 * e, &value, 4);
    }
    const std::size_t first_copy = plan_.copies.size();
    if (const auto part = layout::IntersectBoxes(rows, way_.box)) {
      const bool converts = way_.to != DType::kF32;
      layout::StridedCopy copy = (converts ? layout::ConversionFromLinear : layout::CopyFromLinear)(
          Region::Of(rows), *part, way_.box, way_.strides, 4);
      copy.target_offset_bytes += way_.origin;
      const auto number = static_cast<std::uint32_t>(plan_.converted_parts.size());
      if (converts) plan_.converted_parts.push_back({.conversion = 0, .box = *part});
      plan_.copies.emplace_back(std::move(copy), target_, way_.is_on_device ? 1 : kHostDevice,
                                converts ? number : PlanCopy::kAsStored);
    }
    plan_.chunks.push_back(
        {.blob = blob,
         .record = static_cast<std::uint32_t>(i),
         .offset = offset,
         .stored_size = kChunkBytes,
         .raw_size = kChunkBytes,
         .codec = way_.is_coded ? Codec::kZstd : Codec::kNone,
         .element_size = 4,
         .first_copy = first_copy,
         .copy_count = plan_.copies.size() - first_copy,
         .raw_digest = ComputeDigest(ByteSpan(blobs_[blob]).subspan(offset, kChunkBytes))});
  }
  void AddRange(std::uint64_t first) {
    const PlanChunk& chunk = plan_.chunks[first];
    const bool is_plain = way_.name.starts_with("InPlace") || way_.name.starts_with("Isolated");
    plan_.ranges.push_back({.blob = chunk.blob,
                            .offset = chunk.offset,
                            .size = way_.range_chunks * kChunkBytes,
                            .first_chunk = first,
                            .chunk_count = way_.range_chunks,
                            .in_place = is_plain ? target_ + first * kChunkBytes : nullptr});
  }
  // For devices that read files.
  void StoreBlobs() {
    storage_ = std::make_shared<DescriptorStorage>(MemoryStorage());
    ASSERT_TRUE(storage_->CreateDirectories("d").ok());
    directory_ = storage_->OpenDirectory("d").value();
    for (std::size_t i = 0; i < blobs_.size(); ++i) {
      const auto file = directory_->CreateExclusive(std::to_string(i), {}).value();
      ASSERT_TRUE(file->WriteAt(0, blobs_[i]).ok());
      ASSERT_TRUE(file->Close().ok());
    }
  }
  DeliveryContext context() {
    return {plan_, *pool_, device_,
            [this](std::uint32_t blob) -> Result<std::shared_ptr<const ReadableFile>> {
              SEALPOINT_ASSIGN_OR_RETURN(
                  auto file, directory_->OpenForRead(std::to_string(blob), IoMode::kDirect));
              return std::shared_ptr<const ReadableFile>(std::move(file));
            }};
  }

  // As a load does it. `steps`: see FakeReader.
  Status Run(int steps = -1) {
    FakeReader reader(plan_, blobs_);
    reader.StopAfter(steps);
    switch (way_.route) {
      case Route::kFetched:
        return RunFetched(reader);
      case Route::kNone:
        return RunNone(reader);
      case Route::kReceived:
        return RunReceived(reader);
      case Route::kSent:
        return RunSent(reader);
    }
    return {};
  }
  Status RunFetched(FakeReader& reader) {
    SEALPOINT_ASSIGN_OR_RETURN(
        const auto set, DeliverySet::Open(context(), {.threads = 2,
                                                      .memory_budget_bytes = kMiB,
                                                      .isolates = way_.isolates,
                                                      .verifies_on_device = way_.verifies,
                                                      .reads_directly = way_.reads_directly}));
    for (std::size_t i = 0; i < plan_.ranges.size(); ++i) {
      Delivery& delivery = set->Of(static_cast<int>(i) % set->thread_count());
      SEALPOINT_RETURN_IF_ERROR(reader.Fetch(plan_.ranges[i], delivery));
    }
    SEALPOINT_ASSIGN_OR_RETURN(bytes_, set->Complete());
    return {};
  }
  Status RunNone(FakeReader& reader) {
    Bytes window(plan_.range_pages_max);
    NoDelivery none(window);
    for (const PlanRange& range : plan_.ranges) {
      SEALPOINT_RETURN_IF_ERROR(reader.Fetch(range, none));
    }
    return none.Complete();
  }
  // In two exchanges.
  Status RunReceived(FakeReader& reader) {
    SEALPOINT_ASSIGN_OR_RETURN(const auto delivery, OpenReceived(context(), /*2 rows*/ 512));
    Bytes scratch;
    for (const PlanChunk& chunk : plan_.chunks) {
      const ChunkParts parts = ChunkParts::NeededBy(plan_, chunk);
      Bytes packed(parts.size_bytes());
      parts.Pack(ByteSpan(blobs_[chunk.blob]).subspan(chunk.offset, chunk.raw_size), packed);
      SEALPOINT_RETURN_IF_ERROR(
          reader.At(chunk, DeliverParts(plan_, chunk, parts, packed, scratch, *delivery)));
      std::ranges::fill(packed, std::byte{0x33});
      std::ranges::fill(scratch, std::byte{0x44});
      SEALPOINT_RETURN_IF_ERROR(reader.Step());
      if (chunk.record + 1 == kChunkCount / 2) SEALPOINT_RETURN_IF_ERROR(delivery->Complete());
    }
    return delivery->Complete();
  }
  // To two ranks: all of every chunk to the one, a part of every second chunk to the other. What
  // this rank holds is delivered afterwards.
  Status RunSent(FakeReader& reader) {
    const ChunkParts whole(kChunkBytes);
    const ChunkParts none = ChunkParts::NeededBy(plan_, plan_.chunks[0]);
    messages_ = {Bytes(kChunkCount * kChunkBytes), Bytes(kChunkCount / 2 * none.size_bytes())};
    std::vector<SendDelivery::Chunk> chunks;
    std::vector<SendDelivery::Part> parts;
    std::vector<Bytes> held(way_.is_on_device ? kChunkCount : 0);
    kept_.clear();
    for (std::size_t i = 0; i < kChunkCount; ++i) {
      chunks.push_back({.number = i,
                        .first_part = parts.size(),
                        .part_count = 1 + i % 2,
                        .kept = i + 1 == kChunkCount ? &kept_ : nullptr,
                        .held = held.empty() ? nullptr : &held[i]});
      parts.push_back(
          {&whole, MutableByteSpan(messages_[0]).subspan(i * kChunkBytes, kChunkBytes)});
      if (i % 2 == 0) continue;
      parts.push_back(
          {&none,
           MutableByteSpan(messages_[1]).subspan(i / 2 * none.size_bytes(), none.size_bytes())});
    }
    HostDelivery local(plan_, way_.isolates);
    SendDelivery send(plan_, std::move(chunks), std::move(parts), local);
    for (const PlanRange& range : plan_.ranges) {
      SEALPOINT_RETURN_IF_ERROR(reader.Fetch(range, send));
    }
    if (held.empty()) return {};
    SEALPOINT_ASSIGN_OR_RETURN(const auto delivery, OpenReceived(context(), kMiB));
    for (std::size_t i = 0; i < kChunkCount; ++i) {
      SEALPOINT_RETURN_IF_ERROR(delivery->Begin(plan_.chunks[i], held[i]));
    }
    return delivery->Complete();
  }

  // What the memory must hold: computed element by element.
  Bytes Expected() const {
    Bytes bytes(way_.size, std::byte{0xee});
    if (way_.route == Route::kNone) return bytes;
    for (std::uint64_t row = 0; row < way_.box.extent[0]; ++row) {
      for (std::uint64_t column = 0; column < way_.box.extent[1]; ++column) {
        const float value = ValueAt(way_.box.offset[0] + row, way_.box.offset[1] + column);
        std::byte* const to = bytes.data() + way_.origin +
                              static_cast<std::int64_t>(row) * way_.strides[0] +
                              static_cast<std::int64_t>(column) * way_.strides[1];
        const auto wide = static_cast<double>(value);
        const auto narrow = static_cast<std::int8_t>(value);
        if (way_.to == DType::kF32) std::memcpy(to, &value, 4);
        if (way_.to == DType::kF64) std::memcpy(to, &wide, 8);
        if (way_.to == DType::kInt8) std::memcpy(to, &narrow, 1);
      }
    }
    return bytes;
  }
  Bytes Contents() const {
    if (!way_.is_on_device) return host_memory_;
    const auto contents = device_memory_->contents();
    return {contents.begin(), contents.end()};
  }
  // Nothing writes to the memory any more, and no staging memory is lent.
  void ExpectStill() {
    const Bytes before = Contents();
    if (way_.is_on_device) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(Contents(), before);
    EXPECT_FALSE(pool_->AcquireScratch(kMiB).value().empty());  // waits for what is lent
  }
  void Damage(std::uint64_t i) {
    const PlanChunk& chunk = plan_.chunks[i];
    blobs_[chunk.blob][chunk.offset + 17] ^= std::byte{1};
    StoreBlobs();
  }
  bool is_fetched() const { return way_.route != Route::kReceived; }

  const DeliveryWay way_;
  std::shared_ptr<HostDevice> device_;
  std::unique_ptr<device::StagingPool> pool_;
  DeliveryPlan plan_;
  std::vector<Bytes> blobs_;
  std::shared_ptr<Storage> storage_;
  std::unique_ptr<Directory> directory_;
  Bytes host_memory_;
  std::unique_ptr<DeviceMemory> device_memory_;
  std::byte* target_ = nullptr;
  std::vector<Bytes> messages_;
  Bytes kept_;
  DeviceBytes bytes_;
};

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_TESTS_UNIT_TRANSFER_DELIVERY_FIXTURE_H_
