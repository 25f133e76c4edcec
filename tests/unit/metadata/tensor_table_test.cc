// SPDX-License-Identifier: Apache-2.0
#include "lib/metadata/tensor_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sealpoint::internal::metadata {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

TEST(TensorTableTest, GivesBackWhatWasAdded) {
  TensorTable table;
  const std::vector<std::uint64_t> shape = {3, 4};
  const std::vector<std::string> placement = {"replicate(data)", "shard(dim 0, tensor, even)"};
  const std::uint32_t scalar = table.Add({.name = "s", .dtype = DType::kF64, .element_size = 8});
  const std::uint32_t matrix = table.Add({.name = "w",
                                          .dtype = DType::kBf16,
                                          .element_size = 2,
                                          .chunk_size = 4096,
                                          .shape = shape,
                                          .placement = placement});
  EXPECT_EQ(table.size(), 2u);
  const TensorAttributes attributes = table[matrix];
  EXPECT_EQ(attributes.name, "w");
  EXPECT_EQ(attributes.dtype, DType::kBf16);
  EXPECT_EQ(attributes.element_size, 2u);
  EXPECT_EQ(attributes.chunk_size, 4096u);
  EXPECT_THAT(attributes.shape, ElementsAre(3u, 4u));
  EXPECT_THAT(attributes.placement, ElementsAreArray(placement));
  EXPECT_EQ(table[scalar].name, "s");
  EXPECT_THAT(table[scalar].shape, IsEmpty());
  EXPECT_THAT(table[scalar].placement, IsEmpty());
}

TEST(TensorTableTest, FindsByName) {
  TensorTable table;
  EXPECT_EQ(table.Find("w0"), std::nullopt);
  for (std::uint32_t i = 0; i < 5000; ++i) {
    const std::string name = "w" + std::to_string(i);
    EXPECT_EQ(table.Add({.name = name}), i);
  }
  for (std::uint32_t i = 0; i < 5000; ++i) {
    EXPECT_EQ(table.Find("w" + std::to_string(i)), i);
  }
  EXPECT_EQ(table.Find("w"), std::nullopt);
  EXPECT_EQ(table.Find("w5000"), std::nullopt);
}

// What it holds does not move away from what refers to it.
TEST(TensorTableTest, EqualPlacementsAreKeptOnce) {
  TensorTable table;
  const std::vector<std::string> placement = {"replicate(data)"};
  const std::uint32_t first = table.Add({.name = "a", .placement = placement});
  for (int i = 0; i < 100; ++i) {
    const std::vector<std::string> other = {"shard(dim " + std::to_string(i) + ", tensor, even)"};
    table.Add({.name = "b" + std::to_string(i), .placement = other});
  }
  const std::uint32_t last = table.Add({.name = "c", .placement = placement});
  EXPECT_EQ(table[first].placement.data(), table[last].placement.data());
  EXPECT_THAT(table[last].placement, ElementsAreArray(placement));
}

}  // namespace
}  // namespace sealpoint::internal::metadata
