// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/declaration.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/internal_access.h"
#include "lib/writer/declaration_summary.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(DeclarationTest, SlotsCountUpAndAreFoundByName) {
  Declaration declaration;
  const TensorSpec w = ByteTensor("w", 10);
  EXPECT_EQ(declaration.Add({.tensor = w, .region = Slice(0, 5)}).value(), 0u);
  EXPECT_EQ(declaration.Add({.tensor = ByteTensor("v", 10)}).value(), 1u);
  EXPECT_EQ(declaration.Add({.tensor = w, .region = Slice(5, 10)}).value(), 2u);
  EXPECT_THAT(declaration.SlotsOf("w"), ElementsAre(0, 2));
  EXPECT_THAT(declaration.SlotsOf("v"), ElementsAre(1));
  EXPECT_THAT(declaration.SlotsOf("x"), IsEmpty());
}

std::vector<std::vector<std::size_t>> SlotsByTensor(const Declaration& declaration) {
  std::vector<std::vector<std::size_t>> all;
  InternalAccess::SummaryOf(declaration).ForEachTensor([&](std::span<const std::size_t> slots) {
    all.emplace_back(slots.begin(), slots.end());
  });
  return all;
}

TEST(DeclarationTest, TensorsAreVisitedInTheOrderOfTheirNames) {
  Declaration declaration;
  EXPECT_THAT(SlotsByTensor(declaration), IsEmpty());
  const std::string names = "mzambmzcay";
  for (std::size_t i = 0; i < names.size(); ++i) {
    declaration.Add({.tensor = ByteTensor(names.substr(i, 1), 10), .region = Slice(i, i + 1)})
        .value();
  }
  const auto by_name = ElementsAre(ElementsAre(2, 8), ElementsAre(4), ElementsAre(7),
                                   ElementsAre(0, 3, 5), ElementsAre(9), ElementsAre(1, 6));
  EXPECT_THAT(SlotsByTensor(declaration), by_name);
  const Declaration copy = declaration;
  EXPECT_THAT(SlotsByTensor(copy), by_name);
}

TEST(DeclarationTest, RefusesWhatCannotBeHeld) {
  Declaration declaration;
  const TensorSpec w = ByteTensor("w", 10);
  const auto add = [&](DeclaredTensor held) { return declaration.Add(std::move(held)).status(); };
  EXPECT_THAT(add({.tensor = ByteTensor("", 10)}), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add({.tensor = w, .region = Slice(5, 11)}), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add({.tensor = w, .replicas = {1, 0}}), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add({.tensor = w, .replicas = {0, 0}}), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add({.tensor = w, .replicas = {-1, 0}}), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add({.tensor = ByteTensor("e", 0), .region = Slice(0, 1)}),
              HasCode(Code::kInvalidArgument));
  EXPECT_THAT(add({.tensor = w, .region = Slice(11, 11)}), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(declaration.tensors(), IsEmpty());
  ASSERT_TRUE(add({.tensor = w, .region = Slice(0, 5)}).ok());
  const TensorSpec other{.name = w.name, .dtype = DType::kInt8, .shape = w.shape};
  EXPECT_THAT(add({.tensor = other, .region = Slice(5, 10)}).message(),
              HasSubstr("slot 1 has i8 [10], expected u8 [10] as slot 0 has"));
  EXPECT_THAT(declaration.AddObject({.name = "", .media_type = "t"}),
              HasCode(Code::kInvalidArgument));
  ASSERT_TRUE(declaration.AddObject({.name = "o", .media_type = "t"}).ok());
  EXPECT_THAT(declaration.AddObject({.name = "o", .media_type = "u"}),
              HasCode(Code::kInvalidArgument));
}

TEST(DeclarationTest, KeepsItsFirstError) {
  Declaration declaration;
  declaration.NoteFailure({});
  EXPECT_TRUE(declaration.failure().ok());
  ASSERT_TRUE(declaration.Add({.tensor = ByteTensor("w", 10)}).ok());
  EXPECT_TRUE(declaration.failure().ok());
  declaration.AddObject({.name = ""}).IgnoreError();
  declaration.Add({.tensor = ByteTensor("", 10)}).IgnoreError();
  EXPECT_THAT(declaration.failure().message(), HasSubstr("object name is empty"));
  const Declaration copy = declaration;
  EXPECT_EQ(copy.failure(), declaration.failure());
  Declaration taken = std::move(declaration);
  EXPECT_EQ(taken.failure(), copy.failure());
  EXPECT_TRUE(declaration.failure().ok());  // NOLINT(bugprone-use-after-move): empty, as it says
  taken = Declaration();
  EXPECT_TRUE(taken.failure().ok());
  const TensorSpec tensor = ByteTensor("t", 4);
  const LocalLayout two_times{.shape = {4},
                              .parts = {{.region = Slice(0, 4)}, {.region = Slice(0, 4)}}};
  taken.Add(tensor, two_times).IgnoreError();
  EXPECT_THAT(taken.failure().message(), HasSubstr("declared twice"));
}

TEST(SourcesTest, AnErrorOfASlotIsKeptUntilItIsBound) {
  Declaration declaration;
  const std::size_t slot = declaration.Add({.tensor = ByteTensor("w", 4)}).value();
  const Bytes right(4), wrong(3);
  Sources sources(declaration);
  sources.Bind(slot, MemoryView::Host(wrong)).IgnoreError();
  EXPECT_THAT(sources.failure().message(), HasSubstr("3 bytes, expected 4"));
  ASSERT_TRUE(sources.Bind("w", MemoryView::Host(right)).ok());
  EXPECT_TRUE(sources.failure().ok());
  sources.Bind("w", MemoryView::Host(right)).IgnoreError();
  EXPECT_THAT(sources.failure().message(), HasSubstr("bound twice"));
}

TEST(SourcesTest, OtherErrorsAreKept) {
  Declaration declaration;
  declaration.Add({.tensor = ByteTensor("w", 4)}).value();
  const Bytes memory(4);
  const auto failure = [&](const auto& bind) {
    Sources sources(declaration);
    EXPECT_TRUE(sources.failure().ok());
    const Status status = bind(sources);
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(sources.Bind("w", MemoryView::Host(memory)).ok());
    EXPECT_EQ(sources.failure(), status);
  };
  const LocalLayout layout{.shape = {4}, .parts = {{.region = Slice(0, 4)}}};
  const std::vector<std::size_t> slots = {0, 0};
  const MemoryView view = MemoryView::Host(memory);
  failure([&](Sources& s) { return s.Bind("x", view); });
  failure([&](Sources& s) { return s.Bind(7, view); });
  failure([&](Sources& s) { return s.Bind("x", layout, view); });
  failure([&](Sources& s) { return s.Bind(slots, layout, view); });
  failure([&](Sources& s) { return s.BindObject("o", memory); });
  failure([&](Sources& s) {
    const Status own(Code::kDevice, "no memory");
    s.NoteFailure(own);
    return own;
  });
  declaration.NoteFailure(Status(Code::kDevice, "no tensor"));
  const Sources sources(declaration);
  EXPECT_EQ(sources.failure(), declaration.failure());
}

TEST(SourcesTest, ALayoutIsBoundByTheNameOfItsTensor) {
  Declaration declaration;
  const LocalLayout layout{.shape = {4}, .parts = {{.region = Slice(4, 8)}}};
  const LocalLayout nothing{.shape = {0}};
  ASSERT_TRUE(declaration.Add(ByteTensor("w", 8), layout).ok());
  ASSERT_TRUE(declaration.Add(ByteTensor("v", 8), nothing).ok());
  const Bytes memory(4), none;
  Sources sources(declaration);
  EXPECT_TRUE(sources.Bind("w", layout, MemoryView::Host(memory)).ok());
  EXPECT_TRUE(sources.Bind("v", nothing, MemoryView::Host(none)).ok());
  EXPECT_TRUE(sources.tensors().front().has_value());
  EXPECT_TRUE(sources.failure().ok());
}

TEST(DeclarationTest, RegionsWithoutElementsAreHeldAsNothing) {
  Declaration declaration;
  const TensorSpec full = ByteTensor("full", 10), empty = ByteTensor("empty", 0);
  EXPECT_TRUE(declaration.Add({.tensor = full, .region = Slice(5, 5)}).ok());
  EXPECT_TRUE(declaration.Add({.tensor = full, .region = Slice(5, 5)}).ok());
  EXPECT_TRUE(declaration.Add({.tensor = full, .region = Region(Slice(0, 10).box, {3, 3})}).ok());
  EXPECT_TRUE(declaration.Add({.tensor = full, .region = Slice(0, 10)}).ok());
  EXPECT_TRUE(declaration.Add({.tensor = empty, .region = Slice(0, 0)}).ok());
  EXPECT_TRUE(declaration.Add({.tensor = empty, .region = Slice(0, 0)}).ok());
  EXPECT_EQ(declaration.tensors()[4].region, Slice(0, 0));
  Sources sources(declaration);
  for (const std::size_t slot : {0u, 4u}) EXPECT_TRUE(sources.Bind(slot, MemoryView()).ok());
}

TEST(DeclarationTest, DigestFollowsEveryField) {
  const DeclaredTensor base{
      .tensor = ByteTensor("w", 10), .region = Slice(0, 5), .replicas = {0, 1}};
  const auto digest = [](const DeclaredTensor& held) {
    Declaration declaration;
    declaration.Add(held).value();
    return declaration.ComputeDigest();
  };
  const Digest before = digest(base);
  EXPECT_EQ(digest(base), before);
  const auto differs = [&](auto change) {
    DeclaredTensor held = base;
    change(held);
    EXPECT_NE(digest(held), before);
  };
  differs([](DeclaredTensor& h) { h.tensor.name = "x"; });
  differs([](DeclaredTensor& h) { h.tensor.dtype = DType::kInt8; });
  differs([](DeclaredTensor& h) { h.tensor.shape = {11}; });
  differs([](DeclaredTensor& h) { h.tensor.element_size = 1; });
  differs([](DeclaredTensor& h) { h.tensor.chunk_size_bytes = 8192; });
  differs([](DeclaredTensor& h) { h.tensor.codec = Codec::kZstd; });
  differs([](DeclaredTensor& h) { h.tensor.codec_level = 3; });
  differs([](DeclaredTensor& h) { h.tensor.group = "g"; });
  differs([](DeclaredTensor& h) { h.tensor.placement = {"p"}; });
  differs([](DeclaredTensor& h) { h.region = Slice(0, 6); });
  differs([](DeclaredTensor& h) { h.region.reset(); });
  differs([](DeclaredTensor& h) { h.replicas = {0, 2}; });
  Declaration changed;  // after its digest was computed
  changed.Add(base).value();
  EXPECT_EQ(changed.ComputeDigest(), before);
  ASSERT_TRUE(changed.AddObject({.name = "o", .media_type = "t"}).ok());
  const Digest with_object = changed.ComputeDigest();
  EXPECT_NE(with_object, before);
  changed.Add({.tensor = ByteTensor("x", 10)}).value();
  EXPECT_NE(changed.ComputeDigest(), with_object);
}

// Tensors that differ in one part only, and others that differ in all.
std::vector<DeclaredTensor> VariousTensors() {
  const TensorSpec coded{.name = "coded",
                         .dtype = DType::kBf16,
                         .shape = {4, 6},
                         .chunk_size_bytes = 8192,
                         .codec = Codec::kZstd,
                         .codec_level = 3,
                         .group = "moments",
                         .placement = {"a", "b"}};
  TensorSpec placed = coded;
  placed.name = "placed";
  placed.placement = {"a"};
  return {{.tensor = ByteTensor("a.long.name.that.takes.memory.of.its.own", 10)},
          {.tensor = ByteTensor("v", 10)},
          {.tensor = coded, .region = Region({.offset = {1, 2}, .extent = {3, 4}}, {2, 9})},
          {.tensor = placed, .region = Region::Whole({4, 6}), .replicas = {0, 2}},
          {.tensor = {.name = "scalar", .dtype = DType::kF32, .shape = {}}},
          {.tensor = {.name = "empty", .dtype = DType::kF32, .shape = {3, 0}}, .replicas = {0, 2}},
          {.tensor = {.name = "own", .dtype = DType{999}, .shape = {10}, .element_size = 4}},
          {.tensor = coded, .region = Region({.offset = {0, 0}, .extent = {1, 6}})},
          {.tensor = ByteTensor("w", 10), .region = Slice(0, 5)},
          {.tensor = ByteTensor("x", 10), .region = Slice(0, 5)}};
}

Declaration DeclareAll(const std::vector<DeclaredTensor>& all) {
  Declaration declaration;
  for (const DeclaredTensor& held : all) declaration.Add(held).value();
  return declaration;
}

TEST(DeclarationTest, GivesBackWhatWasAdded) {
  const auto all = VariousTensors();
  Declaration declaration = DeclareAll(all);
  EXPECT_THAT(declaration.tensors(), ElementsAreArray(all));
  for (std::size_t slot = 0; slot < all.size(); ++slot) {
    EXPECT_EQ(declaration.tensors()[slot], all[slot]);
  }
  EXPECT_EQ(declaration, DeclareAll(all));
  EXPECT_THAT(DeclareAll(all).tensors(), ElementsAreArray(all)) << "by value, of a temporary";
  const Declaration moved = std::move(declaration);
  EXPECT_THAT(moved.tensors(), ElementsAreArray(all));
}

TEST(DeclarationTest, ACopyGoesItsOwnWay) {
  auto all = VariousTensors();
  auto original = std::make_unique<Declaration>(DeclareAll(all));
  Declaration copy = *original;
  EXPECT_EQ(copy, *original);
  const DeclaredTensor of_original{.tensor = ByteTensor("in.the.original", 3), .replicas = {4, 5}};
  const DeclaredTensor of_copy{
      .tensor = {.name = "in.the.copy", .dtype = DType::kF64, .shape = {7}}};
  original->Add(of_original).value();
  copy.Add(of_copy).value();
  EXPECT_EQ(original->tensors()[all.size()], of_original);
  EXPECT_NE(copy, *original);
  original.reset();
  all.push_back(of_copy);
  EXPECT_THAT(copy.tensors(), ElementsAreArray(all));
  EXPECT_THAT(copy.SlotsOf("coded"), ElementsAre(2, 7));
}

TEST(DeclarationTest, DifferentTensorsMakeDifferentDeclarations) {
  const auto all = VariousTensors();
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto others = all;
    others[i].replicas = {1, 3};
    EXPECT_NE(DeclareAll(others), DeclareAll(all)) << i;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(DeclareAll(others), DeclareAll(all)) << i;
  }
}

const Mesh kTwoByTwo = Mesh::Create({{"data", 2}, {"tensor", 2}}).value();

LocalLayout ColumnsOfRank(int rank, const Shape& shape) {
  return PlaceTensor(
             kTwoByTwo, rank, shape,
             {StridedShard{.dim = 1, .axis = "tensor", .split_factor = 2}, Replicate{"data"}})
      .value();
}

TEST(DeclarationTest, ALayoutBecomesASlotPerPartWithItsReplicas) {
  Declaration declaration;
  const TensorSpec w{.name = "w", .dtype = DType::kUInt8, .shape = {2, 8}};
  declaration.Add({.tensor = ByteTensor("v", 1)}).value();
  EXPECT_THAT(declaration.Add(w, ColumnsOfRank(1, w.shape)).value(), ElementsAre(1, 2));
  EXPECT_EQ(declaration.tensors()[2].region->ToString(), "[0:2, 6:8]");
  EXPECT_THAT(declaration.tensors()[2].replicas, ElementsAre(1, 3));
}

TEST(DeclarationTest, ALayoutOfAnEmptyTensorIsDeclaredAndOneWithoutElementsIsNot) {
  Declaration declaration;
  const TensorSpec empty{.name = "e", .dtype = DType::kUInt8, .shape = {2, 0}};
  EXPECT_THAT(declaration.Add(empty, ColumnsOfRank(0, empty.shape)).value(), ElementsAre(0));
  const TensorSpec narrow{.name = "n", .dtype = DType::kUInt8, .shape = {2, 1}};
  EXPECT_THAT(declaration.Add(narrow, ColumnsOfRank(1, narrow.shape)).value(), IsEmpty());
  EXPECT_EQ(declaration.tensors().size(), 1u);
}

TEST(DeclarationTest, ALayoutThatDoesNotFitAddsNothing) {
  Declaration declaration;
  const TensorSpec w{.name = "w", .dtype = DType::kUInt8, .shape = {2, 7}};
  EXPECT_THAT(declaration.Add(w, ColumnsOfRank(1, {2, 8})).status(),
              HasCode(Code::kInvalidArgument));
  EXPECT_THAT(declaration.tensors(), IsEmpty());
}

TEST(DeclarationTest, ALayoutWithoutElementsOfABadTensorIsRefused) {
  Declaration declaration;
  const TensorSpec nameless{.name = "", .dtype = DType::kUInt8, .shape = {2, 1}};
  EXPECT_THAT(declaration.Add(nameless, ColumnsOfRank(1, nameless.shape)).status(),
              HasCode(Code::kInvalidArgument));
}

TEST(DeclarationTest, FindsObjectsByTheirNames) {
  Declaration declaration;
  EXPECT_EQ(declaration.FindObject("o"), std::nullopt);
  ASSERT_TRUE(declaration.AddObject({.name = "o", .media_type = "t"}).ok());
  EXPECT_EQ(declaration.FindObject("o"), 0u);
  EXPECT_EQ(declaration.FindObject("p"), std::nullopt);
}

TEST(SourcesTest, ALayoutBindsToOneLocalTensor) {
  Declaration declaration;
  const TensorSpec w{.name = "w", .dtype = DType::kUInt8, .shape = {2, 8}};
  const LocalLayout layout = ColumnsOfRank(1, w.shape);
  const auto slots = declaration.Add(w, layout).value();
  const Bytes local(8);
  Sources sources(declaration);
  EXPECT_THAT(sources.Bind(slots, layout, MemoryView::Host(nullptr, 8)),
              HasCode(Code::kInvalidArgument));
  EXPECT_THAT(sources.Bind(std::vector<std::size_t>{0}, layout, MemoryView::Host(local)),
              HasCode(Code::kInvalidArgument));
  EXPECT_THAT(sources.Bind(std::vector<std::size_t>{0, 2}, layout, MemoryView::Host(local)),
              HasCode(Code::kInvalidArgument));
  Sources good(declaration);
  ASSERT_TRUE(good.Bind(slots, layout, MemoryView::Host(local)).ok());
  EXPECT_EQ(good.tensors()[1]->data, local.data());
  EXPECT_EQ(good.tensors()[1]->origin_bytes, 2u);
  EXPECT_THAT(good.tensors()[1]->strides_bytes, ElementsAre(4, 1));
}

TEST(SourcesTest, ALayoutBindsToNoSlotThatWasNeverDeclared) {
  Declaration declaration;
  const TensorSpec w{.name = "w", .dtype = DType::kUInt8, .shape = {2, 8}};
  const LocalLayout layout = ColumnsOfRank(1, w.shape);
  declaration.Add(w, layout).value();
  const Bytes local(8);
  for (const std::size_t far : {std::size_t{2}, std::size_t{1} << 44}) {
    Sources sources(declaration);
    EXPECT_THAT(sources.Bind(std::vector<std::size_t>{far, 1}, layout, MemoryView::Host(local)),
                HasCode(Code::kInvalidArgument));
  }
}

// With an offset into it no memory would not be null any more.
TEST(SourcesTest, ALayoutBindsToNoMemoryThatIsNull) {
  Declaration declaration;
  const TensorSpec w{.name = "w", .dtype = DType::kUInt8, .shape = {2, 8}};
  const LocalLayout layout = ColumnsOfRank(1, w.shape);
  const auto slots = declaration.Add(w, layout).value();
  Sources sources(declaration);
  EXPECT_THAT(
      sources.Bind({&slots[1], 1}, {.parts = {layout.parts[1]}}, MemoryView::Host(nullptr, 8)),
      HasCode(Code::kInvalidArgument));
}

TEST(DeclarationTest, ManyNamesStayCheap) {
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kCount = 100000;
  Declaration declaration;
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(declaration.AddObject({.name = std::to_string(i), .media_type = "t"}).ok());
    declaration.Add({.tensor = ByteTensor(std::to_string(i), 1)}).value();
  }
  Sources sources(declaration);
  const std::byte one{1};
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(sources.Bind(std::to_string(i), MemoryView::Host(std::span(&one, 1))).ok());
    ASSERT_TRUE(sources.BindObject(std::to_string(i), {}).ok());
  }
  // Quadratic work would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(SourcesTest, RefusesWhatWasNotDeclaredOrIsBoundTwice) {
  Declaration declaration;
  const TensorSpec w = ByteTensor("w", 10);
  declaration.Add({.tensor = w, .region = Slice(0, 5)}).value();
  declaration.Add({.tensor = w, .region = Slice(5, 10)}).value();
  declaration.Add({.tensor = ByteTensor("v", 10)}).value();
  ASSERT_TRUE(declaration.AddObject({.name = "o", .media_type = "t"}).ok());
  Sources sources(declaration);
  const Bytes bytes(10);
  const auto view = MemoryView::Host(bytes);
  EXPECT_THAT(sources.Bind(3, view), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(sources.Bind("x", view), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(sources.Bind("w", view).message(), HasSubstr("several slots"));
  EXPECT_THAT(sources.Bind("v", MemoryView::Host(nullptr, 10)), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(sources.Bind("v", MemoryView::Host(bytes, {1, 1})), HasCode(Code::kInvalidArgument));
  EXPECT_TRUE(sources.Bind("v", view).ok());
  EXPECT_THAT(sources.Bind("v", view), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(sources.BindObject("p", {}).message(), HasSubstr("never declared"));
  EXPECT_TRUE(sources.BindObject("o", {}).ok());
  EXPECT_THAT(sources.BindObject("o", {}), HasCode(Code::kInvalidArgument));
}

TEST(SourcesTest, KnowsNothingOfWhatIsDeclaredLater) {
  Declaration declaration;
  Sources sources(declaration);
  declaration.Add({.tensor = ByteTensor("w", 1)}).value();
  ASSERT_TRUE(declaration.AddObject({.name = "o", .media_type = "t"}).ok());
  const std::byte one{1};
  EXPECT_THAT(sources.Bind("w", MemoryView::Host(std::span(&one, 1))),
              HasCode(Code::kInvalidArgument));
  EXPECT_THAT(sources.BindObject("o", {}), HasCode(Code::kInvalidArgument));
}

}  // namespace
}  // namespace sealpoint::testing
