// SPDX-License-Identifier: Apache-2.0
//
// Collective loads that compare what arrived with the stored fingerprints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/device/host_device.h"
#include "tests/support/device/use_devices.h"
#include "tests/support/ranks/on_own_host.h"
#include "tests/support/state/collective_load_job.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kArrivalRows = 48;
constexpr std::uint64_t kArrivalColumns = 96;
constexpr std::uint64_t kArrivalBytes = kArrivalRows * kArrivalColumns * 4;
const CollectiveLoadOptions kVerified{.verify_arrival = true};

Region TopRows(std::uint64_t begin, std::uint64_t end) {
  return Region::Of({{begin, 0}, {end - begin, kArrivalColumns}});
}
Region SomeColumns(std::uint64_t begin, std::uint64_t end) {
  return Region::Of({{0, begin}, {kArrivalRows, end - begin}});
}

MiniContainer StoredMatrix(bool has_fingerprints = true) {
  MiniSpec spec;
  spec.has_fingerprints = has_fingerprints;
  spec.tensors.push_back(CutTensor("w", DType::kF32, {kArrivalRows, kArrivalColumns},
                                   NoiseBytes(1, kArrivalBytes),
                                   {TopRows(0, 20), TopRows(20, kArrivalRows)}, {0, 1}));
  spec.tensors.push_back(
      CutTensor("scalar", DType::kF64, {}, NoiseBytes(2, 8), {Region::Whole({})}, {0}));
  spec.tensors.push_back({.name = "empty", .shape = {0, 3}});
  return BuildMini(spec);
}

// Flips a bit of the first long message that arrives in an exchange.
class FlippingCommunicator final : public OnOwnHost {
 public:
  using OnOwnHost::OnOwnHost;
  void FlipOnce() { is_flipping_ = true; }

  Result<std::vector<Bytes>> AllToAll(std::vector<Bytes> outgoing) override {
    constexpr std::size_t kLong = 500;  // longer than a request
    auto incoming = OnOwnHost::AllToAll(std::move(outgoing));
    if (!incoming.ok() || !is_flipping_) return incoming;
    for (Bytes& message : *incoming) {
      if (message.size() < kLong || !std::exchange(is_flipping_, false)) continue;
      message[message.size() - 3] ^= std::byte{16};
    }
    return incoming;
  }

 private:
  bool is_flipping_ = false;
};

struct ArrivalJob : CollectiveLoadJob {
  explicit ArrivalJob(Communicator& communicator, bool has_fingerprints = true)
      : CollectiveLoadJob(communicator, StoredMatrix(has_fingerprints)), reader(Open()) {}

  // Returns the part of this rank, if all ranks divide a dimension.
  Region Part(Region (*cut)(std::uint64_t, std::uint64_t), std::uint64_t extent) const {
    return cut(rank() * extent / size(), (rank() + 1) * extent / size());
  }
  Status Load(const Region& region, const LoadContract& contract = LoadContract::Partial(),
              const CollectiveLoadOptions& options = kVerified) {
    bytes.assign(region.element_count() * 4, std::byte{0});
    ReadRequest request;
    request.Add("w", region, MutableMemoryView::Host(bytes));
    return reader->Load(request, contract, options).status();
  }

  Bytes bytes{};
  std::unique_ptr<CollectiveReader> reader;
};

TEST(CollectiveArrivalTest, WhatArrivedInAnyLayoutPasses) {
  OnRanks([](Communicator& comm) {
    ArrivalJob job(comm);
    for (const Region& region :
         {job.Part(TopRows, kArrivalRows), job.Part(SomeColumns, kArrivalColumns),
          Region::Whole({kArrivalRows, kArrivalColumns})}) {
      ASSERT_TRUE(job.Load(region).ok());
      EXPECT_EQ(job.bytes, ExtractRegion(NoiseBytes(1, kArrivalBytes),
                                         {kArrivalRows, kArrivalColumns}, 4, region));
    }
    // Runs, strided memory, a scalar and an empty tensor.
    constexpr std::uint64_t kCount = kArrivalRows * kArrivalColumns;
    Bytes run((job.rank() + 1) * kCount / job.size() * 4 - job.rank() * kCount / job.size() * 4);
    Bytes scalar(8);
    ReadRequest request;
    request.Add("w",
                Region({{0, 0}, {kArrivalRows, kArrivalColumns}},
                       {job.rank() * kCount / job.size(), (job.rank() + 1) * kCount / job.size()}),
                MutableMemoryView::Host(run));
    request.Add("scalar", MutableMemoryView::Host(scalar));
    request.Add("empty", MutableMemoryView::Host(scalar));
    EXPECT_TRUE(job.reader->Load(request, {}, kVerified).ok());
    Bytes columns(kArrivalRows * kArrivalColumns * 4);
    ReadRequest strided;
    strided.Add("w",
                MutableMemoryView::Host(columns, {-4, kArrivalRows * 4}, (kArrivalRows - 1) * 4));
    EXPECT_TRUE(job.reader->Load(strided, LoadContract::Partial(), kVerified).ok());
  });
}

TEST(CollectiveArrivalTest, ABitThatFlipsBetweenRanksIsAnErrorOnAll) {
  OnRanks([](Communicator& comm) {
    FlippingCommunicator flipping(comm);
    ArrivalJob job(flipping);
    const auto load = [&](const Region& region, const CollectiveLoadOptions& options) {
      if (comm.rank() == comm.size() - 1) flipping.FlipOnce();
      return job.Load(region, LoadContract::Partial(), options);
    };
    const Region columns = job.Part(SomeColumns, kArrivalColumns);
    if (comm.size() == 1) return;
    const Status unseen = load(columns, {});
    EXPECT_TRUE(unseen.ok()) << "the flip is not seen without the option";
    const Status error = load(columns, kVerified);
    EXPECT_THAT(error, HasCode(Code::kCorrupt));
    EXPECT_EQ(error.place().tensor, "w");
    EXPECT_THAT(error.message(), HasSubstr("not those stored"));
    const Status replicas = load(Region::Whole({kArrivalRows, kArrivalColumns}), kVerified);
    EXPECT_THAT(replicas, HasCode(Code::kCorrupt));
    const std::string last = std::to_string(comm.size() - 1);
    EXPECT_THAT(replicas.message(),
                HasSubstr("different elements of [0:48, 0:96] after the load: " +
                          (comm.size() == 2 ? "" : last + " against 0, 1")));
    EXPECT_TRUE(job.Load(columns).ok()) << "still in step";
  });
}

TEST(CollectiveArrivalTest, ABitThatFlipsOnTheWayToADeviceIsAnErrorOnAll) {
  OnRanks([](Communicator& comm) {
    ArrivalJob job(comm);
    const auto devices = std::make_shared<HostDevice>();
    UseDevices(job.reader->checkpoint(), devices);
    const Region rows = job.Part(TopRows, kArrivalRows);
    const auto memory = devices->Allocate(0, rows.element_count() * 4);
    ReadRequest request;
    request.Add("w", rows, MutableMemoryView::Cuda(memory->addresses(), 0, nullptr));
    EXPECT_TRUE(job.reader->Load(request, LoadContract::Partial(), kVerified).ok());
    if (comm.rank() == comm.size() - 1) devices->FlipBitInCopy(1);
    const Status error = job.reader->Load(request, LoadContract::Partial(), kVerified).status();
    EXPECT_THAT(error, HasCode(Code::kCorrupt));
    EXPECT_EQ(error.place().tensor, "w");
  });
}

TEST(CollectiveArrivalTest, WhatCannotBeComparedIsRefusedBeforeItIsRead) {
  OnRanks([](Communicator& comm) {
    ArrivalJob plain(comm, false);
    const Status without = plain.Load(Region::Whole({kArrivalRows, kArrivalColumns}));
    EXPECT_THAT(without, HasCode(Code::kUnsupported));
    EXPECT_THAT(without.message(), HasSubstr("no stored fingerprint"));
    ArrivalJob job(comm);
    const Status some = job.Load(TopRows(0, 40));
    EXPECT_THAT(some, HasCode(Code::kUnsupported));
    EXPECT_THAT(some.message(), HasSubstr("4608 elements once"));
    // As many elements as the tensor has, some of them twice.
    if (comm.size() == 2) {
      EXPECT_THAT(job.Load(comm.rank() == 0 ? TopRows(0, 24) : TopRows(10, 34)),
                  HasCode(Code::kUnsupported));
    }
    // All elements, some of them in two regions.
    if (comm.size() > 1) {
      const Region whole = Region::Whole({kArrivalRows, kArrivalColumns});
      EXPECT_THAT(job.Load(comm.rank() == 0 ? whole : TopRows(0, 24)), HasCode(Code::kUnsupported));
    }
    Bytes bytes(kArrivalBytes * 2);
    ReadRequest request;
    request.Add("w", MutableMemoryView::Host(bytes));
    request.items[0].convert = Conversion{DType::kF64};
    EXPECT_THAT(job.reader->Load(request, LoadContract::Partial(), kVerified).status().message(),
                HasSubstr("converts"));
    bytes.resize(kArrivalBytes / 2);
    ReadRequest stepped;
    stepped.Add("w", MutableMemoryView::Host(bytes));
    stepped.items[0].steps = {2, 1};
    EXPECT_THAT(job.reader->Load(stepped, LoadContract::Partial(), kVerified).status().message(),
                HasSubstr("steps"));
    EXPECT_EQ(job.PayloadRead() + plain.PayloadRead(), 0u);
    EXPECT_TRUE(job.Load(job.Part(TopRows, kArrivalRows)).ok());
  });
}

TEST(CollectiveArrivalTest, ARankWithoutTheOptionIsNamed) {
  OnRanks([](Communicator& comm) {
    if (comm.size() == 1) return;
    ArrivalJob job(comm);
    const CollectiveLoadOptions options{.verify_arrival = comm.rank() != 0};
    const Status error =
        job.Load(job.Part(TopRows, kArrivalRows), LoadContract::Partial(), options);
    EXPECT_THAT(error, HasCode(Code::kInvalidArgument));
    EXPECT_THAT(error.message(), HasSubstr("verify_arrival"));
  });
}

}  // namespace
}  // namespace sealpoint::testing
