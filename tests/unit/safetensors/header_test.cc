// SPDX-License-Identifier: Apache-2.0
#include "lib/safetensors/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "lib/safetensors/dtype_name.h"

namespace sealpoint::internal::safetensors {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

Status HeaderErrorOf(std::string_view text, std::uint64_t payload_size = 4) {
  return DecodeSafetensorsHeader(text, payload_size).status();
}

// An entry of a header, with one tensor of 4 bytes if nothing is changed.
std::string EntryText(std::string_view dtype = "\"U8\"", std::string_view shape = "[4]",
                      std::string_view offsets = "[0,4]") {
  std::string text = "{\"dtype\":";
  return text.append(dtype)
             .append(",\"shape\":")
             .append(shape)
             .append(",\"data_offsets\":")
             .append(offsets) +
         "}";
}
std::string OneTensor(const std::string& entry) { return "{\"a\":" + entry + "}"; }

TEST(SafetensorsHeader, DecodesTensorsAndMetadata) {
  const auto header = DecodeSafetensorsHeader(
      R"({"b":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]},
          "__metadata__":{"z":"1","format":"pt"},
          "a":{"data_offsets":[0,4],"shape":[],"dtype":"I32"},
          "empty":{"dtype":"F64","shape":[0,7],"data_offsets":[4,4]}}   )",
      12);
  ASSERT_TRUE(header.ok()) << header.error().ToString();
  EXPECT_THAT(header->metadata, ElementsAre(Pair("format", "pt"), Pair("z", "1")));
  EXPECT_THAT(header->tensors, ElementsAre(HeaderTensor{"a", DType::kInt32, {}, 0, 4},
                                           HeaderTensor{"empty", DType::kF64, {0, 7}, 4, 4},
                                           HeaderTensor{"b", DType::kF32, {2, 1}, 4, 12}));
}

TEST(SafetensorsHeader, MayHaveNoTensors) {
  EXPECT_THAT(DecodeSafetensorsHeader("{}", 0).value().tensors, IsEmpty());
  EXPECT_EQ(HeaderErrorOf("{}").code(), Code::kCorrupt);
}

TEST(SafetensorsHeader, KnowsEveryDTypeThatTheFormatShares) {
  std::set<DType> known;
  for (const char* const name :
       {"BOOL",    "I8",      "I16",         "I32",         "I64",     "U8",  "U16",
        "U32",     "U64",     "F16",         "BF16",        "F32",     "F64", "C64",
        "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0", "F4"}) {
    known.insert(DTypeOfSafetensors(name));
  }
  EXPECT_FALSE(known.contains(DType::kNone));
  // Not complex128 and complex32.
  EXPECT_EQ(known.size(), RegisteredDTypes().size() - 2);
}

TEST(SafetensorsHeader, CountsF4InSingleElements) {
  const auto header = DecodeSafetensorsHeader(OneTensor(EntryText("\"F4\"", "[2,4]")), 4);
  ASSERT_TRUE(header.ok()) << header.error().ToString();
  EXPECT_EQ(header->tensors.front().dtype, DType::kF4E2M1X2);
  EXPECT_EQ(header->tensors.front().shape, (Shape{2, 2}));
  EXPECT_EQ(HeaderErrorOf(OneTensor(EntryText("\"F4\"", "[4,3]"))).code(), Code::kUnsupported);
  EXPECT_EQ(HeaderErrorOf(OneTensor(EntryText("\"F4\"", "[]"))).code(), Code::kUnsupported);
}

TEST(SafetensorsHeader, RefusesWhatIsNoJson) {
  for (const char* const text : {"", "{", "[]", "null", "{\"a\":1}x", "\xef\xbb\xbf{}",
                                 "{\"a\xff\":1}", "{\"\\ud800\":1}"}) {
    const Status error = HeaderErrorOf(text, 0);
    EXPECT_EQ(error.code(), Code::kCorrupt) << text;
    EXPECT_THAT(error.message(), HasSubstr("expected JSON")) << text;
    EXPECT_GE(error.place().offset.value_or(0), 8) << text;
  }
}

TEST(SafetensorsHeader, RefusesAKeyThatComesTwice) {
  const std::string entry = EntryText();
  for (const std::string& text :
       {"{\"a\":" + entry + ",\"a\":" + entry + "}",
        std::string(R"({"__metadata__":{},"__metadata__":{}})"),
        std::string(R"({"__metadata__":{"a":"b","a":"b"}})"),
        OneTensor(R"({"dtype":"U8","shape":[4],"shape":[4],"data_offsets":[0,4]})")}) {
    const Status error = HeaderErrorOf(text);
    EXPECT_EQ(error.code(), Code::kCorrupt) << text;
    EXPECT_THAT(error.message(), HasSubstr("duplicate key")) << text;
  }
}

// As the format's own reader takes them, 0.8.0.
TEST(SafetensorsHeader, TakesWhatTheFormatsOwnReaderTakes) {
  for (const std::string& text :
       {R"({"__metadata__":null,"a":)" + EntryText() + "}",
        R"({"__metadata__":{},"a":)" + EntryText() + "}",
        OneTensor(
            R"({"x":[1,{"y":null}],"dtype":"U8","shape":[4],"data_offsets":[0,4],"z":"z"})")}) {
    const auto header = DecodeSafetensorsHeader(text, 4);
    ASSERT_TRUE(header.ok()) << header.error().ToString();
    EXPECT_THAT(header->metadata, IsEmpty());
    EXPECT_THAT(header->tensors, ElementsAre(HeaderTensor{"a", DType::kUInt8, {4}, 0, 4}));
  }
}

TEST(SafetensorsHeader, RefusesMalformedMetadata) {
  for (const char* const text :
       {R"({"__metadata__":[]})", R"({"__metadata__":false})", R"({"__metadata__":{"a":null}})",
        R"({"__metadata__":{"a":1}})", R"({"__metadata__":"x"})", R"({"__metadata__":{"a":{}}})"}) {
    const Status error = HeaderErrorOf(text, 0);
    EXPECT_EQ(error.code(), Code::kCorrupt) << text;
    EXPECT_THAT(error.message(), HasSubstr("__metadata__")) << text;
  }
}

TEST(SafetensorsHeader, RefusesMalformedEntries) {
  for (const std::string& entry :
       {std::string("1"), std::string("[]"), std::string("{}"),
        std::string(R"({"dtype":"U8","shape":[4]})"),
        std::string(R"({"dtype":"U8","shape":[4],"data_offset":[0,4]})"), EntryText("\"U8\"", "4"),
        EntryText("\"U8\"", "[-4]"), EntryText("\"U8\"", "[4.0]"), EntryText("\"U8\"", "[\"4\"]"),
        EntryText("\"U8\"", "[true]"), EntryText("\"U8\"", "[4]", "[0]"),
        EntryText("\"U8\"", "[4]", "[0,4,4]"), EntryText("\"U8\"", "[4]", "{}"),
        EntryText("\"U8\"", "[4]", "[0,4611686018427387904]")}) {
    const Status error = HeaderErrorOf(OneTensor(entry));
    EXPECT_EQ(error.code(), Code::kCorrupt) << entry;
    EXPECT_EQ(error.place().tensor, "a") << entry;
  }
}

TEST(SafetensorsHeader, BoundsDimensions) {
  const auto shape = [](std::size_t count) {
    std::string text = "[4";
    for (std::size_t i = 1; i < count; ++i) text += ",1";
    return text + "]";
  };
  EXPECT_TRUE(HeaderErrorOf(OneTensor(EntryText("\"U8\"", shape(64)))).ok());
  EXPECT_THAT(HeaderErrorOf(OneTensor(EntryText("\"U8\"", shape(65)))).message(),
              HasSubstr("list of sizes"));
}

TEST(SafetensorsHeader, RefusesUnknownDTypes) {
  for (const char* const dtype : {"\"F6_E2M3\"", "\"u8\"", "\"\"", "1", "null"}) {
    const Status error = HeaderErrorOf(OneTensor(EntryText(dtype)));
    EXPECT_EQ(error.code(), Code::kUnsupported) << dtype;
    EXPECT_EQ(error.place().tensor, "a");
  }
}

TEST(SafetensorsHeader, SizesFollowFromDTypeAndShape) {
  for (const std::string& entry :
       {EntryText("\"U8\"", "[3]"), EntryText("\"U8\"", "[5]"), EntryText("\"F16\"", "[4]"),
        EntryText("\"U8\"", "[4]", "[4,0]"), EntryText("\"U8\"", "[4]", "[1,4]"),
        EntryText("\"U8\"", "[4611686018427387903,4611686018427387903]"),
        EntryText("\"U64\"", "[2305843009213693952]", "[0,0]")}) {
    const Status error = HeaderErrorOf(OneTensor(entry));
    EXPECT_EQ(error.code(), Code::kCorrupt) << entry;
    EXPECT_THAT(error.message(), HasSubstr("dtype and shape")) << entry;
  }
  // An extent of 0 makes the others mean nothing.
  EXPECT_TRUE(
      HeaderErrorOf(
          OneTensor(EntryText("\"U8\"", "[4611686018427387903,0,4611686018427387903]", "[0,0]")), 0)
          .ok());
}

TEST(SafetensorsHeader, RangesCoverTheFile) {
  const auto two = [](std::string_view first, std::string_view second) {
    return "{\"a\":" + EntryText("\"U8\"", "[2]", first) +
           ",\"b\":" + EntryText("\"U8\"", "[2]", second) + "}";
  };
  EXPECT_TRUE(HeaderErrorOf(two("[0,2]", "[2,4]")).ok());
  EXPECT_TRUE(HeaderErrorOf(two("[2,4]", "[0,2]")).ok());
  for (const char* const second : {"[3,5]", "[1,3]", "[0,2]"}) {
    const Status error = HeaderErrorOf(two("[0,2]", second), 5);
    EXPECT_EQ(error.code(), Code::kCorrupt) << second;
    EXPECT_EQ(error.place().tensor, "b") << second;
  }
  EXPECT_EQ(HeaderErrorOf(two("[1,3]", "[3,5]"), 5).place().tensor, "a");
  EXPECT_EQ(HeaderErrorOf(two("[0,2]", "[2,4]"), 5).code(), Code::kCorrupt);
  EXPECT_EQ(HeaderErrorOf(two("[0,2]", "[2,4]"), 3).code(), Code::kIncomplete);
}

// What is wrong with the text as a whole comes before what is wrong with a part of it, and of parts
// the first.
TEST(SafetensorsHeader, SaysTheFirstError) {
  const std::string bad_dtype = EntryText("\"X\"");
  EXPECT_EQ(HeaderErrorOf("{\"a\":" + bad_dtype + ",}").code(), Code::kCorrupt);
  EXPECT_EQ(HeaderErrorOf("{\"a\":" + bad_dtype + ",\"b\":1,\"b\":1}").code(), Code::kCorrupt);
  EXPECT_EQ(HeaderErrorOf("{\"a\":" + bad_dtype + ",\"__metadata__\":1}").code(), Code::kCorrupt);
  EXPECT_EQ(HeaderErrorOf("{\"a\":" + bad_dtype + ",\"b\":1}").code(), Code::kUnsupported);
  EXPECT_EQ(HeaderErrorOf("{\"b\":1,\"a\":" + bad_dtype + "}").code(), Code::kCorrupt);
}

}  // namespace
}  // namespace sealpoint::internal::safetensors
