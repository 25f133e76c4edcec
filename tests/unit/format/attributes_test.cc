// SPDX-License-Identifier: Apache-2.0
#include "lib/format/attributes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/container/rule_matchers.h"

namespace sealpoint::internal::format {
namespace {

using namespace std::literals;
using sealpoint::testing::FailsRule;

Attributes::Values EachType() {
  return {{"bool", true},
          {"bools", std::vector<bool>{false, true}},
          {"float", -0.1},
          {"floats", std::vector<double>{1e300, std::numeric_limits<double>::infinity()}},
          {"int", std::numeric_limits<std::int64_t>::min()},
          {"ints", std::vector<std::int64_t>{}},
          {"text", "K"},
          {"texts", std::vector<std::string>{"", "λ\n"}}};
}

TEST(Attributes, ComeBackAsTheyWereGiven) {
  const Attributes made = Attributes::Make(EachType()).value();
  EXPECT_EQ(made.values(), EachType());
  EXPECT_EQ(Attributes::Decode(made.encoded()).value(), made);
  EXPECT_TRUE(Attributes::Make({}).value().empty());
  EXPECT_TRUE(Attributes::Decode("").value().values().empty());
}

// spec/attributes.md section 1.
TEST(Attributes, HaveTheBytesOfTheSpecification) {
  const auto made =
      Attributes::Make({{"units", "K"}, {"dimensions", std::vector<std::string>{"time", "lat"}}});
  EXPECT_EQ(made.value().encoded(),
            "\x0a\0dimensions\x11\2\0\0\0\4\0\0\0time\3\0\0\0lat\5\0units\1\1\0\0\0\1\0\0\0K"sv);
}

TEST(Attributes, AreEqualIfTheirBytesAre) {
  const auto set = [](AttributeValue value) {
    return Attributes::Make({{"a", std::move(value)}}).value();
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(set(nan), set(nan));
  EXPECT_NE(set(0.0), set(-0.0));
  EXPECT_NE(set(std::int64_t{1}), set(1.0));
  EXPECT_NE(set("a"), set(std::vector<std::string>{"a"}));
}

TEST(Attributes, CannotBeMadeOfWhatNoReaderAccepts) {
  for (const auto& values : {
           Attributes::Values{{"", true}},
           Attributes::Values{{std::string(256, 'n'), true}},
           // 65537 is 1 in the 16 bits of its field.
           Attributes::Values{{std::string(65537, 'n'), true}},
           Attributes::Values{{"a\tb", true}},
           Attributes::Values{{"a", "\xff"}},
           Attributes::Values{{"a", std::string(kAttributesSizeMaxBytes, 'x')}},
       }) {
    EXPECT_EQ(Attributes::Make(values).status().code(), Code::kInvalidArgument);
  }
  const Attributes::Values largest = {{"a", std::string(kAttributesSizeMaxBytes - 12, 'x')}};
  EXPECT_EQ(Attributes::Make(largest).value().encoded().size(), kAttributesSizeMaxBytes);
}

TEST(Attributes, ArePrintedAsJson) {
  std::string text;
  for (const auto& [name, value] : EachType()) text += AttributeToString(value) + ' ';
  EXPECT_EQ(text,
            "true [false, true] -0.1 [1e+300, Infinity] -9223372036854775808 [] \"K\" "
            "[\"\", \"λ\\u000a\"] ");
  EXPECT_EQ(AttributeToString(2.0), "2.0");
  EXPECT_EQ(AttributeToString("a\"\\"), R"("a\"\\")");
  EXPECT_EQ(AttributeToString(-std::numeric_limits<double>::infinity()), "-Infinity");
  EXPECT_EQ(AttributeToString(std::numeric_limits<double>::quiet_NaN()), "NaN");
}

constexpr std::string_view kGood = "\1\0a\4\1\0\0\0\1\1\0b\1\1\0\0\0\1\0\0\0x"sv;

TEST(AttributeRules, EntriesFillTheSet) {
  EXPECT_TRUE(CheckAttributes(kGood).ok());
  for (std::size_t size = 1; size < kGood.size(); ++size) {
    if (size == 9) continue;  // the first entry alone
    EXPECT_THAT(CheckAttributes(kGood.substr(0, size)), FailsRule(Code::kCorrupt, "R-ATT-02"))
        << size;
  }
  EXPECT_THAT(CheckAttributes("\1\0a\x12\xff\xff\xff\xff"sv),
              FailsRule(Code::kCorrupt, "R-ATT-02"));
  EXPECT_EQ(CheckAttributes(""sv).place().rule, "R-ATT-01");
}

TEST(AttributeRules, NamesAscend) {
  for (const std::string_view set :
       {"\0\0\4\1\0\0\0\1"sv, "\1\0\x7f\4\1\0\0\0\1"sv, "\1\0\xff\4\1\0\0\0\1"sv,
        "\1\0b\4\1\0\0\0\1\1\0a\4\1\0\0\0\1"sv, "\1\0b\4\1\0\0\0\1\1\0b\4\1\0\0\0\1"sv}) {
    EXPECT_THAT(CheckAttributes(set), FailsRule(Code::kCorrupt, "R-ATT-03"));
  }
  const std::string long_name = "\0\1"s + std::string(256, 'n') + "\4\1\0\0\0\1"s;
  EXPECT_THAT(CheckAttributes(long_name), FailsRule(Code::kCorrupt, "R-ATT-03"));
}

TEST(AttributeRules, OtherTypesAreUnsupported) {
  for (int type = 0; type < 256; ++type) {
    std::string set(kGood.substr(0, 9));
    set[3] = static_cast<char>(type);
    const bool is_known = (type >= 1 && type <= 4) || (type >= 17 && type <= 20);
    const Status status = CheckAttributes(set);
    EXPECT_EQ(status.place().rule == "R-ATT-04", !is_known) << type;
    EXPECT_EQ(status.code() == Code::kUnsupported, !is_known) << type;
  }
}

TEST(AttributeRules, ValuesFitTheirType) {
  for (const std::string_view set :
       {"\1\0a\4\0\0\0\0"sv, "\1\0a\4\2\0\0\0\1\1"sv, "\1\0a\4\1\0\0\0\2"sv,
        "\1\0a\x14\2\0\0\0\1\2"sv, "\1\0a\1\1\0\0\0\1\0\0\0\x80"sv,
        "\1\0a\x11\2\0\0\0\1\0\0\0x\1\0\0\0\x80"sv}) {
    EXPECT_THAT(CheckAttributes(set), FailsRule(Code::kCorrupt, "R-ATT-05"));
  }
}

}  // namespace
}  // namespace sealpoint::internal::format
