// SPDX-License-Identifier: Apache-2.0
#include "lib/safetensors/index_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sealpoint::internal::safetensors {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(SafetensorsIndex, DecodesTheFileOfEachTensor) {
  const auto files = DecodeSafetensorsIndex(
      R"({"metadata":{"total_size":3,"x":[{}]},"weight_map":{"b":"2","a":"sub/1"}})");
  ASSERT_TRUE(files.ok()) << files.error().ToString();
  EXPECT_THAT(*files, ElementsAre(Pair("a", "sub/1"), Pair("b", "2")));
}

TEST(SafetensorsIndex, RefusesWhatIsNone) {
  for (const char* const text :
       {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})",
        R"({"weight_map":{"a":"1","a":"1"}})", R"({"weight_map":{},"weight_map":{}})",
        R"({"weight_map":{}}x)", R"({"weight_map":{}, "metadata":{"a":1,"a":1}})"}) {
    const Status error = DecodeSafetensorsIndex(text).status();
    EXPECT_EQ(error.code(), Code::kCorrupt) << text;
    EXPECT_THAT(error.message(), HasSubstr("not an index")) << text;
  }
}

TEST(SafetensorsIndex, RefusesFilesThatAreElsewhere) {
  for (const char* const file :
       {"", "/etc/passwd", "..", "../x", "a/../../x", "a/..", "a\\u0000"}) {
    const Status error =
        DecodeSafetensorsIndex(std::string(R"({"weight_map":{"t":")") + file + "\"}}").status();
    EXPECT_EQ(error.code(), Code::kCorrupt) << file;
    EXPECT_EQ(error.place().tensor, "t") << file;
  }
  for (const char* const file : {"x", "a/b", "..x", "a..", "a/..b"}) {
    const auto files =
        DecodeSafetensorsIndex(std::string(R"({"weight_map":{"t":")") + file + "\"}}");
    EXPECT_TRUE(files.ok()) << file;
  }
}

TEST(SafetensorsIndex, FindsTheFirstNumberedFileThatIsMissing) {
  const std::string one = "model-00001-of-00003.safetensors";
  const std::string two = "model-00002-of-00003.safetensors";
  const std::string three = "model-00003-of-00003.safetensors";
  EXPECT_EQ(MissingFile({one, two, three}), "");
  EXPECT_EQ(MissingFile({one, three}), two);
  EXPECT_EQ(MissingFile({one, two}), three);
  EXPECT_EQ(MissingFile({three}), one);
  EXPECT_EQ(MissingFile({"-00002-of-00002.safetensors"}), "-00001-of-00002.safetensors");
  EXPECT_EQ(MissingFile({"a-00001-of-00001.safetensors", "b-00002-of-00002.safetensors"}),
            "b-00001-of-00002.safetensors");
  for (const char* const other :
       {"model.safetensors", "model-00001-of-00003.bin", "model_00001-of-00003.safetensors",
        "model-0000x-of-00003.safetensors", "model-00001-of-0000x.safetensors",
        "model-00001_of-00003.safetensors", "00001-of-00003.safetensors"}) {
    EXPECT_EQ(MissingFile({other}), "") << other;
  }
}

}  // namespace
}  // namespace sealpoint::internal::safetensors
