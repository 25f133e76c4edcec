// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/interop/foreign/budget.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/dcp_leaves.h"
#include "lib/interop/foreign/dcp_metadata.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/known_classes.h"
#include "lib/interop/foreign/node.h"
#include "lib/interop/foreign/pickle.h"
#include "sealpoint/interop.h"

namespace sealpoint::testing {
namespace {

namespace foreign = internal::foreign;
using foreign::ParseNode;
using foreign::PythonJson;

// As Python prints what it reads.
std::string Again(std::string_view text) {
  const auto node = ParseNode(text);
  return node ? PythonJson(*node) : "refused";
}

TEST(ForeignNode, TakesSixteenBytes) { EXPECT_EQ(sizeof(ForeignNode), 16u); }

TEST(ForeignNode, ReadsAnyJson) {
  EXPECT_EQ(Again(R"( {"b": [1, -2.50, 1e300], "a": {"x": null}} )"),
            R"({"b": [1, -2.5, 1e+300], "a": {"x": null}})");
  EXPECT_EQ(Again("[true,false]"), "[true, false]");
  EXPECT_EQ(Again("\"\xc3\xa9\\n\""), R"("\u00e9\n")");
  EXPECT_EQ(Again("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(Again("9223372036854775808"), "9.223372036854776e+18");
  EXPECT_EQ(Again("[1e999, -1e999, 1e-999]"), "[inf, -inf, 0.0]");
}

TEST(ForeignNode, RefusesWhatIsNoJson) {
  for (const char* text :
       {"", "{", "[1,]", "{\"a\":1,\"a\":2}", "tru", "01", "1 2", "\"\\ud800\""}) {
    EXPECT_EQ(Again(text), "refused") << text;
  }
  EXPECT_EQ(Again(std::string(200, '[') + std::string(200, ']')).size(), 400u);
  EXPECT_EQ(Again(std::string(201, '[') + std::string(201, ']')), "refused");
}

TEST(ForeignNode, MembersCanBeFoundAndMoved) {
  ForeignNode node = {{"$", "tuple"}, {"items", ForeignNode::List()}};
  ASSERT_NE(node.Find("items"), nullptr);
  EXPECT_NE(node.Find("items")->if_list(), nullptr);
  EXPECT_EQ(node.Find("other"), nullptr);
  const ForeignNode moved = std::move(node);
  EXPECT_EQ(PythonJson(moved), R"({"$": "tuple", "items": []})");
}

TEST(ForeignText, IsUtf8) {
  for (const char* const text : {"", "a\xc3\xa9", "\xc2\x80", "\xe0\xa0\x80", "\xf0\x90\x80\x80",
                                 "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "\xee\x80\x80"}) {
    EXPECT_TRUE(foreign::IsText(text, false)) << text;
  }
  for (const char* const text : {"\x80", "\xff", "\xc3(", "\xe0\x80\x80", "\xf0\x8f\xbf\xbf",
                                 "\xf4\x90\x80\x80", "\xed\xa0\x80"}) {
    EXPECT_FALSE(foreign::IsText(text, false)) << text;
  }
  EXPECT_FALSE(foreign::IsText(std::string_view("\xc3\xa9", 1), false));
  EXPECT_TRUE(foreign::IsText("\xed\xa0\x80", true));
}

TEST(ForeignBoxes, TileTheirTensor) {
  using Boxes = std::vector<Box>;
  const Boxes steps = {{{0, 0}, {2, 1}}, {{2, 0}, {1, 1}}, {{0, 1}, {1, 2}}, {{1, 1}, {2, 2}}};
  Boxes grid;  // of which each could be compared with hundreds
  for (std::uint64_t i = 0; i < 27000; ++i) {
    grid.push_back({{i / 900, i / 30 % 30, i % 30}, {1, 1, 1}});
  }
  const struct {
    Boxes boxes;
    Shape shape;
    const char* gap;
  } rows[] = {
      {steps, {3, 3}, ""},
      {grid, {30, 30, 30}, ""},
      {{steps[0], steps[1], steps[2]}, {3, 3}, "5 elements of 9 are stored"},
      {{steps[0], steps[1], steps[2], {{1, 0}, {2, 2}}},
       {3, 3},
       "two boxes share the element at [1, 0]"},
      {{{{0, 0}, {1, 1}}, {{0, 1}, {2, 1}}, {{1, 0}, {1, 2}}},
       {2, 2},
       "two boxes share the element at [1, 1]"},
      {{{{0}, {2}}, {{0}, {2}}}, {2}, "two boxes share the element at [0]"},
      {{{{0}, {2}}, {{1}, {1}}}, {2}, "two boxes share the element at [1]"},
      {{{{}, {}}}, {}, ""},
      {{{{}, {}}, {{}, {}}}, {}, "two boxes share the element at []"},
      {{{{0}, {2}}, {{2}, {0}}}, {2}, ""},
      {{{{0}, {2}}, {{3}, {0}}}, {2}, "box [0] at [3] lies outside of [2]"},
      {{{{1}, {2}}}, {2}, "box [2] at [1] lies outside of [2]"},
  };
  for (const auto& row : rows) EXPECT_EQ(foreign::GapOf(row.boxes, row.shape, "p"), row.gap);
}

TEST(ForeignNames, AreThoseThatAreKnown) {
  EXPECT_EQ(foreign::RankOf("__7.metadata"), 7);
  for (const char* const name : {"a_7.metadata", "__7.metadatb", "__.metadata", "__-7.metadata"}) {
    EXPECT_EQ(foreign::RankOf(name), std::nullopt) << name;
  }
  EXPECT_EQ(foreign::DTypeOfStorage("torch.FloatStorage"), DType::kF32);
  for (const char* const name : {"", "x"}) EXPECT_FALSE(foreign::DTypeOfStorage(name)) << name;
  EXPECT_TRUE(foreign::IsKnownValueClass("torch.float32"));
  for (const char* const name : {"float32", "torch.load", "os.system"}) {
    EXPECT_FALSE(foreign::IsKnownValueClass(name)) << name;
  }
  EXPECT_EQ(ForeignNode(std::int64_t{7}).Find("a"), nullptr);
}

// The bound that a file reaches only beyond 700 MB.
TEST(PickleDecoder, BoundsItsInstructions) {
  foreign::Budget budget;
  const std::string five = "\x80\x02N0N.";
  const auto decoded = [&](std::uint64_t instructions_max) {
    foreign::PickleDecoder decoder(five, nullptr, budget, "p", 0, false);
    decoder.Decode(instructions_max);
    return decoder.end();
  };
  EXPECT_EQ(decoded(5), five.size());
  try {
    decoded(4);
    ADD_FAILURE() << "a fifth instruction was taken";
  } catch (const foreign::Failure& failure) {
    EXPECT_EQ(failure.status.code(), Code::kLimitExceeded);
    EXPECT_EQ(failure.status.message(), "pickle has more than 4 instructions");
  }
}

TEST(ForeignDTypes, AreTheRegisteredOnes) {
  const auto rows = ForeignDTypes();
  ASSERT_EQ(rows.size(), RegisteredDTypes().size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].dtype, RegisteredDTypes()[i].dtype) << rows[i].name;
    EXPECT_FALSE(rows[i].name.empty()) << i;
  }
}

class ReadForeignTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        std::filesystem::path(::testing::TempDir()) / (std::string("foreign-") + info->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, std::string_view header, std::string_view payload) {
    std::string text;
    for (std::size_t i = 0; i < 8; ++i) text.push_back(static_cast<char>(header.size() >> (8 * i)));
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << text << header << payload;
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(ReadForeignTest, SaysWhatASafetensorsFileHolds) {
  const std::string path = Write(
      "a.safetensors",
      R"({"__metadata__":{"sealpoint.tree":"{\"w\":{\"$\":\"tensor\",\"name\":\"w\"},\"n\":7}",)"
      R"("sealpoint.object.x":"[\"text/plain\",\"aGk=\"]","who":"me"},)"
      R"("w":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]}})",
      "abcd");
  const auto read = ReadForeign(path);
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  ASSERT_TRUE(read->has_value());
  const ForeignCheckpoint& found = **read;
  EXPECT_EQ(found.format, "safetensors");
  EXPECT_EQ(found.tensors.at("w").shape, (Shape{2, 2}));
  EXPECT_EQ(found.objects.at("x").media_type, "text/plain");
  EXPECT_EQ(found.objects.at("x").bytes.size(), 2u);
  const auto values = ForeignValues(found);
  ASSERT_TRUE(values.ok());
  ASSERT_EQ(values->size(), 1u);
  EXPECT_EQ(values->front().name + "=" + values->front().brief, "n=7");
  const auto parts = ResolveParts(found, "w");
  ASSERT_TRUE(parts.ok());
  ASSERT_EQ(parts->size(), 1u);
  EXPECT_EQ(found.paths.at(parts->front().file), path);
  EXPECT_EQ(parts->front().entry_begin + 4, std::filesystem::file_size(path));
  EXPECT_EQ(ResolveParts(found, "v").status().code(), Code::kNotFound);
}

TEST_F(ReadForeignTest, NothingIsWrongWithWhatItDoesNotKnow) {
  std::ofstream(folder_ / "text") << "just text";
  EXPECT_FALSE(ReadForeign((folder_ / "text").string()).value().has_value());
  EXPECT_FALSE(ReadForeign(folder_.string()).value().has_value());
  EXPECT_FALSE(ReadForeign((folder_ / "none").string()).value().has_value());
}

TEST_F(ReadForeignTest, ThePathIsInEachError) {
  const std::string path =
      Write("a.safetensors", R"({"__metadata__":{"sealpoint.tree":"[]"}})", "");
  const Status error = ReadForeign(path).status();
  EXPECT_EQ(error.code(), Code::kCorrupt);
  EXPECT_EQ(error.place().path, path);
}

TEST_F(ReadForeignTest, TheNewestIterationOfMegatron) {
  EXPECT_FALSE(NewestForeignDirectory(folder_.string()).value().has_value());
  const auto write = [&](const char* text) {
    std::ofstream(folder_ / "latest_checkpointed_iteration.txt") << text;
  };
  write(" 7\n");
  EXPECT_EQ(NewestForeignDirectory(folder_.string()).value(), (folder_ / "iter_0000007").string());
  write("../7");
  EXPECT_EQ(NewestForeignDirectory(folder_.string()).status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace sealpoint::testing
