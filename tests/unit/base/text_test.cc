// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/utf8.h"
#include "sealpoint/bytes.h"

namespace sealpoint {
namespace {

using std::string_view_literals::operator""sv;

// UTF-8 of any code point, also of those that have none.
std::string Encoded(char32_t point) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  if (point < 0x80) return {byte(point)};
  if (point < 0x800) return {byte(0xc0 | point >> 6), byte(0x80 | (point & 0x3f))};
  if (point < 0x10000) {
    return {byte(0xe0 | point >> 12), byte(0x80 | (point >> 6 & 0x3f)),
            byte(0x80 | (point & 0x3f))};
  }
  return {byte(0xf0 | point >> 18), byte(0x80 | (point >> 12 & 0x3f)),
          byte(0x80 | (point >> 6 & 0x3f)), byte(0x80 | (point & 0x3f))};
}

TEST(Printable, KeepsWhatPeopleCanRead) {
  for (const std::string_view text : {"", "layers.0.weight", "C:\\x", "größe", "重み", "✓", "🦭"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(Printable, EscapesControls) {
  EXPECT_EQ(Printable("a\x1b[31m\n\x7f"), "a\\x1b[31m\\x0a\\x7f");
  EXPECT_EQ(Printable("\0"sv), "\\x00");
  EXPECT_EQ(Printable("\xc2\x9b"), "\\u{9b}");  // CSI, as one character
}

TEST(Printable, EscapesWhatIsNotUtf8ByteByByte) {
  EXPECT_EQ(Printable("\x9b"), "\\x9b");  // CSI of an 8-bit terminal
  EXPECT_EQ(Printable("a\xc3"), "a\\xc3");
  EXPECT_EQ(Printable("\xe2\x80z"), "\\xe2\\x80z");
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(Printable("\xc0\x8a"), "\\xc0\\x8a");           // overlong
}

TEST(Printable, EscapesWhatMovesOrHidesText) {
  EXPECT_EQ(Printable("a\u202eb"), "a\\u{202e}b");
  EXPECT_EQ(Printable("\u2066\u2069\u200f\u061c"), "\\u{2066}\\u{2069}\\u{200f}\\u{61c}");
  EXPECT_EQ(Printable("w\u200b"), "w\\u{200b}");
  EXPECT_EQ(Printable("\u2028\ufeff"), "\\u{2028}\\u{feff}");
  EXPECT_EQ(Printable("\U000e0041"), "\\u{e0041}");
}

TEST(Printable, YieldsPrintableTextForEveryCodePointAndByte) {
  for (char32_t point = 0; point <= 0x110000; ++point) {
    const std::string text = Printable(Encoded(point));
    ASSERT_TRUE(internal::IsPrintableUtf8(text)) << std::hex << std::uint32_t{point};
    ASSERT_EQ(Printable(text), text);
  }
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_TRUE(internal::IsPrintableUtf8(Printable(std::string(1, static_cast<char>(byte)))));
  }
}

TEST(Printable, IsAtMostEightTimesAsLong) {
  for (const std::string_view text : {"\x1b"sv, "\xc2\x80"sv, "\u200b"sv, "\U000e0fff"sv}) {
    EXPECT_LE(Printable(text).size(), 8 * text.size());
  }
}

TEST(BytesText, HasDecimalUnits) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(999), "999 B");
  EXPECT_EQ(BytesText(1000), "1.0 kB");
  EXPECT_EQ(BytesText(999'949), "999.9 kB");
  EXPECT_EQ(BytesText(999'950), "1.0 MB");
  EXPECT_EQ(BytesText(UINT64_MAX), "18.4 EB");
}

}  // namespace
}  // namespace sealpoint
