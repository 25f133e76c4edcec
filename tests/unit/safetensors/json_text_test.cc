// SPDX-License-Identifier: Apache-2.0
#include "lib/safetensors/json_text.h"

#include <gtest/gtest.h>

#include "lib/safetensors/json_reader.h"

namespace sealpoint::internal::safetensors {
namespace {

std::string Json(std::string_view text, JsonCharacters characters = JsonCharacters::kUtf8) {
  std::string out = "x";
  AppendJson(out, text, characters);
  return out.substr(1);
}

// As Python's json.dumps with ensure_ascii=False, and without.
TEST(JsonText, EscapesWhatMustBe) {
  EXPECT_EQ(Json(""), "\"\"");
  EXPECT_EQ(Json("a.b/c"), "\"a.b/c\"");
  EXPECT_EQ(Json("\"\\\b\f\n\r\t"), "\"\\\"\\\\\\b\\f\\n\\r\\t\"");
  EXPECT_EQ(Json(std::string_view("\0\x1f", 2)), "\"\\u0000\\u001f\"");
  EXPECT_EQ(Json("\x7f\u00e9\U0001F600"), "\"\x7f\u00e9\U0001F600\"");
}

TEST(JsonText, EscapesAllThatIsNotAscii) {
  EXPECT_EQ(Json("~\x7f\u00e9\uffff", JsonCharacters::kAscii), "\"~\\u007f\\u00e9\\uffff\"");
  EXPECT_EQ(Json("\U00010000\U0001F600", JsonCharacters::kAscii),
            "\"\\ud800\\udc00\\ud83d\\ude00\"");
}

TEST(JsonText, IsReadAgain) {
  const std::string text = "a\"\\\n\x01\x7f\u00e9\u20ac\U0001F600";
  for (const auto characters : {JsonCharacters::kUtf8, JsonCharacters::kAscii}) {
    const std::string json = Json(text, characters);
    JsonReader reader(json);
    std::string again;
    reader.ReadString(again);
    EXPECT_EQ(again, text);
  }
}

}  // namespace
}  // namespace sealpoint::internal::safetensors
