// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/model_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sealpoint::internal::interop {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TensorInfo Tensor(const std::string& name, DType dtype, const Shape& shape) {
  const std::uint32_t size = DTypeSizeBytes(dtype);
  return {.name = name,
          .dtype = dtype,
          .element_size = size,
          .shape = shape,
          .raw_bytes = ElementCount(shape).value() * size};
}

std::vector<std::string> NamesOf(const PlannedFile& file) {
  std::vector<std::string> names;
  for (const TensorInfo& tensor : file.tensors) names.push_back(tensor.name);
  return names;
}

constexpr LayoutOptions ADirectory(std::uint64_t shard_size_max_bytes) {
  return {.shard_size_max_bytes = shard_size_max_bytes, .header_size_max_bytes = 10'000};
}

TEST(ModelLayout, LargeElementsComeFirst) {
  const auto files = LayOutModel(ADirectory(100), {},
                                 {Tensor("a", DType::kUInt8, {3}), Tensor("b", DType::kF64, {1}),
                                  Tensor("c", DType::kF64, {})});
  ASSERT_THAT(files.value(), SizeIs(1));
  EXPECT_EQ(files->front().name, "model.safetensors");
  EXPECT_THAT(NamesOf(files->front()), ElementsAre("b", "c", "a"));
  EXPECT_EQ(files->front().payload_size, 19);
  EXPECT_EQ(files->front().size(), files->front().head.size() + 19);
  EXPECT_THAT(files->front().head,
              HasSubstr(R"("a":{"dtype":"U8","shape":[3],"data_offsets":[16,19]})"));
}

TEST(ModelLayout, AFileIsFullIfTheNextTensorWouldPassTheLimit) {
  const auto files = LayOutModel(ADirectory(4), {{"k", "v"}},
                                 {Tensor("a", DType::kUInt8, {2}), Tensor("b", DType::kUInt8, {2}),
                                  Tensor("c", DType::kUInt8, {1}), Tensor("d", DType::kUInt8, {9}),
                                  Tensor("e", DType::kUInt8, {1})});
  ASSERT_THAT(files.value(), SizeIs(5));
  EXPECT_THAT(NamesOf((*files)[0]), ElementsAre("a", "b"));
  EXPECT_EQ((*files)[0].name, "model-00001-of-00004.safetensors");
  EXPECT_THAT((*files)[0].head, HasSubstr(R"({"k":"v"})"));
  EXPECT_THAT(NamesOf((*files)[1]), ElementsAre("c"));
  EXPECT_THAT((*files)[1].head, HasSubstr(R"({"format":"pt"})"));
  EXPECT_THAT(NamesOf((*files)[2]), ElementsAre("d"));
  EXPECT_THAT(NamesOf((*files)[3]), ElementsAre("e"));
  EXPECT_EQ((*files)[4].name, "model.safetensors.index.json");
  EXPECT_THAT((*files)[4].head, HasSubstr(R"("total_size": 15)"));
  EXPECT_THAT((*files)[4].head, HasSubstr(R"("d": "model-00003-of-00004.safetensors")"));
}

TEST(ModelLayout, OneFileHasAll) {
  const auto files = LayOutModel(
      {.file_name = "x.safetensors", .shard_size_max_bytes = 1, .header_size_max_bytes = 1000}, {},
      {Tensor("a", DType::kUInt8, {2}), Tensor("b", DType::kUInt8, {2})});
  ASSERT_THAT(files.value(), SizeIs(1));
  EXPECT_EQ(files->front().name, "x.safetensors");
  EXPECT_THAT(files->front().tensors, SizeIs(2));
}

TEST(ModelLayout, RefusesWhatSafetensorsLacks) {
  for (const TensorInfo& tensor :
       {Tensor("t", DType::kComplex128, {1}), Tensor("t", DType::kComplex32, {1}),
        Tensor("t", DType::kF4E2M1X2, {}), Tensor("__metadata__", DType::kUInt8, {1})}) {
    const Status error = LayOutModel(ADirectory(4), {}, {tensor}).status();
    EXPECT_EQ(error.code(), Code::kUnsupported);
    EXPECT_EQ(error.place().tensor, tensor.name);
  }
}

TEST(ModelLayout, BoundsTheHeader) {
  const std::vector<TensorInfo> tensors = {Tensor("a", DType::kUInt8, {2})};
  LayoutOptions options = ADirectory(4);
  options.header_size_max_bytes = LayOutModel(options, {}, tensors).value().front().head.size() - 8;
  EXPECT_TRUE(LayOutModel(options, {}, tensors).ok());
  --options.header_size_max_bytes;
  EXPECT_EQ(LayOutModel(options, {}, tensors).status().code(), Code::kLimitExceeded);
}

TEST(ModelLayout, WithoutTensorsThereIsOneFile) {
  EXPECT_THAT(LayOutModel(ADirectory(4), {}, {}).value(), SizeIs(1));
}

}  // namespace
}  // namespace sealpoint::internal::interop
