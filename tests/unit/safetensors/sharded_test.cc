// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "sealpoint/safetensors.h"
#include "tests/support/safetensors/safetensors_file.h"
#include "tests/support/storage/write_file.h"

namespace sealpoint {
namespace {

using ::testing::HasSubstr;
using testing::SafetensorsFileOf;
using ::testing::SizeIs;

// A directory as torch's HuggingFaceStorageWriter makes it: each rank wrote a file with its boxes.
class ShardedModelTest : public ::testing::Test {
 protected:
  // A file with a tensor "t" of this shape, and where it lies.
  void Write(const std::string& name, const std::string& dtype, const std::string& shape,
             const std::string& bytes, const std::string& sharding) {
    std::string escaped;
    for (const char c : sharding) escaped += c == '"' ? "\\\"" : std::string(1, c);
    const std::string header = R"({"__metadata__":{"DCP_SHARDING_INFO":")" + escaped +
                               R"("},"t":{"dtype":")" + dtype + R"(","shape":)" + shape +
                               R"(,"data_offsets":[0,)" + std::to_string(bytes.size()) + "]}}";
    testing::WriteFile(*storage_, "m/" + name + ".safetensors", SafetensorsFileOf(header, bytes));
  }
  static std::string At(const std::string& offsets) {
    return R"({"t":{"x":0,"saved_offsets":)" + offsets + "}}";
  }
  Result<std::unique_ptr<SafetensorsModel>> Open() {
    return SafetensorsModel::Open("m", {.storage = storage_});
  }
  Status Error() { return Open().status(); }

  std::shared_ptr<Storage> storage_ = MemoryStorage();
};

TEST_F(ShardedModelTest, JoinsTheBoxesOfRanks) {
  Write("shard-00001", "U8", "[2,2]", "abef", At("[0,0]"));
  Write("shard-00002", "U8", "[2,2]", "cdgh", At("[0,2]"));
  const auto model = Open();
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  ASSERT_THAT((*model)->tensors(), SizeIs(1));
  EXPECT_EQ((*model)->tensors()[0].shape, (Shape{2, 4}));
  EXPECT_EQ((*model)->tensors()[0].raw_bytes, 8);
  EXPECT_THAT((*model)->tensors()[0].parts, SizeIs(2));
  std::string bytes(8, '.');
  ASSERT_TRUE((*model)->Read("t", MutableMemoryView::Host(bytes.data(), 8)).ok());
  EXPECT_EQ(bytes, "abcdefgh");
  ASSERT_TRUE((*model)->Read("t", {{1, 1}, {1, 2}}, MutableMemoryView::Host(bytes.data(), 2)).ok());
  EXPECT_EQ(bytes.substr(0, 2), "fg");
  ASSERT_TRUE((*model)->Read("t", {{0, 2}, {2, 1}}, MutableMemoryView::Host(bytes.data(), 2)).ok());
  EXPECT_EQ(bytes.substr(0, 2), "cg");
}

TEST_F(ShardedModelTest, WithoutOffsetsATensorIsWhole) {
  Write("a", "U8", "[2]", "ab", "{}");
  const auto model = Open();
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  EXPECT_EQ((*model)->tensors()[0].parts[0].box, (Box{{0}, {2}}));
}

TEST_F(ShardedModelTest, EmptyBoxesHaveNoPart) {
  Write("a", "U8", "[2]", "ab", At("[0]"));
  Write("b", "U8", "[0]", "", At("[2]"));
  const auto model = Open();
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  EXPECT_THAT((*model)->tensors()[0].parts, SizeIs(1));
}

TEST_F(ShardedModelTest, BoxesAreTheTensorExactly) {
  Write("a", "U8", "[2]", "ab", At("[0]"));
  Write("b", "U8", "[2]", "cd", At("[3]"));
  Status error = Error();
  EXPECT_EQ(error.code(), Code::kCorrupt);
  EXPECT_EQ(error.place().tensor, "t");
  EXPECT_EQ(error.place().path, "m/a.safetensors");
  EXPECT_THAT(error.message(), HasSubstr("none of them have the element at [2]"));
}

TEST_F(ShardedModelTest, BoxesDoNotOverlap) {
  Write("a", "U8", "[2]", "ab", At("[0]"));
  Write("b", "U8", "[2]", "cd", At("[1]"));
  EXPECT_THAT(Error().message(), HasSubstr("several of them have the element at [1]"));
}

TEST_F(ShardedModelTest, FilesAgreeAboutATensor) {
  Write("a", "U8", "[2]", "ab", At("[0]"));
  Write("b", "I8", "[2]", "cd", At("[2]"));
  EXPECT_THAT(Error().message(), HasSubstr("disagree"));
  EXPECT_EQ(Error().place().path, "m/b.safetensors");
}

TEST_F(ShardedModelTest, FilesAgreeAboutDimensions) {
  Write("a", "U8", "[2]", "ab", At("[0]"));
  Write("b", "U8", "[2,1]", "cd", At("[2,0]"));
  EXPECT_THAT(Error().message(), HasSubstr("disagree"));
}

TEST_F(ShardedModelTest, RefusesHugeTensors) {
  Write("a", "U16", "[1,1,1,1]", "ab", At("[4611686018427387903,4611686018427387903,0,0]"));
  EXPECT_EQ(Error().code(), Code::kLimitExceeded);
  Write("b", "U16", "[1,1,1,1]", "ab", At("[0,0,0,0]"));
  EXPECT_EQ(Error().place().tensor, "t");
}

TEST_F(ShardedModelTest, RefusesTensorsOfMoreThanAllBytes) {
  Write("a", "U64", "[1]", "12345678", At("[4611686018427387903]"));
  EXPECT_THAT(Error().message(), HasSubstr("more than 2^64 bytes"));
}

TEST_F(ShardedModelTest, RefusesMalformedOffsets) {
  int number = 0;
  for (const char* const sharding :
       {"", "[]", "{\"t\":1}", "{\"t\":{\"saved_offsets\":1}}", "{\"t\":{\"saved_offsets\":[-1]}}",
        "{\"t\":{\"saved_offsets\":[0.5]}}", "{\"t\":{\"saved_offsets\":[]}}",
        "{\"t\":{\"saved_offsets\":[0,0]}}", "{\"t\":{}}", "{}x"}) {
    storage_ = MemoryStorage();
    Write("file-" + std::to_string(++number), "U8", "[2]", "ab", sharding);
    EXPECT_EQ(Error().code(), Code::kCorrupt) << sharding;
    EXPECT_THAT(Error().message(), HasSubstr("DCP_SHARDING_INFO")) << sharding;
  }
}

// With an index each tensor is in one file, whatever the files say besides.
TEST_F(ShardedModelTest, AnIndexDecides) {
  Write("a", "U8", "[2]", "ab", At("[5]"));
  testing::WriteFile(*storage_, "m/model.safetensors.index.json",
                     std::string_view(R"({"weight_map":{"t":"a.safetensors"}})"));
  const auto model = Open();
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  EXPECT_EQ((*model)->tensors()[0].shape, (Shape{2}));
}

}  // namespace
}  // namespace sealpoint
