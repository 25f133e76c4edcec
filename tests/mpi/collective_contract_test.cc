// SPDX-License-Identifier: Apache-2.0
//
// What one rank cannot have fails on all ranks alike, and all are in step afterwards.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/collective_load_job.h"
#include "tests/support/mini_container.h"
#include "tests/support/saved_state.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kElements = 20000;  // of f32: 20 chunks
constexpr std::uint64_t kOdd = 12345;       // element with a value of its own

// "numbers" in two blobs: element i is i mod 100, but for one. "flag" and "other" are one element.
const MiniContainer& Stored() {
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
struct NumbersWish {
  std::uint64_t begin;
  std::vector<T> memory;

  NumbersWish(std::uint64_t first, std::uint64_t end) : begin(first), memory(end - first) {}
  void AddTo(ReadRequest& request, const Conversion& conversion) {
    request.Add("numbers", Slice(begin, begin + memory.size()),
                MemoryView::MutableHost(memory.data()));
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
    CollectiveLoadJob job(comm, Stored());
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    // The same elements in one dtype on even and in another on odd ranks.
    NumbersWish<double> wide(100, 12000);
    NumbersWish<std::int8_t> narrow(5000, 12000);
    ReadRequest request;
    if (comm.rank() % 2 == 0) {
      wide.AddTo(request, {DType::kF64});
    } else {
      narrow.AddTo(request, {DType::kInt8});
    }
    const auto report =
        reader->Load(request, LoadContract::Partial(), {.memory_budget_bytes = 40000});
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    EXPECT_EQ(report->all_bytes_read, report->all_bytes_wanted);
    if (comm.rank() % 2 == 0) {
      wide.Expect();
    } else {
      narrow.Expect();
    }
  });
}

TEST(CollectiveConversionTest, AnElementWithoutCounterpartFailsOnAllAndIsNamed) {
  OnRanks([](Communicator& comm) {
    CollectiveLoadJob job(comm, Stored());
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    const int last = comm.size() - 1;
    NumbersWish<std::int32_t> whole(0, comm.rank() == last ? kElements : kOdd);
    ReadRequest request;
    whole.AddTo(request, {DType::kInt32});
    // Rounds of few chunks: the others meet the error in the middle of the load.
    const Status error =
        reader->Load(request, LoadContract::Partial(), {.memory_budget_bytes = 40000}).error();
    EXPECT_THAT(error, HasCode(Code::kMismatch));
    EXPECT_EQ(error.message(),
              "element [12345] of region [0:20000]: the f32 value 100000.5 is no i32");
    EXPECT_EQ(error.place().rank, last);
    EXPECT_EQ(error.place().tensor, "numbers");
    EXPECT_EQ(error.place().path, "c/" + job.container.blobs.at(1).name);
    EXPECT_EQ(error.place().offset,
              job.container.blobs.at(1).records[0].offset + 4 * (kOdd - 9000));
    EXPECT_TRUE(reader->Load({}, LoadContract::Partial()).ok());  // still in step
  });
}

}  // namespace
}  // namespace sealpoint::testing
