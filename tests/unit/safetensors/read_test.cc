// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sealpoint/safetensors.h"
#include "tests/support/safetensors/safetensors_file.h"
#include "tests/support/storage/descriptor_storage.h"
#include "tests/support/storage/reading_storage.h"
#include "tests/support/storage/write_file.h"

namespace sealpoint {
namespace {

using testing::CountingBytes;
using testing::SafetensorsFileOf;
using ::testing::SizeIs;

class SafetensorsReadTest : public ::testing::Test {
 protected:
  // One tensor "t" behind four bytes of another.
  void Make(const std::string& dtype, const std::string& shape, const std::string& bytes) {
    const std::string end = std::to_string(4 + bytes.size());
    const std::string header = R"({"first":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                               R"("t":{"dtype":")" +
                               dtype + R"(","shape":)" + shape + R"(,"data_offsets":[4,)" + end +
                               "]}}";
    testing::WriteFile(*storage_, "d/x.safetensors", SafetensorsFileOf(header, "1st:" + bytes));
    Open();
  }
  void Open() {
    auto model = SafetensorsModel::Open("d/x.safetensors", {.storage = storage_});
    ASSERT_TRUE(model.ok()) << model.error().ToString();
    model_ = *std::move(model);
  }
  // The bytes of a box.
  std::string BytesOf(const Box& box, std::size_t size) {
    std::string bytes(size, '.');
    const Status status =
        model_->Read("t", box, MutableMemoryView::Host(bytes.data(), bytes.size()));
    EXPECT_TRUE(status.ok()) << status.ToString();
    return bytes;
  }

  // As of a file system: what is read is read at once.
  std::shared_ptr<testing::ReadingStorage> storage_ =
      std::make_shared<testing::ReadingStorage>(std::make_shared<testing::DescriptorStorage>(
          MemoryStorage(), testing::DescriptorOptions{.is_direct = false, .for_buffered = true}));
  std::unique_ptr<SafetensorsModel> model_;
};

TEST_F(SafetensorsReadTest, ReadsAWholeTensor) {
  Make("U16", "[2,3]", "aAbBcCdDeEfF");
  std::array<std::uint16_t, 6> values{};
  ASSERT_TRUE(model_->Read("t", MutableMemoryView::Host(values)).ok());
  EXPECT_EQ(values[1], 'b' + 256 * 'B');
  EXPECT_EQ(values[5], 'f' + 256 * 'F');
}

TEST_F(SafetensorsReadTest, ReadsBoxes) {
  Make("U8", "[3,4]", "abcdefghijkl");
  EXPECT_EQ(BytesOf({{0, 0}, {3, 4}}, 12), "abcdefghijkl");
  EXPECT_EQ(BytesOf({{1, 0}, {2, 4}}, 8), "efghijkl");
  EXPECT_EQ(BytesOf({{0, 1}, {3, 2}}, 6), "bcfgjk");
  EXPECT_EQ(BytesOf({{2, 3}, {1, 1}}, 1), "l");
}

TEST_F(SafetensorsReadTest, ReadsBoxesOfManyDimensions) {
  Make("U8", "[2,3,2,2]", CountingBytes(24));
  std::string expected;
  for (const int i : {0, 1}) {
    for (const int j : {1, 2}) {
      for (const int k : {0, 1}) expected.push_back(static_cast<char>(12 * i + 4 * j + 2 * k + 1));
    }
  }
  EXPECT_EQ(BytesOf({{0, 1, 0, 1}, {2, 2, 2, 1}}, 8), expected);
}

TEST_F(SafetensorsReadTest, ReadsScalars) {
  Make("I64", "[]", "12345678");
  EXPECT_EQ(BytesOf({}, 8), "12345678");
  std::int64_t value = 0;
  EXPECT_TRUE(model_->Read("t", MutableMemoryView::Host(std::span(&value, 1))).ok());
  EXPECT_NE(value, 0);
}

TEST_F(SafetensorsReadTest, ReadsEmptyTensors) {
  Make("F32", "[0,3]", "");
  EXPECT_TRUE(model_->Read("t", MutableMemoryView::Host(nullptr, 0)).ok());
  char byte = 0;
  EXPECT_EQ(model_->Read("t", MutableMemoryView::Host(&byte, 1)).code(), Code::kInvalidArgument);
  EXPECT_TRUE(model_->Read("t", {{0, 0}, {0, 3}}, MutableMemoryView::Host(nullptr, 0)).ok());
}

TEST_F(SafetensorsReadTest, ReadsIntoStridedMemory) {
  Make("U16", "[2,3]", "aAbBcCdDeEfF");
  std::string bytes(16, '.');
  // Transposed, rows from the last to the first.
  ASSERT_TRUE(
      model_->Read("t", MutableMemoryView::Host(bytes.data(), bytes.size(), {-2, 4}, 4)).ok());
  EXPECT_EQ(bytes, "..dDaAeEbBfFcC..");
}

TEST_F(SafetensorsReadTest, RefusesWhatDoesNotFit) {
  Make("U16", "[2,3]", "aAbBcCdDeEfF");
  std::string bytes(12, '.');
  const auto view = [&](std::size_t size) { return MutableMemoryView::Host(bytes.data(), size); };
  const auto code = [&](const Box& box, const MutableMemoryView& destination) {
    const Status status = model_->Read("t", box, destination);
    EXPECT_EQ(status.place().tensor, "t");
    return status.code();
  };
  EXPECT_EQ(code({{0, 0}, {2, 3}}, view(11)), Code::kInvalidArgument);
  EXPECT_EQ(code({{0, 0}, {3, 3}}, view(12)), Code::kInvalidArgument);
  EXPECT_EQ(code({{1, 0}, {2, 3}}, view(12)), Code::kInvalidArgument);
  EXPECT_EQ(code({{0}, {2}}, view(4)), Code::kInvalidArgument);
  EXPECT_EQ(code({{~std::uint64_t{0}, 0}, {2, 3}}, view(12)), Code::kInvalidArgument);
  EXPECT_EQ(code({{0, 0}, {2, 3}}, MutableMemoryView::Host(nullptr, 12)), Code::kInvalidArgument);
  std::array<float, 3> floats{};
  EXPECT_EQ(code({{0, 0}, {2, 3}}, MutableMemoryView::Host(floats)), Code::kInvalidArgument);
  EXPECT_EQ(code({{0, 0}, {2, 3}}, MutableMemoryView::PlanOnly()), Code::kInvalidArgument);
  EXPECT_EQ(code({{0, 0}, {2, 3}}, MutableMemoryView::Cuda(bytes.data(), 12, 0, nullptr)),
            Code::kUnsupported);
  EXPECT_EQ(model_->Read("u", view(12)).code(), Code::kNotFound);
  EXPECT_EQ(model_->Read("u", {{0}, {1}}, view(12)).place().tensor, "u");
  EXPECT_EQ(bytes, std::string(12, '.'));
}

TEST_F(SafetensorsReadTest, ReadsLargeTensorsAtOnce) {
  const std::string bytes = CountingBytes(3 << 20);
  Make("U8", "[3,1048576]", bytes);
  storage_->ClearLog();
  EXPECT_EQ(BytesOf({{0, 0}, {3, 1 << 20}}, 3 << 20), bytes);
  EXPECT_THAT(storage_->log().reads, SizeIs(1));
}

// A dense tensor into strided memory: one read for many elements, and none beyond the tensor.
TEST_F(SafetensorsReadTest, ReadsManySmallElementsAtOnce) {
  const std::string bytes = CountingBytes(4000);
  Make("U8", "[1000,4]", bytes);
  storage_->ClearLog();
  std::string transposed(4000, '.');
  ASSERT_TRUE(
      model_->Read("t", MutableMemoryView::Host(transposed.data(), 4000, {1, 1000}, 0)).ok());
  EXPECT_EQ(transposed[1], bytes[4]);
  EXPECT_EQ(transposed[3999], bytes[3999]);
  ASSERT_THAT(storage_->log().reads, SizeIs(1));
  EXPECT_EQ(storage_->log().reads[0].size, 4000);
}

// If a few columns of many are asked for, only these are read.
TEST_F(SafetensorsReadTest, ReadsLittleMoreThanIsWanted) {
  Make("U8", "[8,100000]", CountingBytes(800'000));
  storage_->ClearLog();
  BytesOf({{0, 500}, {8, 10}}, 80);
  std::uint64_t size = 0;
  for (const auto& read : storage_->log().reads) size += read.size;
  EXPECT_EQ(size, 80);
  // A fourth of them: all is read, to the last that is requested.
  storage_->ClearLog();
  BytesOf({{0, 0}, {8, 25'000}}, 200'000);
  ASSERT_THAT(storage_->log().reads, SizeIs(1));
  EXPECT_EQ(storage_->log().reads[0].size, 725'000);
}

TEST_F(SafetensorsReadTest, AFileThatWasCutIsIncomplete) {
  Make("U8", "[8]", "12345678");
  auto other = std::make_shared<testing::ReadingStorage>(
      storage_, [](const testing::ReadCall& call) -> Status {
        if (call.size == 8 && call.offset > 100) return Status(Code::kIncomplete, "shorter");
        return {};
      });
  const auto model = SafetensorsModel::Open("d/x.safetensors", {.storage = other}).value();
  std::array<std::uint8_t, 8> values{};
  const Status status = model->Read("t", MutableMemoryView::Host(values));
  EXPECT_EQ(status.code(), Code::kIncomplete);
  EXPECT_EQ(status.place().tensor, "t");
}

}  // namespace
}  // namespace sealpoint
