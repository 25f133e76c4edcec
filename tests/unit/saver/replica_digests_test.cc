// SPDX-License-Identifier: Apache-2.0
//
// What ranks compare must not depend on where and how they hold it.
#include "lib/saver/replica_digests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "lib/base/internal_access.h"
#include "lib/saver/compare_replicas.h"
#include "sealpoint/digest.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/device/host_device.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/save_in_mode.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kRowCount = 250;
constexpr std::uint64_t kRowBytes = 60;
constexpr std::uint64_t kPitchBytes = 71;
constexpr std::uint64_t kAllBytes = kRowCount * kRowBytes;

Declaration OneTensor() {
  Declaration declaration;
  declaration
      .Add({.tensor = {.name = "t",
                       .dtype = DType::kUInt8,
                       .shape = {kRowCount, kRowBytes},
                       .chunk_size_bytes = kChunkSizeMinBytes}})
      .value();
  return declaration;
}

// One tensor on one rank.
struct Holder {
  Holder() { Use(HostDeviceOptions()); }

  void Use(HostDeviceOptions options) {
    device = std::make_shared<HostDevice>(options);
    engine = SmallEngine(MemoryStorage());
    InternalAccess::PartsOf(*engine).device = device;
  }

  Digest Of(const MemoryView& view) {
    Sources sources(declaration);
    EXPECT_TRUE(sources.Bind("t", view).ok());
    const std::vector<std::size_t> slots = {0};
    return internal::saver::DigestSlots(InternalAccess::PartsOf(*engine), sources, slots)
        .value()
        .at(0);
  }

  // The same content, with gaps between the rows.
  Bytes Wide() const {
    Bytes wide(kRowCount * kPitchBytes, std::byte{0x77});
    for (std::size_t row = 0; row < kRowCount; ++row) {
      std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(row * kRowBytes), kRowBytes,
                  wide.begin() + static_cast<std::ptrdiff_t>(row * kPitchBytes));
    }
    return wide;
  }

  std::unique_ptr<DeviceMemory> OnDevice(const Bytes& bytes) {
    auto memory = device->Allocate(0, bytes.size());
    std::copy(bytes.begin(), bytes.end(), memory->contents().begin());
    return memory;
  }

  const Declaration declaration = OneTensor();
  const Bytes content = NoiseBytes(7, kAllBytes);
  const std::vector<std::int64_t> strides = {kPitchBytes, 1};
  std::shared_ptr<HostDevice> device;
  std::unique_ptr<Engine> engine;
};

class ReplicaDigestsTest : public ::testing::Test, protected Holder {};

// As the specification says: of the digests of the chunks.
TEST_F(ReplicaDigestsTest, IsThatOfTheDigestsOfTheChunks) {
  std::vector<Digest> chunks;
  for (std::size_t at = 0; at < content.size(); at += kChunkSizeMinBytes) {
    const std::size_t size = std::min<std::size_t>(kChunkSizeMinBytes, content.size() - at);
    chunks.push_back(ComputeDigest(ByteSpan(content).subspan(at, size)));
  }
  EXPECT_EQ(Of(MemoryView::Host(content)), ComputeDigest(std::as_bytes(std::span(chunks))));
}

TEST_F(ReplicaDigestsTest, OfStridedMemoryIsThatOfDenseMemory) {
  const Bytes wide = Wide();
  EXPECT_EQ(Of(MemoryView::Host(wide, strides)), Of(MemoryView::Host(content)));
}

TEST_F(ReplicaDigestsTest, OfADeviceIsThatOfTheHost) {
  for (const bool has_kernels : {true, false}) {
    Use({.has_kernels = has_kernels});
    const auto dense = OnDevice(content);
    const auto wide = OnDevice(Wide());
    EXPECT_EQ(Of(MemoryView::Cuda(dense->addresses(), 0, nullptr)), Of(MemoryView::Host(content)));
    EXPECT_EQ(device->counters().digests > 0, has_kernels);
    EXPECT_EQ(Of(MemoryView::Cuda(wide->addresses(), 0, nullptr, strides)),
              Of(MemoryView::Host(content)));
  }
}

// Also if the caller's stream is still writing the content when the ranks begin to compare.
TEST_F(ReplicaDigestsTest, OfADeviceIsTakenBehindTheCallersStream) {
  for (const bool has_kernels : {true, false}) {
    Use({.has_kernels = has_kernels});
    const auto memory = OnDevice(Bytes(content.size()));
    const auto stream = device->MakeStream();
    stream->Run([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      std::copy(content.begin(), content.end(), memory->contents().begin());
    });
    EXPECT_EQ(Of(MemoryView::Cuda(memory->addresses(), 0, stream.get())),
              Of(MemoryView::Host(content)));
  }
}

TEST(CompareReplicasTest, ADigestThatFailsOnOneRankFailsOnAll) {
  WithRanks(2, [](Communicator& comm) {
    Holder holder;
    const auto memory = holder.OnDevice(holder.content);
    if (comm.rank() == 1) holder.device->LoseDevice(0);
    Sources sources(holder.declaration);
    ASSERT_TRUE(sources.Bind("t", MemoryView::Cuda(memory->addresses(), 0, nullptr)).ok());
    const Status compared = internal::saver::CompareReplicas(
        comm, InternalAccess::PartsOf(*holder.engine), sources, {{{0, 1}, {.slots = {0}}}});
    EXPECT_THAT(compared, HasCode(Code::kDevice)) << comm.rank();
    EXPECT_EQ(compared.place().rank, 1);
  });
}

TEST_F(ReplicaDigestsTest, EachByteCounts) {
  Bytes other = content;
  const Digest whole = Of(MemoryView::Host(content));
  for (const std::size_t at : {std::size_t{0}, other.size() / 2, other.size() - 1}) {
    other[at] ^= std::byte{0x80};
    EXPECT_NE(Of(MemoryView::Host(other)), whole) << at;
    other[at] ^= std::byte{0x80};
  }
}

}  // namespace
}  // namespace sealpoint::testing
