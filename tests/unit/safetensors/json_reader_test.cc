// SPDX-License-Identifier: Apache-2.0
#include "lib/safetensors/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sealpoint::internal::safetensors {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The error of a text of which the value is skipped; empty if it is JSON.
std::string JsonErrorOf(std::string_view text) {
  JsonReader reader(text);
  reader.Skip();
  reader.End();
  EXPECT_THAT(reader.status().code(), AnyOf(Code::kOk, Code::kCorrupt));
  return reader.status().message();
}

// The string that a text is.
std::string JsonStringOf(std::string_view text) {
  JsonReader reader(text);
  std::string value;
  reader.ReadString(value);
  reader.End();
  return reader.status().ok() ? value : "error: " + reader.status().message();
}

std::optional<std::uint64_t> JsonSizeOf(std::string_view text) {
  JsonReader reader(text);
  const auto size = reader.ReadSize();
  reader.End();
  EXPECT_TRUE(reader.status().ok()) << text << reader.status().ToString();
  return size;
}

TEST(JsonReader, AcceptsEveryKindOfValue) {
  for (const char* const text :
       {"{}", "[]", " [ 1 , 2 ] ", "{\"a\":{\"b\":[true,false,null]}}", "\"\"", "0", "-1.5e+3",
        "1E5", "0.25", "\t\r\n[\"\\u00e9\"]", "[[[]],{}]", "{\"a\":1,\"b\":{\"a\":2}}"}) {
    EXPECT_EQ(JsonErrorOf(text), "") << text;
  }
}

TEST(JsonReader, RefusesWhatIsNoJson) {
  for (const char* const text : {"",
                                 " ",
                                 "{",
                                 "[",
                                 "[1",
                                 "[1,",
                                 "[1,]",
                                 "[,1]",
                                 "{,}",
                                 "{\"a\"}",
                                 "{\"a\":}",
                                 "{\"a\":1,}",
                                 "{\"a\" 1}",
                                 "{1:2}",
                                 "tru",
                                 "nul",
                                 "True",
                                 "NaN",
                                 "01",
                                 "-",
                                 "-a",
                                 "1.",
                                 ".5",
                                 "1e",
                                 "1e+",
                                 "+1",
                                 "[1 2]",
                                 "{\"a\":1 \"b\":2}",
                                 "[1}",
                                 "{\"a\":1]",
                                 "[1]]",
                                 "1 2",
                                 "'a'",
                                 "\"a",
                                 "\"a\\",
                                 "\"\\x\"",
                                 "\"\\x0041\"",
                                 "\"\\u12\"",
                                 "\"\\u12g4\"",
                                 "\"a\nb\"",
                                 "\"\x01\"",
                                 "// a",
                                 "\xef\xbb\xbf{}"}) {
    EXPECT_NE(JsonErrorOf(text), "") << text;
  }
}

TEST(JsonReader, RefusesAKeyThatComesTwice) {
  EXPECT_THAT(JsonErrorOf("{\"a\":1,\"a\":1}"), HasSubstr("duplicate key"));
  EXPECT_THAT(JsonErrorOf("[{\"b\":1,\"\\u0062\":1}]"), HasSubstr("duplicate key"));
}

TEST(JsonReader, BoundsNesting) {
  const std::string deepest(JsonReader::kDepthMax, '[');
  EXPECT_EQ(JsonErrorOf(deepest + std::string(JsonReader::kDepthMax, ']')), "");
  EXPECT_THAT(JsonErrorOf("[" + deepest + std::string(JsonReader::kDepthMax + 1, ']')),
              HasSubstr("nested too deeply"));
  EXPECT_THAT(JsonErrorOf(std::string(1'000'000, '[')), HasSubstr("nested too deeply"));
  // Beside each other, any number may lie.
  EXPECT_EQ(JsonErrorOf("[[],[],{},[]" + std::string() + ",[]]"), "");
  std::string wide = "[";
  for (int i = 0; i < 100; ++i) wide += "[],{},";
  EXPECT_EQ(JsonErrorOf(wide + "0]"), "");
}

TEST(JsonReader, DecodesStrings) {
  EXPECT_EQ(JsonStringOf("\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\""), "a\"\\/\b\f\n\r\t");
  EXPECT_EQ(JsonStringOf("\"\\u0041\\u00e9\\u20ac\\uD83D\\uDE00\""), "A\u00e9\u20ac\U0001F600");
  EXPECT_EQ(JsonStringOf("\"\\u007f\\u0080\\u07ff\\u0800\\ue000\\uffff\""),
            "\x7f\u0080\u07ff\u0800\ue000\uffff");
  EXPECT_EQ(JsonStringOf("\"\\ud800\\udc00\\uDBFF\\udfff\""), "\U00010000\U0010FFFF");
  EXPECT_EQ(JsonStringOf("\"\u00e9\x7f\""), "\u00e9\x7f");
}

TEST(JsonReader, RefusesStringsThatAreNoText) {
  for (const char* const text :
       {"\"\xff\"", "\"\xc0\x80\"", "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800x\"",
        "\"\\ud800\\u0041\"", "\"\\ud800\\ud800\"", "\"\\ud800\\ue000\"", "\"\xed\xa0\x80\""}) {
    EXPECT_THAT(JsonStringOf(text), HasSubstr("error: ")) << text;
  }
  EXPECT_THAT(JsonStringOf("1"), HasSubstr("no string begins"));
}

TEST(JsonReader, ReadsSizes) {
  EXPECT_EQ(JsonSizeOf("0"), 0);
  EXPECT_EQ(JsonSizeOf("-0"), 0);
  EXPECT_EQ(JsonSizeOf("10"), 10);
  EXPECT_EQ(JsonSizeOf("4611686018427387903"), (std::uint64_t{1} << 62) - 1);
  for (const char* const text : {"4611686018427387904", "18446744073709551616", "-1", "1.0", "1e3",
                                 "99999999999999999999999999", "184467440737095516150"}) {
    EXPECT_EQ(JsonSizeOf(text), std::nullopt) << text;
  }
}

TEST(JsonReader, GivesMembersInOrder) {
  JsonReader reader(" {\"b\": [1, 2], \"a\" : \"x\", \"c\": {} } ");
  std::vector<std::string> seen;
  std::string key;
  for (reader.BeginObject(); reader.NextKey(key);) {
    seen.push_back(key);
    if (reader.Peek() == JsonReader::Kind::kArray) {
      for (reader.BeginArray(); reader.NextElement();) {
        seen.push_back(std::to_string(reader.ReadSize().value_or(0)));
      }
    } else {
      reader.Skip();
    }
  }
  reader.End();
  EXPECT_TRUE(reader.status().ok());
  EXPECT_THAT(seen, ElementsAre("b", "1", "2", "a", "c"));
}

TEST(JsonReader, SaysWhereTheFirstErrorIs) {
  JsonReader reader("[1, x]");
  reader.Skip();
  EXPECT_EQ(reader.status().place().offset, 4);
  reader.Fail("another");
  EXPECT_THAT(reader.status().message(), HasSubstr("expected a value"));
}

TEST(JsonReader, AfterAnErrorNothingIsRead) {
  JsonReader reader("{\"a\":1}");
  reader.Fail("no");
  std::string text = "before";
  reader.BeginObject();
  EXPECT_FALSE(reader.NextKey(text));
  EXPECT_FALSE(reader.NextElement());
  EXPECT_EQ(reader.ReadSize(), std::nullopt);
  EXPECT_EQ(reader.Peek(), JsonReader::Kind::kNone);
}

}  // namespace
}  // namespace sealpoint::internal::safetensors
