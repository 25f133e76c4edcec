// SPDX-License-Identifier: Apache-2.0
//
// Parses the text that placement_text.cc writes. Takes linear time: every step looks at each
// character a bounded number of times.
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "sealpoint/placement.h"

namespace sealpoint {
namespace {

using internal::InvalidArgument;
using internal::StrCat;

constexpr std::string_view kBlanks = " \t";

std::string_view Trim(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// Splits the text at the separators and trims the parts. The result for "" is one empty part.
std::vector<std::string_view> SplitAt(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(Trim(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + separator.size());
  }
}

// The text as a message quotes it: in quotation marks, and cut if it is long.
std::string Quote(std::string_view text) {
  constexpr std::size_t kQuotedMax = 80;
  if (text.size() <= kQuotedMax) return StrCat("\"", text, "\"");
  return StrCat("\"", text.substr(0, kQuotedMax), "\"...");
}

Result<std::uint64_t> ParseNumber(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  return InvalidArgument("found ", Quote(text), ", expected a number of at most 64 bits");
}

Result<std::string> ParseAxisName(std::string_view text) {
  if (text.empty()) return InvalidArgument("axis has no name");
  const bool is_plain = text.find_first_of("()=") == std::string_view::npos &&
                        text.find_first_of(kBlanks) == std::string_view::npos;
  if (!is_plain) return InvalidArgument("found ", Quote(text), ", expected the name of an axis");
  return std::string(text);
}

// The arguments between the parentheses, taken from left to right.
class Arguments {
 public:
  explicit Arguments(std::string_view text) : words_(SplitAt(text, ",")) {}

  Status TakeAxis(std::string& axis) {
    SEALPOINT_ASSIGN_OR_RETURN(axis, ParseAxisName(Next()));
    return CheckEnd();
  }
  // "dim 0, tensor"
  Status TakeDimAndAxis(int& dim, std::string& axis) {
    std::uint64_t number = 0;
    SEALPOINT_RETURN_IF_ERROR(TakeNumber("dim", number));
    if (number > std::numeric_limits<int>::max()) {
      return InvalidArgument("dimension is ", number, ", expected at most ",
                             std::numeric_limits<int>::max());
    }
    dim = static_cast<int>(number);
    SEALPOINT_ASSIGN_OR_RETURN(axis, ParseAxisName(Next()));
    return {};
  }
  // "unit 4"
  Status TakeNumber(std::string_view keyword, std::uint64_t& number) {
    const std::string_view word = Next();
    const bool is_it =
        word.starts_with(keyword) && word.find_first_of(kBlanks, keyword.size()) == keyword.size();
    if (!is_it) {
      return InvalidArgument("found ", Quote(word), ", expected \"", keyword, "\" and a number");
    }
    SEALPOINT_ASSIGN_OR_RETURN(number, ParseNumber(Trim(word.substr(keyword.size()))));
    return {};
  }
  // Optional.
  void TakeSplitRule(SplitRule& rule) {
    rule = SplitRule::kCeilChunk;
    if (Peek() == "even") rule = SplitRule::kEven;
    if (Peek() == "even" || Peek() == "ceil_chunk") ++taken_;
  }
  // Optional; the last argument.
  Status TakeUnit(std::uint64_t& unit) {
    if (taken_ < words_.size()) SEALPOINT_RETURN_IF_ERROR(TakeNumber("unit", unit));
    return CheckEnd();
  }
  // Empty after the last one.
  std::string_view Next() {
    const std::string_view word = Peek();
    taken_ = std::min(taken_ + 1, words_.size());
    return word;
  }
  Status CheckEnd() const {
    if (taken_ >= words_.size()) return {};
    return InvalidArgument("found ", Quote(words_[taken_]), ", expected no further argument");
  }

 private:
  std::string_view Peek() const {
    return taken_ < words_.size() ? words_[taken_] : std::string_view();
  }

  std::vector<std::string_view> words_;
  std::size_t taken_ = 0;
};

Result<PlacementRule> ParseReplicate(Arguments& in) {
  Replicate rule;
  SEALPOINT_RETURN_IF_ERROR(in.TakeAxis(rule.axis));
  return PlacementRule(std::move(rule));
}

Result<PlacementRule> ParseLocalOnly(Arguments& in) {
  LocalOnly rule;
  SEALPOINT_RETURN_IF_ERROR(in.TakeAxis(rule.axis));
  return PlacementRule(std::move(rule));
}

Result<PlacementRule> ParseShard(Arguments& in) {
  Shard rule;
  SEALPOINT_RETURN_IF_ERROR(in.TakeDimAndAxis(rule.dim, rule.axis));
  in.TakeSplitRule(rule.rule);
  SEALPOINT_RETURN_IF_ERROR(in.TakeUnit(rule.unit));
  return PlacementRule(std::move(rule));
}

Result<PlacementRule> ParseShardSections(Arguments& in) {
  ShardSections rule;
  SEALPOINT_RETURN_IF_ERROR(in.TakeDimAndAxis(rule.dim, rule.axis));
  in.TakeSplitRule(rule.rule);
  if (const std::string_view sum = in.Next(); !sum.empty()) {
    for (const std::string_view term : SplitAt(sum, "+")) {
      SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t section, ParseNumber(term));
      rule.sections.push_back(section);
    }
  }
  SEALPOINT_RETURN_IF_ERROR(in.CheckEnd());
  return PlacementRule(std::move(rule));
}

Result<PlacementRule> ParseStridedShard(Arguments& in) {
  StridedShard rule;
  SEALPOINT_RETURN_IF_ERROR(in.TakeDimAndAxis(rule.dim, rule.axis));
  SEALPOINT_RETURN_IF_ERROR(in.TakeNumber("split factor", rule.split_factor));
  SEALPOINT_RETURN_IF_ERROR(in.CheckEnd());
  return PlacementRule(std::move(rule));
}

Result<PlacementRule> ParsePad(Arguments& in) {
  Pad rule;
  std::uint64_t dim = 0;
  SEALPOINT_RETURN_IF_ERROR(in.TakeNumber("dim", dim));
  if (dim > std::numeric_limits<int>::max()) {
    return InvalidArgument("dimension is ", dim, ", expected at most ",
                           std::numeric_limits<int>::max());
  }
  rule.dim = static_cast<int>(dim);
  SEALPOINT_RETURN_IF_ERROR(in.TakeNumber("size", rule.size));
  SEALPOINT_RETURN_IF_ERROR(in.CheckEnd());
  return PlacementRule(rule);
}

Result<PlacementRule> ParseShardFlat(Arguments& in) {
  ShardFlat rule;
  if (const std::string_view axes = in.Next(); !axes.empty()) {
    for (const std::string_view axis_text : SplitAt(axes, " x ")) {
      SEALPOINT_ASSIGN_OR_RETURN(std::string axis, ParseAxisName(axis_text));
      rule.axes.push_back(std::move(axis));
    }
  }
  SEALPOINT_RETURN_IF_ERROR(in.TakeUnit(rule.unit));
  return PlacementRule(std::move(rule));
}

struct RuleParser {
  std::string_view name;
  Result<PlacementRule> (*parse)(Arguments& in);
};

constexpr std::array<RuleParser, std::variant_size_v<PlacementRule>> kRuleParsers = {{
    {"replicate", ParseReplicate},
    {"hold_here", ParseLocalOnly},
    {"shard", ParseShard},
    {"shard_sections", ParseShardSections},
    {"strided_shard", ParseStridedShard},
    {"pad", ParsePad},
    {"shard_flat", ParseShardFlat},
}};

Result<PlacementRule> Parse(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos || !text.ends_with(')')) {
    return InvalidArgument("expected a rule with its arguments in parentheses");
  }
  const std::string_view name = Trim(text.substr(0, open));
  for (const RuleParser& parser : kRuleParsers) {
    if (parser.name != name) continue;
    Arguments in(text.substr(open + 1, text.size() - open - 2));
    return parser.parse(in);
  }
  std::string names;
  for (const RuleParser& parser : kRuleParsers) {
    names += StrCat(names.empty() ? "" : ", ", parser.name);
  }
  return InvalidArgument("unknown rule, expected one of ", names);
}

}  // namespace

Result<PlacementRule> ParsePlacementRule(std::string_view text) {
  Result<PlacementRule> rule = Parse(Trim(text));
  if (rule.ok()) return rule;
  return std::move(rule).error().Prefixed(Quote(text));
}

Result<Placement> ParsePlacement(std::span<const std::string> texts) {
  Placement placement;
  placement.reserve(texts.size());
  for (const std::string& text : texts) {
    SEALPOINT_ASSIGN_OR_RETURN(PlacementRule rule, ParsePlacementRule(text));
    placement.push_back(std::move(rule));
  }
  return placement;
}

}  // namespace sealpoint
