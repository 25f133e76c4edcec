// SPDX-License-Identifier: Apache-2.0
//
// Memory of the wrong size, type or place is a named error before a byte moves: of sources, of
// destinations, dense and strided, of the host and of devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/commit.h"
#include "sealpoint/declaration.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr const char* kPath = "c";

// "w" of f32, [4, 4], holds 0, 1, …; "scalar" of f64.
class MisuseTest : public ::testing::Test {
 protected:
  MisuseTest() {
    EXPECT_TRUE(storage_->CreateDirectories(kPath).ok());
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(i);
    const auto writer = BlobWriter::Create(*engine_, kPath).value();
    EXPECT_TRUE(writer->Add(Matrix(), Box{{0, 0}, {4, 4}}, MemoryView::Host(values_)).ok());
    EXPECT_TRUE(Commit(*storage_, kPath, {}, writer->Finish().value()).ok());
    checkpoint_ = OpenFrom(storage_, kPath);
  }
  static TensorSpec Matrix() { return {.name = "w", .dtype = DType::kF32, .shape = {4, 4}}; }

  // The one error of a source, whether it is bound or added.
  std::string SourceError(const MemoryView& view, const Region& region = Box{{0, 0}, {4, 4}}) {
    Declaration declaration;
    const std::size_t slot = declaration.Add({.tensor = Matrix(), .region = region}).value();
    Sources sources(declaration);
    const Status bound = sources.Bind(slot, view);
    const Status added = BlobWriter::Create(*engine_, kPath).value()->Add(Matrix(), region, view);
    EXPECT_EQ(bound, added);
    EXPECT_TRUE(bound.ok() || bound.code() == Code::kInvalidArgument) << bound.ToString();
    EXPECT_EQ(bound.place().tensor, bound.ok() ? "" : "w");
    return bound.message();
  }
  std::string DestinationError(const MutableMemoryView& view,
                               const Region& region = Box{{0, 0}, {4, 4}}) {
    ReadRequest request;
    request.Add("w", region, view);
    return ErrorOf(request);
  }
  std::string ErrorOf(const ReadRequest& request) {
    const Status status = checkpoint_->Plan(request).status();
    EXPECT_TRUE(status.ok() || status.code() == Code::kInvalidArgument) << status.ToString();
    EXPECT_EQ(status.place().tensor, status.ok() ? "" : "w");
    return status.message();
  }

  std::vector<float> values_ = std::vector<float>(16);
  const std::shared_ptr<Storage> storage_ = MemoryStorage();
  const std::unique_ptr<Engine> engine_ = SmallEngine(storage_);
  std::unique_ptr<Checkpoint> checkpoint_;
};

TEST_F(MisuseTest, DenseMemoryHasExactlyTheBytesOfTheRegion) {
  const Region half = Box{{0, 0}, {2, 4}};
  const std::string wrong = "memory has 64 bytes, expected 32 for region [0:2, 0:4] of f32";
  EXPECT_EQ(SourceError(MemoryView::Host(values_), half), wrong);
  EXPECT_EQ(SourceError(MemoryView::Cuda(values_, 0, nullptr), half), wrong);
  EXPECT_EQ(DestinationError(MutableMemoryView::Host(values_), half), "destination: " + wrong);
  EXPECT_EQ(DestinationError(MutableMemoryView::Cuda(values_, 0, nullptr), half),
            "destination: " + wrong);
  std::vector<float> few(15);
  EXPECT_THAT(SourceError(MemoryView::Host(few)), HasSubstr("memory has 60 bytes, expected 64"));
  EXPECT_THAT(DestinationError(MutableMemoryView::Host(few)), HasSubstr("has 60 bytes"));
  EXPECT_THAT(SourceError(MemoryView::Host(values_.data(), 16)), HasSubstr("has 16 bytes"));
  const Region run(Box{{0, 0}, {4, 4}}, sealpoint::Run{3, 9});
  EXPECT_EQ(DestinationError(MutableMemoryView::Host(std::span(few).first(6)), run), "");
  EXPECT_THAT(DestinationError(MutableMemoryView::Host(few), run), HasSubstr("expected 24"));
}

TEST_F(MisuseTest, TypedMemoryHasTheDTypeOfTheTensor) {
  std::vector<double> wide(16);
  EXPECT_EQ(SourceError(MemoryView::Host(wide)), "memory has elements of f64, expected f32");
  EXPECT_EQ(DestinationError(MutableMemoryView::Host(wide)),
            "destination: memory has elements of f64, expected f32");
  std::vector<std::int32_t> integers(16, 7);
  EXPECT_THAT(DestinationError(MutableMemoryView::Host(integers)), HasSubstr("of i32, expected"));
  EXPECT_THAT(integers, Each(7));
  // Said to be others, or nothing at all.
  EXPECT_EQ(DestinationError(MutableMemoryView::Host(integers).WithDType(DType::kF32)), "");
  EXPECT_EQ(DestinationError(MutableMemoryView::Host(integers.data(), 64)), "");
  // 8 doubles in 64 bytes are no 8 floats either.
  EXPECT_THAT(SourceError(MemoryView::Host(wide.data(), 128)), HasSubstr("has 128 bytes"));
}

TEST_F(MisuseTest, AConvertedDestinationHasTheDTypeThatItIsConvertedTo) {
  std::vector<double> wide(16);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Host(wide));
  request.items.back().convert = Conversion{DType::kF64};
  EXPECT_EQ(ErrorOf(request), "");
  request.items.back().convert = Conversion{DType::kInt64};
  EXPECT_EQ(ErrorOf(request), "destination: memory has elements of f64, expected i64");
  request.items.back().convert = Conversion{};
  EXPECT_EQ(ErrorOf(request), "the conversion's dtype is missing");
}

TEST_F(MisuseTest, StridesStayInTheMemory) {
  std::vector<float> memory(4 * 6);  // rows of 6
  const auto source = [&](std::vector<std::int64_t> strides, std::size_t origin) {
    return SourceError(MemoryView::Host(memory, std::move(strides), origin));
  };
  const auto destination = [&](std::vector<std::int64_t> strides, std::size_t origin) {
    return DestinationError(MutableMemoryView::Host(memory, std::move(strides), origin));
  };
  EXPECT_EQ(source({24, 4}, 0), "");
  EXPECT_EQ(source({24, 4}, 8), "");
  EXPECT_EQ(source({24, 4}, 9),
            "memory has 96 bytes, the strides of region [0:4, 0:4] reach bytes 9 to 97");
  EXPECT_EQ(destination({24, 4}, 8), "");
  EXPECT_THAT(destination({24, 4}, 9), HasSubstr("reach bytes 9 to 97"));
  EXPECT_EQ(destination({-24, -4}, 84), "");
  EXPECT_THAT(destination({-24, -4}, 83), HasSubstr("reach bytes -1 to 87"));
  EXPECT_THAT(source({-24, 4}, 0), HasSubstr("reach bytes -72 to 16"));
  EXPECT_THAT(source({std::int64_t{1} << 62, 4}, 0), HasSubstr("pass 63 bits"));
  EXPECT_THAT(source({24}, 0), HasSubstr("1 strides given, expected 2"));
}

// A run does not touch all of its box.
TEST_F(MisuseTest, StridesOfARunNeedOnlyItsElements) {
  const Region run(Box{{0, 0}, {4, 4}}, sealpoint::Run{0, 6});
  std::vector<float> memory(6 + 2);
  EXPECT_EQ(SourceError(MemoryView::Host(memory, {24, 4}), run), "");
  EXPECT_THAT(SourceError(MemoryView::Host(std::span(memory).first(7), {24, 4}), run),
              HasSubstr("memory has 28 bytes, the strides of region [0:4, 0:4] run 0:6 reach"));
}

TEST_F(MisuseTest, ALocalTensorHoldsItsParts) {
  const Mesh mesh = Mesh::Parse("tensor=2").value();
  const LocalLayout layout =
      PlaceTensor(mesh, 1, {4, 4}, {Shard{.dim = 1, .axis = "tensor"}}).value();
  std::vector<float> local(8);
  Declaration declaration;
  const auto slots = declaration.Add(Matrix(), layout).value();
  const auto bind = [&](const MemoryView& view) {
    return Sources(declaration).Bind(slots, layout, view).message();
  };
  const auto load = [&](const MutableMemoryView& view) {
    ReadRequest request;
    request.Add("w", layout, view);
    return ErrorOf(request);
  };
  EXPECT_EQ(bind(MemoryView::Host(local)), "");
  EXPECT_EQ(load(MutableMemoryView::Host(local)), "");
  const auto few = std::span(local).first(7);
  EXPECT_THAT(bind(MemoryView::Host(few)), HasSubstr("memory has 28 bytes"));
  EXPECT_THAT(load(MutableMemoryView::Host(few)), HasSubstr("memory has 28 bytes"));
  EXPECT_THAT(bind(MemoryView::Host(local, {8, 4})), HasSubstr("has strides, expected none"));
  EXPECT_THAT(load(MutableMemoryView::Host(local, {8, 4})), HasSubstr("has strides"));
  std::vector<std::int32_t> integers(8);
  EXPECT_THAT(load(MutableMemoryView::Host(integers)), HasSubstr("of i32, expected f32"));
}

TEST_F(MisuseTest, DestinationsDoNotOverlap) {
  const auto load = [&](const Box& box, MutableMemoryView view, const Box& other_box,
                        MutableMemoryView other) {
    ReadRequest request;
    request.Add("w", box, std::move(view));
    request.Add("w", other_box, std::move(other));
    return ErrorOf(request);
  };
  const Box top{{0, 0}, {2, 4}};
  const Box left{{0, 0}, {4, 2}};
  const Box right{{0, 2}, {4, 2}};
  std::vector<float> memory(16);
  const auto part = [&](std::size_t begin, std::size_t count) {
    return MutableMemoryView::Host(std::span(memory).subspan(begin, count));
  };
  EXPECT_EQ(load(top, part(0, 8), left, part(8, 8)), "");
  EXPECT_EQ(load(top, part(0, 8), left, part(7, 8)),
            "the destination of region [0:4, 0:2] overlaps that of region [0:2, 0:4] of tensor w");
  EXPECT_NE(load(left, part(8, 8), top, part(8, 8)), "");
  // Columns of one matrix interleave, and may not share one.
  const auto columns = [&](std::size_t first) {
    return MutableMemoryView::Host(std::span(memory).subspan(first), {16, 4});
  };
  EXPECT_EQ(load(left, columns(0), right, columns(2)), "");
  EXPECT_EQ(load(left, columns(2), right, columns(0)), "");
  EXPECT_NE(load(left, columns(0), right, columns(1)), "");
  // Backwards, and of no common array.
  EXPECT_EQ(load(left, MutableMemoryView::Host(memory, {-16, 4}, 48), right, columns(2)), "");
  EXPECT_NE(load(left, MutableMemoryView::Host(memory, {-16, 4}, 56), right, columns(2)), "");
  // Two devices have addresses of their own.
  const auto on_device = [&](int device) {
    return MutableMemoryView::Cuda(memory, device, nullptr);
  };
  const Box whole{{0, 0}, {4, 4}};
  EXPECT_EQ(load(whole, on_device(0), whole, on_device(1)), "");
  EXPECT_NE(load(whole, on_device(1), whole, on_device(1)), "");
}

TEST_F(MisuseTest, AViewForPlanningIsPlannedAndNotRead) {
  ReadRequest request;
  request.Add("w", MutableMemoryView::PlanOnly());
  request.Add("w", MutableMemoryView::PlanOnly());
  const ReadPlan plan = checkpoint_->Plan(request).value();
  EXPECT_EQ(plan.Summary().bytes_requested, 128u);
  const Status status = checkpoint_->Read(plan).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.place().tensor, "w");
  EXPECT_THAT(status.message(), HasSubstr("for planning only"));
}

TEST_F(MisuseTest, ABoxMeansAllOfIt) {
  const Box box{{1, 0}, {2, 4}};
  EXPECT_EQ(Region(box), Region::Of(box));
  EXPECT_EQ(Region(box).element_count(), 8u);
  Declaration declaration;
  declaration.Add({.tensor = Matrix(), .region = box}).value();
  EXPECT_EQ(declaration.tensors()[0].region, Region::Of(box));
  ReadItem item{.tensor = "w", .region = box, .destination = MutableMemoryView::PlanOnly()};
  EXPECT_EQ(checkpoint_->Plan({.items = {item}}).value().Summary().bytes_requested, 32u);
}

}  // namespace
}  // namespace sealpoint::testing
