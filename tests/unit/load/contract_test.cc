// SPDX-License-Identifier: Apache-2.0
#include "readers/load/coverage.h"
#include "tests/unit/load/load_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = LoadFinding::Kind;

// Tensors "a" and "b" of shape [4, 4], f32.
class ContractTest : public LoadFixture {
 protected:
  void SetUp() override {
    MiniSpec spec;
    for (const char* name : {"a", "b"}) {
      spec.tensors.push_back(
          CutTensor(name, DType::kF32, {4, 4}, NoiseBytes(1, 64), {Region::Whole({4, 4})}));
    }
    Open(spec);
  }
  ReadItem Item(const std::string& name) {
    return {.tensor = name, .destination = MutableMemoryView::Host(out_)};
  }
  Result<LoadReport> Load(const ReadItem& item, const LoadContract& contract) {
    ReadRequest request;
    request.items.push_back(item);
    return checkpoint_->Load(request, contract);
  }

  Bytes out_ = Bytes(64, std::byte{0xee});
};

TEST_F(ContractTest, MissingTensor) {
  const Status error = Load(Item("c"), LoadContract::Partial()).status();
  EXPECT_EQ(error.code(), Code::kMismatch);
  EXPECT_EQ(error.place().tensor, "c");
  LoadContract contract = LoadContract::Partial();
  contract.missing = OnMismatch::kReport;
  const LoadReport report = Load(Item("c"), contract).value();
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].kind, Kind::kMissing);
  EXPECT_EQ(report.findings[0].tensor, "c");
  EXPECT_THAT(out_, Each(std::byte{0xee}));
  contract.missing = OnMismatch::kAllow;
  EXPECT_THAT(Load(Item("c"), contract).value().findings, IsEmpty());
}

TEST_F(ContractTest, UnexpectedTensor) {
  const Status error = Load(Item("a"), {}).status();
  EXPECT_EQ(error.code(), Code::kMismatch);
  EXPECT_EQ(error.place().tensor, "b");
  EXPECT_THAT(checkpoint_->Load({}).status().message(), HasSubstr("1 more difference"));
  const LoadReport report = Load(Item("a"), {.unexpected = OnMismatch::kReport}).value();
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].kind, Kind::kUnexpected);
  EXPECT_TRUE(Load(Item("a"), LoadContract::Partial()).ok());
}

TEST_F(ContractTest, ErrorComesBeforeAnyByteIsRead) {
  EXPECT_FALSE(Load(Item("a"), {}).ok());
  EXPECT_THAT(storage_->log().reads, IsEmpty());
}

TEST_F(ContractTest, OtherDTypeOfTheSameSize) {
  ReadItem item = Item("a");
  item.dtype = DType::kInt32;
  const Status error = Load(item, LoadContract::Partial()).status();
  EXPECT_EQ(error.code(), Code::kMismatch);
  EXPECT_THAT(error.message(), HasSubstr("stored as f32, requested as i"));
  LoadContract contract = LoadContract::Partial();
  contract.dtype = OnMismatch::kReport;
  EXPECT_EQ(Load(item, contract).value().findings.at(0).kind, Kind::kDType);
  EXPECT_EQ(Bytes(out_.begin(), out_.begin() + 64), NoiseBytes(1, 64));
}

TEST_F(ContractTest, DTypeOfAnotherSizeIsAlwaysAnError) {
  ReadItem item = Item("a");
  item.dtype = DType::kF64;
  LoadContract contract = LoadContract::Partial();
  contract.dtype = OnMismatch::kAllow;
  EXPECT_EQ(Load(item, contract).status().code(), Code::kMismatch);
  item.dtype = DType::kF32;
  EXPECT_TRUE(Load(item, LoadContract::Partial()).ok());
}

TEST_F(ContractTest, OtherShapeReadsTheRegion) {
  ReadItem item = Item("a");
  item.shape = Shape{4, 8};
  item.region = Region::Of({{1, 0}, {1, 4}});
  item.destination.size_bytes = 16;
  EXPECT_EQ(Load(item, LoadContract::Partial()).status().code(), Code::kMismatch);
  LoadContract contract = LoadContract::Partial();
  contract.shape = OnMismatch::kReport;
  EXPECT_EQ(Load(item, contract).value().findings.at(0).kind, Kind::kShape);
  const Bytes all = NoiseBytes(1, 64);
  EXPECT_EQ(Bytes(out_.begin(), out_.begin() + 16), Bytes(all.begin() + 16, all.begin() + 32));
}

TEST_F(ContractTest, OtherShapeWithoutRegionNeverPassesTheBelievedMemory) {
  LoadContract contract = LoadContract::Partial();
  contract.shape = OnMismatch::kAllow;
  ReadItem item = Item("a");
  item.shape = Shape{2, 2};
  item.destination.size_bytes = 16;
  EXPECT_TRUE(Load(item, contract).ok());
  EXPECT_THAT(Bytes(out_.begin() + 16, out_.end()), Each(std::byte{0xee}));
  item.shape = Shape{4, 8};
  EXPECT_EQ(Load(item, contract).status().code(), Code::kMismatch);
  item.shape = Shape{~std::uint64_t{0}, 8};
  EXPECT_EQ(Load(item, contract).status().code(), Code::kMismatch);
  item.shape = Shape{0};
  EXPECT_EQ(Load(item, contract).value().plan.bytes_requested, 0u);
}

TEST_F(ContractTest, Coverage) {
  LoadContract contract = LoadContract::Partial();
  contract.coverage = OnMismatch::kError;
  ReadRequest request;
  request.Add("a", Box{{0, 0}, {4, 2}}, MutableMemoryView::Host(std::span(out_).first(32)));
  const Status error = checkpoint_->Load(request, contract).status();
  EXPECT_EQ(error.code(), Code::kMismatch);
  EXPECT_THAT(error.message(), HasSubstr("8 elements"));
  request.Add("a", Box{{0, 2}, {4, 2}}, MutableMemoryView::Host(std::span(out_).last(32)));
  EXPECT_TRUE(checkpoint_->Load(request, contract).ok());
}

// What the messages say, word by word.

class ContractMessageTest : public ContractTest {
 protected:
  std::string MessageOf(const ReadItem& item, LoadContract contract = LoadContract::Partial()) {
    const Status error = Load(item, contract).status();
    EXPECT_EQ(error.code(), Code::kMismatch);
    EXPECT_EQ(error.place().tensor, item.tensor);
    EXPECT_EQ(error.place().path, "c");
    return error.message();
  }
  ReadItem RowOf(const std::string& name) {
    ReadItem item = Item(name);
    item.region = Region::Of({{1, 0}, {1, 4}});
    item.destination.size_bytes = 16;
    return item;
  }
};

TEST_F(ContractMessageTest, Missing) {
  EXPECT_EQ(MessageOf(Item("c")), "not in the checkpoint; requested is the whole tensor");
  EXPECT_EQ(MessageOf(RowOf("c")), "not in the checkpoint; requested is region [1:2, 0:4]");
}

TEST_F(ContractMessageTest, DType) {
  ReadItem item = RowOf("a");
  item.dtype = DType::kBf16;
  EXPECT_EQ(MessageOf(item), "stored as f32, requested as bf16, region [1:2, 0:4]");
  item.region.reset();
  EXPECT_EQ(MessageOf(item), "stored as f32, requested as bf16, the whole tensor");
}

TEST_F(ContractMessageTest, Conversion) {
  ReadItem item = RowOf("a");
  item.convert = Conversion{DType::kComplex64};
  EXPECT_EQ(MessageOf(item), "stored as f32, which does not convert to c64, region [1:2, 0:4]");
}

TEST_F(ContractMessageTest, Shape) {
  ReadItem item = RowOf("a");
  item.shape = Shape{4, 8};
  EXPECT_EQ(MessageOf(item), "stored with shape [4, 4], requested with [4, 8], region [1:2, 0:4]");
}

TEST_F(ContractMessageTest, Unexpected) {
  ReadRequest request;
  request.items.push_back(Item("a"));
  const Status error = checkpoint_->Load(request).status();
  EXPECT_EQ(error.message(),
            "the stored tensor of shape [4, 4] and dtype f32 is requested by no item "
            "(LoadContract::Partial() allows that)");
  EXPECT_EQ(error.place().tensor, "b");
  EXPECT_EQ(error.place().path, "c");
}

TEST_F(ContractMessageTest, Coverage) {
  LoadContract contract = LoadContract::Partial();
  contract.coverage = OnMismatch::kError;
  EXPECT_EQ(MessageOf(RowOf("a"), contract),
            "12 elements of shape [4, 4] are requested by no item, such as region [0:1, 0:4]");
}

TEST_F(ContractMessageTest, CountsAllDifferencesAndNamesTheFirstFew) {
  ReadRequest request;
  request.items = {Item("c"), Item("d"), RowOf("a")};
  request.items.back().dtype = DType::kInt32;
  const Status error = checkpoint_->Load(request).status();
  EXPECT_EQ(error.place().tensor, "c");
  EXPECT_THAT(error.message(), HasSubstr("; and 3 more differences: d, a, b; in all 2 missing, "
                                         "1 unexpected, 1 dtype"));
  request.items.pop_back();
  EXPECT_THAT(checkpoint_->Load(request, LoadContract::Partial()).status().message(),
              HasSubstr("; and 1 more difference: d; in all 2 missing"));
  for (const char* name : {"e", "f", "g", "h", "i"}) request.items.push_back(Item(name));
  EXPECT_THAT(checkpoint_->Load(request, LoadContract::Partial()).status().message(),
              HasSubstr("; and 6 more differences: d, e, f, g, ...; in all 7 missing"));
}

TEST_F(ContractMessageTest, WhatIsNoDifferenceComesFirst) {
  ReadRequest request;
  request.items = {Item("c"), Item("a")};
  request.items.back().destination.data = nullptr;
  EXPECT_EQ(checkpoint_->Load(request).status().code(), Code::kInvalidArgument);
}

TEST(CountUncoveredTest, OverlapsAndRuns) {
  const auto CountUncovered = [](const Shape& of, const std::vector<Region>& regions) {
    return internal::load::FindUncovered(of, regions).count;
  };
  const Shape shape = {4, 4};
  EXPECT_EQ(CountUncovered(shape, {}), 16u);
  EXPECT_EQ(CountUncovered(shape, {Region::Whole(shape)}), 0u);
  EXPECT_EQ(CountUncovered(shape, {Region::Of({{1, 1}, {2, 2}})}), 12u);
  EXPECT_EQ(CountUncovered(shape, {Region::Of({{0, 0}, {3, 3}}), Region::Of({{1, 1}, {3, 3}})}),
            2u);
  EXPECT_EQ(
      CountUncovered(shape, {Region{{{0, 0}, {4, 4}}, {0, 7}}, Region{{{0, 0}, {4, 4}}, {6, 16}}}),
      0u);
  EXPECT_EQ(CountUncovered({3, 0}, {}), 0u);
  EXPECT_EQ(CountUncovered({}, {}), 1u);
}

}  // namespace
}  // namespace sealpoint::testing
