// SPDX-License-Identifier: Apache-2.0
#include "lib/base/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sealpoint::internal {
namespace {

using std::string_view_literals::operator""sv;

TEST(Utf8, TakesControlCharactersAndNothingThatIsMalformed) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("a\0\n\x7f\xc2\x80"sv));
  for (const std::string_view text : {"\xff"sv, "a\xc3"sv, "\xc0\x80"sv, "\xed\xa0\x80"sv}) {
    EXPECT_FALSE(IsUtf8(text)) << text;
  }
}

TEST(PrintableUtf8, TakesTheEmptyText) { EXPECT_TRUE(IsPrintableUtf8("")); }

TEST(PrintableUtf8, TakesAllPrintableAscii) {
  for (char c = 0x20; c < 0x7f; ++c) EXPECT_TRUE(IsPrintableUtf8(std::string(1, c))) << int{c};
}

TEST(PrintableUtf8, TakesTheFirstAndLastOfEachLength) {
  for (const std::string_view text :
       {"\xc2\xa0"sv, "\xdf\xbf"sv, "\xe0\xa0\x80"sv, "\xef\xbf\xbf"sv, "\xf0\x90\x80\x80"sv,
        "\xf4\x8f\xbf\xbf"sv}) {
    EXPECT_TRUE(IsPrintableUtf8(text)) << text;
  }
}

TEST(PrintableUtf8, TakesTheNeighboursOfTheSurrogates) {
  EXPECT_TRUE(IsPrintableUtf8("\xed\x9f\xbf\xee\x80\x80"));
}

TEST(PrintableUtf8, RefusesEveryControlCharacter) {
  for (char c = 0; c < 0x20; ++c) EXPECT_FALSE(IsPrintableUtf8(std::string(1, c))) << int{c};
  EXPECT_FALSE(IsPrintableUtf8("\x7f"));
  for (int c = 0x80; c < 0xa0; ++c) {
    EXPECT_FALSE(IsPrintableUtf8(std::string("\xc2") + static_cast<char>(c))) << c;
  }
}

TEST(PrintableUtf8, RefusesAControlCharacterInside) {
  EXPECT_FALSE(IsPrintableUtf8("a\nb"));
  EXPECT_FALSE(IsPrintableUtf8("a\0b"sv));
}

TEST(PrintableUtf8, RefusesOverlongFormsOfTwoBytes) {
  EXPECT_FALSE(IsPrintableUtf8("\xc0\xaf"));
  EXPECT_FALSE(IsPrintableUtf8("\xc1\xbf"));
}

TEST(PrintableUtf8, RefusesOverlongFormsOfThreeBytes) {
  EXPECT_FALSE(IsPrintableUtf8("\xe0\x81\x81"));
  EXPECT_FALSE(IsPrintableUtf8("\xe0\x9f\xbf"));
}

TEST(PrintableUtf8, RefusesOverlongFormsOfFourBytes) {
  EXPECT_FALSE(IsPrintableUtf8("\xf0\x80\x81\x81"));
  EXPECT_FALSE(IsPrintableUtf8("\xf0\x8f\xbf\xbf"));
}

TEST(PrintableUtf8, RefusesSurrogates) {
  EXPECT_FALSE(IsPrintableUtf8("\xed\xa0\x80"));
  EXPECT_FALSE(IsPrintableUtf8("\xed\xbf\xbf"));
  EXPECT_FALSE(IsPrintableUtf8("\xed\xa0\x80\xed\xb0\x80"));
}

TEST(PrintableUtf8, RefusesCodePointsAboveTheLast) {
  EXPECT_FALSE(IsPrintableUtf8("\xf4\x90\x80\x80"));
}

TEST(PrintableUtf8, RefusesLeadBytesThatDoNotExist) {
  for (int lead = 0xf5; lead <= 0xff; ++lead) {
    EXPECT_FALSE(IsPrintableUtf8(std::string(1, static_cast<char>(lead)) + "\x80\x80\x80")) << lead;
  }
}

TEST(PrintableUtf8, RefusesALoneContinuationByte) {
  EXPECT_FALSE(IsPrintableUtf8("\x80"));
  EXPECT_FALSE(IsPrintableUtf8("a\xbf"));
}

TEST(PrintableUtf8, RefusesACutSequence) {
  // The view ends inside a sequence whose rest lies behind it.
  for (const std::string_view whole : {"\xc3\xa9"sv, "\xe2\x82\xac"sv, "\xf0\x9f\x98\x80"sv}) {
    EXPECT_TRUE(IsPrintableUtf8(whole));
    for (std::size_t size = 1; size < whole.size(); ++size) {
      EXPECT_FALSE(IsPrintableUtf8(whole.substr(0, size))) << size;
    }
  }
}

TEST(PrintableUtf8, RefusesOtherBytesInPlaceOfAContinuation) {
  EXPECT_FALSE(IsPrintableUtf8("\xc3("));
  EXPECT_FALSE(IsPrintableUtf8("\xe2\x28\xa1"));
  EXPECT_FALSE(IsPrintableUtf8("\xe2\x82\xc0"));
  EXPECT_FALSE(IsPrintableUtf8("\xf0\x9f\x98\x28"));
}

}  // namespace
}  // namespace sealpoint::internal
