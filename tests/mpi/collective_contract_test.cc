// SPDX-License-Identifier: Apache-2.0
//
// What one rank cannot have fails on all ranks alike, and all are in step afterwards.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/container/mini_container.h"
#include "tests/support/state/collective_load_job.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kElements = 20000;  // of f32: 20 chunks
constexpr std::uint64_t kOdd = 12345;       // element with a value of its own

// "numbers" in two blobs: element i is i mod 100, but for one. "flag" and "other" are one element.
const MiniContainer& NumbersContainer() {
  static const MiniContainer container = [] {
    std::vector<float> values(kElements);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 100);
    values[kOdd] = 100000.5f;
    Bytes bytes(4 * kElements);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    MiniSpec spec;
    spec.tensors.push_back(CutTensor("numbers", DType::kF32, {kElements}, bytes,
                                     {Slice(0, 9000), Slice(9000, kElements)}, {0, 1}));
    spec.tensors.push_back(
        CutTensor("flag", DType::kBool, {}, {std::byte{1}}, {Region::Whole({})}, {0}));
    return BuildMini(spec);
  }();
  return container;
}

// [begin, end) of "numbers" in another dtype.
template <typename T>
struct NumbersSlice {
  std::uint64_t begin;
  std::vector<T> memory;

  NumbersSlice(std::uint64_t first, std::uint64_t end) : begin(first), memory(end - first) {}
  void AddTo(ReadRequest& request, const Conversion& conversion) {
    request.Add("numbers", Slice(begin, begin + memory.size()), MutableMemoryView::Host(memory));
    request.items.back().convert = conversion;
  }
  void Expect() const {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      if (begin + i == kOdd) continue;
      ASSERT_EQ(memory[i], static_cast<T>((begin + i) % 100)) << i;
    }
  }
};

TEST(CollectiveConversionTest, EachRankConvertsWhatItGets) {
  OnRanks([](Communicator& comm) {
    CollectiveLoadJob job(comm, NumbersContainer());
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    // The same elements in one dtype on even and in another on odd ranks.
    NumbersSlice<double> wide(100, 12000);
    NumbersSlice<std::int8_t> narrow(5000, 12000);
    ReadRequest request;
    if (comm.rank() % 2 == 0) {
      wide.AddTo(request, {DType::kF64});
    } else {
      narrow.AddTo(request, {DType::kInt8});
    }
    const auto report =
        reader->Load(request, LoadContract::Partial(), {.memory_budget_bytes = 40000});
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    EXPECT_EQ(report->all_bytes_read, report->all_bytes_requested);
    if (comm.rank() % 2 == 0) {
      wide.Expect();
    } else {
      narrow.Expect();
    }
  });
}

TEST(CollectiveConversionTest, AnElementWithoutCounterpartFailsOnAllAndIsNamed) {
  OnRanks([](Communicator& comm) {
    CollectiveLoadJob job(comm, NumbersContainer());
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    const int last = comm.size() - 1;
    NumbersSlice<std::int32_t> whole(0, comm.rank() == last ? kElements : kOdd);
    ReadRequest request;
    whole.AddTo(request, {DType::kInt32});
    // CollectiveLoad of few chunks: the others meet the error in the middle of the load.
    const Status error =
        reader->Load(request, LoadContract::Partial(), {.memory_budget_bytes = 40000}).error();
    EXPECT_THAT(error, HasCode(Code::kMismatch));
    EXPECT_EQ(error.message(),
              "element [12345] of region [0:20000]: the f32 value 100000.5 has no i32 counterpart");
    EXPECT_EQ(error.place().rank, last);
    EXPECT_EQ(error.place().tensor, "numbers");
    EXPECT_EQ(error.place().path, "c/" + job.container.blobs.at(1).name);
    EXPECT_EQ(error.place().offset,
              job.container.blobs.at(1).records[0].offset + 4 * (kOdd - 9000));
    EXPECT_TRUE(reader->Load({}, LoadContract::Partial()).ok());  // still in step
  });
}

// The error of all ranks where the last one wants something else.
Status ErrorOfLastRank(CollectiveReader& reader, Communicator& comm, const ReadItem& item,
                       LoadContract contract = LoadContract::Partial()) {
  ReadRequest request;
  if (comm.rank() == comm.size() - 1) request.items.push_back(item);
  Status error = reader.Load(request, contract).status();
  EXPECT_TRUE(reader.Load({}, LoadContract::Partial()).ok());  // still in step
  return error;
}

TEST(CollectiveMismatchTest, OneRanksDifferenceIsTheErrorOfAllAndNamesTheRank) {
  OnRanks([](Communicator& comm) {
    CollectiveLoadJob job(comm, NumbersContainer());
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    std::vector<float> memory(kElements);
    const ReadItem good{.tensor = "numbers",
                        .region = Slice(3, 7),
                        .destination = MutableMemoryView::Host(std::span(memory).first(4))};
    const auto expect = [&](const ReadItem& item, const std::string& message) {
      const Status error = ErrorOfLastRank(*reader, comm, item);
      EXPECT_THAT(error, HasCode(Code::kMismatch));
      EXPECT_EQ(error.message(), message);
      EXPECT_EQ(error.place().tensor, item.tensor);
      EXPECT_EQ(error.place().path, "c");
      EXPECT_EQ(error.place().rank, comm.size() - 1);
      EXPECT_FALSE(error.place().host.empty());
    };
    ReadItem item = good;
    item.tensor = "absent";
    expect(item, "not in the checkpoint; requested is region [3:7]");
    item = good;
    item.dtype = DType::kInt32;
    expect(item, "stored as f32, requested as i32, region [3:7]");
    item = good;
    item.shape = Shape{5};
    expect(item, "stored with shape [20000], requested with [5], region [3:7]");
    item = good;
    item.convert = Conversion{DType::kBool};
    expect(item, "stored as f32, which does not convert to bool, region [3:7]");
  });
}

TEST(CollectiveMismatchTest, WhatNoRankWantsIsNoRanksFaultAndTheSameOnAll) {
  OnRanks([](Communicator& comm) {
    CollectiveLoadJob job(comm, NumbersContainer());
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    // Both tensors are checked by other ranks than one if there are two.
    const Status unexpected = reader->Load({}).status();
    EXPECT_EQ(unexpected.message(),
              "the stored tensor of shape [] and dtype bool is requested by no rank "
              "(LoadContract::Partial() allows that); and 1 more difference");
    EXPECT_EQ(unexpected.place().tensor, "flag");
    EXPECT_EQ(unexpected.place().path, "c");
    EXPECT_FALSE(unexpected.place().rank.has_value());

    std::vector<float> memory(kElements);
    ReadRequest request;
    request.Add("numbers", Slice(0, 19000),
                MutableMemoryView::Host(std::span(memory).first(19000)));
    const Status uncovered =
        reader->Load(request, {.unexpected = OnMismatch::kAllow, .coverage = OnMismatch::kError})
            .status();
    EXPECT_EQ(uncovered.message(),
              "1000 elements of shape [20000] are requested by no rank, such as region "
              "[19000:20000]");
    EXPECT_EQ(uncovered.place().tensor, "numbers");
    EXPECT_TRUE(reader->Load({}, LoadContract::Partial()).ok());
  });
}

TEST(CollectiveMismatchTest, ReportsOfAllRanksReachAll) {
  OnRanks([](Communicator& comm) {
    CollectiveLoadJob job(comm, NumbersContainer());
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    std::vector<float> memory(1);
    ReadRequest request;
    request.items.push_back({.tensor = "absent " + std::to_string(comm.rank()),
                             .destination = MutableMemoryView::Host(memory)});
    const auto report =
        reader->Load(request, {.missing = OnMismatch::kReport, .unexpected = OnMismatch::kAllow});
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    EXPECT_EQ(report->findings.size(), static_cast<std::size_t>(comm.size()));
  });
}

}  // namespace
}  // namespace sealpoint::testing
