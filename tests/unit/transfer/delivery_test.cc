// SPDX-License-Identifier: Apache-2.0
//
// Every way from the chunks of a file into memory: what arrives, what an error leaves, what an end
// anywhere leaves.
#include <gmock/gmock.h>

#include "tests/unit/transfer/delivery_fixture.h"

namespace sealpoint::internal::transfer {
namespace {

using ::testing::HasSubstr;

TEST_P(DeliveryTest, BringsWhatTheChunksHold) {
  const Status status = Run();
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(Contents(), Expected());
  ExpectStill();
  const bool is_checked = way_.verifies || way_.reads_directly;
  EXPECT_EQ(bytes_.verified, is_checked ? kMatrixRows * kMatrixColumns * 4 : 0);
  EXPECT_EQ(bytes_.read_directly, way_.reads_directly ? kMatrixRows * kMatrixColumns * 4 : 0);
  EXPECT_EQ(device_->counters().bytes_pageable, 0u);
  // One queued copy for each chunk, whatever the order of the dimensions.
  if (way_.route == Route::kFetched && way_.is_on_device && way_.range_chunks == 2) {
    EXPECT_EQ(device_->counters().copies, way_.reads_directly ? 0 : kChunkCount);
  }
  if (way_.route != Route::kSent) return;
  Bytes all;
  Bytes some;
  const ChunkParts parts = ChunkParts::NeededBy(plan_, plan_.chunks[0]);
  for (const PlanChunk& chunk : plan_.chunks) {
    const ByteSpan raw = ByteSpan(blobs_[chunk.blob]).subspan(chunk.offset, kChunkBytes);
    all.insert(all.end(), raw.begin(), raw.end());
    if (chunk.record % 2 == 0) continue;
    Bytes packed(parts.size_bytes());
    parts.Pack(raw, packed);
    some.insert(some.end(), packed.begin(), packed.end());
  }
  EXPECT_EQ(messages_[0], all);
  EXPECT_EQ(messages_[1], some);
  EXPECT_EQ(kept_, Bytes(all.end() - kChunkBytes, all.end()));
}

// What the caller queued before the call must not win.
TEST_P(DeliveryTest, WorkOfTheCallersStreamComesFirst) {
  if (!way_.is_on_device) return;
  const auto stream = device_->MakeStream();
  plan_.streams[0].stream = stream.get();
  for (int i = 0; i < 20; ++i) {
    stream->Run([contents = device_memory_->contents()] {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      std::ranges::fill(contents, std::byte{0xee});
    });
  }
  const Status status = Run();
  ASSERT_TRUE(status.ok()) << status.ToString();
  stream->Wait();
  EXPECT_EQ(Contents(), Expected());
}

TEST_P(DeliveryTest, MemoryThatCannotBePinnedDoesToo) {
  device_->RefusePins();
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(Contents(), Expected());
}

TEST_P(DeliveryTest, MayEndAnywhere) {
  int steps = 0;
  for (;; ++steps) {
    const Status status = Run(steps);
    ExpectStill();
    if (status.ok()) break;
    EXPECT_EQ(status.code(), Code::kCancelled) << steps << ": " << status.ToString();
    Renew();
  }
  EXPECT_GE(steps, 4);
}

// Directly read bytes are those of the destination before they are verified, as are those read in
// place. All others stay away.
TEST_P(DeliveryTest, ADamagedChunkIsTheErrorAndDoesNotArrive) {
  if (!is_fetched()) return;
  for (std::uint64_t i = 0; i < kChunkCount; i += 3) {
    Renew();
    Damage(i);
    const Status status = Run();
    EXPECT_EQ(status.code(), Code::kCorrupt) << status.ToString();
    EXPECT_EQ(status.place().tensor, "w");
    EXPECT_EQ(status.place().path, std::to_string(plan_.chunks[i].blob));
    EXPECT_EQ(status.place().offset, plan_.chunks[i].offset);
    ExpectStill();
    if (way_.reads_directly || (plan_.ranges[0].in_place != nullptr && !way_.isolates)) continue;
    const Bytes expected = Expected();
    const Bytes found = Contents();
    std::uint64_t arrived = 0;
    for (std::size_t at = 0; at < found.size(); ++at) {
      ASSERT_TRUE(found[at] == expected[at] || found[at] == std::byte{0xee}) << at;
      if (found[at] == expected[at] && expected[at] != std::byte{0xee}) ++arrived;
    }
    const auto whole = static_cast<std::uint64_t>(
        std::ranges::count_if(expected, [](std::byte b) { return b != std::byte{0xee}; }));
    if (whole != 0) {
      EXPECT_LT(arrived, whole);
    }
  }
}

TEST_P(DeliveryTest, AnElementThatDoesNotConvertIsNamed) {
  if (way_.to != DType::kInt8) return;
  const PlanChunk& chunk = plan_.chunks[5];
  constexpr std::uint64_t kElement = 7 * kMatrixColumns + 41;
  const float value = 200;
  std::memcpy(blobs_[chunk.blob].data() + chunk.offset + 4 * kElement, &value, 4);
  plan_.chunks[5].raw_digest =
      ComputeDigest(ByteSpan(blobs_[chunk.blob]).subspan(chunk.offset, kChunkBytes));
  const Status status = Run();
  EXPECT_EQ(status.code(), Code::kMismatch);
  EXPECT_THAT(status.message(), HasSubstr("element [87, 41] of region"));
  EXPECT_EQ(status.place().tensor, "w");
  const std::uint64_t in_chunk = way_.is_coded ? 0 : 4 * kElement;
  EXPECT_EQ(status.place().offset, chunk.offset + in_chunk);
  ExpectStill();
}

TEST_P(DeliveryTest, AnyFailureOfTheDeviceIsTheError) {
  if (!way_.is_on_device || way_.reads_directly) return;
  const std::vector<std::function<void(std::uint64_t)>> failures = {
      [this](std::uint64_t nth) { device_->FailCopyWhenQueued(nth); },
      [this](std::uint64_t nth) { device_->FailCopyWhenRun(nth); },
      [this](std::uint64_t nth) { device_->FailMark(nth); }};
  ASSERT_TRUE(Run().ok());
  const std::uint64_t copies = device_->counters().copies;
  const std::uint64_t marks = device_->counters().marks;
  for (std::size_t kind = 0; kind < failures.size(); ++kind) {
    const std::uint64_t count = kind == 2 ? marks : copies;
    for (std::uint64_t nth = 1; nth <= count; nth += std::max<std::uint64_t>(1, count / 9)) {
      Renew();
      failures[kind](nth);
      const Status status = Run();
      EXPECT_EQ(status.code(), Code::kDevice) << kind << ", " << nth << ": " << status.ToString();
      EXPECT_EQ(status.place().tensor, "w");
      ExpectStill();
    }
  }
}

TEST_P(DeliveryTest, ADeviceThatIsNotThereIsTheErrorBeforeAnythingIsFetched) {
  if (!way_.is_on_device || way_.route == Route::kSent) return;
  plan_.streams[0].device = 7;
  const Status status = Run(/*steps=*/0);
  EXPECT_EQ(status.code(), Code::kDevice);
  EXPECT_EQ(status.place().tensor, "w");
}

TEST_P(DeliveryTest, ABitThatTheLinkFlippedIsFoundByTheDevice) {
  if (!way_.verifies && !way_.reads_directly) return;
  for (std::uint64_t nth = 1; nth <= (way_.reads_directly ? 4 : kChunkCount); ++nth) {
    Renew();
    way_.reads_directly ? device_->files().FlipBitInRead(nth) : device_->FlipBitInCopy(nth);
    const Status status = Run();
    EXPECT_EQ(status.code(), Code::kDevice) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("device copy corrupted"));
    EXPECT_EQ(status.place().tensor, "w");
    const PlanChunk& chunk = plan_.chunks[(nth - 1) * (way_.reads_directly ? 2 : 1)];
    EXPECT_EQ(status.place().path, std::to_string(chunk.blob));
    EXPECT_EQ(status.place().offset, chunk.offset);
    ExpectStill();
  }
}

TEST_P(DeliveryTest, AFailedReadOfADeviceIsTheErrorUnlessItIsRefused) {
  if (!way_.reads_directly) return;
  for (std::uint64_t nth = 1; nth <= 4; ++nth) {
    Renew();
    device_->files().FailRead(nth, MakeError(Code::kIo, "injected"));
    const Status failed = Run();
    EXPECT_EQ(failed.code(), Code::kIo);
    EXPECT_EQ(failed.place().offset, plan_.chunks[2 * nth - 2].offset + kChunkBytes);  // half
    ExpectStill();
    Renew();
    device_->files().FailRead(nth, MakeError(Code::kUnsupported, "not this way"));
    ASSERT_TRUE(Run().ok());
    EXPECT_EQ(Contents(), Expected());
    // What is left of the blob is read by the host.
    EXPECT_EQ(device_->files().reads(), nth % 2 == 1 ? 3u : 4u);
    EXPECT_EQ(bytes_.read_directly, (nth % 2 == 1 ? 2u : 3u) * 2 * kChunkBytes);
  }
  EXPECT_EQ(device_->files().open_now(), 0u);
}

constexpr std::int64_t kTall = 150 * 4;  // bytes from column to column, transposed

INSTANTIATE_TEST_SUITE_P(
    , DeliveryTest,
    ::testing::Values(
        DeliveryWay{.name = "InPlace"}, DeliveryWay{.name = "Isolated", .isolates = true},
        DeliveryWay{.name = "Copied"}, DeliveryWay{.name = "CopiedOfDecoded", .is_coded = true},
        DeliveryWay{.name = "Scattered", .strides = {280, 4}, .size = kMatrixRows * 280},
        DeliveryWay{.name = "ScatteredBackwards",
                    .box = {{7, 3}, {100, 21}},
                    .strides = {-84, 4},
                    .origin = 99 * 84,
                    .size = 100 * 84},
        DeliveryWay{.name = "Converted",
                    .strides = {kMatrixColumns * 8, 8},
                    .size = kMatrixRows * kMatrixColumns * 8,
                    .to = DType::kF64},
        DeliveryWay{.name = "ConvertedTransposed",
                    .strides = {1, 130},
                    .size = 130 * kMatrixColumns,
                    .to = DType::kInt8},
        DeliveryWay{.name = "ConvertedOfDecoded",
                    .strides = {kMatrixColumns, 1},
                    .size = kMatrixRows * kMatrixColumns,
                    .to = DType::kInt8,
                    .is_coded = true},
        DeliveryWay{.name = "None", .route = Route::kNone},
        DeliveryWay{.name = "Received", .route = Route::kReceived},
        DeliveryWay{.name = "ReceivedInParts",
                    .route = Route::kReceived,
                    .box = {{0, 5}, {kMatrixRows, 9}},
                    .strides = {36, 4},
                    .size = kMatrixRows * 36},
        DeliveryWay{.name = "ReceivedAndConverted",
                    .route = Route::kReceived,
                    .box = {{0, 5}, {kMatrixRows, 9}},
                    .strides = {72, 8},
                    .size = kMatrixRows * 72,
                    .to = DType::kF64},
        DeliveryWay{.name = "Sent", .route = Route::kSent},
        DeliveryWay{.name = "InPlaceAndSent", .route = Route::kSent},
        DeliveryWay{.name = "SentInParts",
                    .route = Route::kSent,
                    .box = {{0, 5}, {kMatrixRows, 9}},
                    .strides = {36, 4},
                    .size = kMatrixRows * 36},
        DeliveryWay{.name = "SentAndHeld", .route = Route::kSent, .is_on_device = true},
        DeliveryWay{.name = "ReceivedToDevice",
                    .route = Route::kReceived,
                    .is_on_device = true,
                    .box = {{0, 5}, {kMatrixRows, 40}},
                    .strides = {160, 4},
                    .size = kMatrixRows * 160},
        DeliveryWay{.name = "ToDevice", .is_on_device = true},
        DeliveryWay{.name = "ToDeviceOfDecoded", .is_on_device = true, .is_coded = true},
        DeliveryWay{.name = "ToDeviceScattered",
                    .is_on_device = true,
                    .strides = {280, 4},
                    .size = kMatrixRows * 280},
        DeliveryWay{.name = "ToDeviceTransposed",
                    .is_on_device = true,
                    .strides = {-4, kTall},
                    .origin = 127 * 4,
                    .size = kTall * kMatrixColumns},
        DeliveryWay{.name = "ToDeviceConverted",
                    .is_on_device = true,
                    .strides = {1, 130},
                    .size = 130 * kMatrixColumns,
                    .to = DType::kInt8},
        DeliveryWay{.name = "ToDeviceConvertedInParts",
                    .is_on_device = true,
                    .strides = {kMatrixColumns * 8, 8},
                    .size = kMatrixRows * kMatrixColumns * 8,
                    .to = DType::kF64,
                    .range_chunks = 1},
        DeliveryWay{.name = "ToDeviceChecked", .is_on_device = true, .verifies = true},
        DeliveryWay{.name = "ToDeviceOfDecodedChecked",
                    .is_on_device = true,
                    .is_coded = true,
                    .verifies = true},
        DeliveryWay{.name = "Direct", .is_on_device = true, .reads_directly = true}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace sealpoint::internal::transfer
