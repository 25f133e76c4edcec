// SPDX-License-Identifier: Apache-2.0
#include "lib/base/errors.h"
#include "sealpoint/placement.h"

namespace sealpoint {
namespace {

using internal::StrCat;

template <typename Items>
std::string Join(const Items& items, const char* separator) {
  std::string text;
  for (const auto& item : items) text += StrCat(text.empty() ? "" : separator, item);
  return text;
}

std::string_view NameOf(SplitRule rule) { return rule == SplitRule::kEven ? "even" : "ceil_chunk"; }

std::string Text(const Replicate& rule) { return StrCat("replicate(", rule.axis, ")"); }
std::string Text(const LocalOnly& rule) { return StrCat("hold_here(", rule.axis, ")"); }
std::string Text(const Shard& rule) {
  const std::string unit = rule.unit == 1 ? "" : StrCat(", unit ", rule.unit);
  return StrCat("shard(dim ", rule.dim, ", ", rule.axis, ", ", NameOf(rule.rule), unit, ")");
}
std::string Text(const ShardSections& rule) {
  return StrCat("shard_sections(dim ", rule.dim, ", ", rule.axis, ", ", NameOf(rule.rule), ", ",
                Join(rule.sections, "+"), ")");
}
std::string Text(const StridedShard& rule) {
  return StrCat("strided_shard(dim ", rule.dim, ", ", rule.axis, ", split factor ",
                rule.split_factor, ")");
}
std::string Text(const Pad& rule) {
  return StrCat("pad(dim ", rule.dim, ", size ", rule.size, ")");
}
std::string Text(const ShardFlat& rule) {
  const std::string unit = rule.unit == 1 ? "" : StrCat(", unit ", rule.unit);
  return StrCat("shard_flat(", Join(rule.axes, " x "), unit, ")");
}

}  // namespace

std::string ToString(const PlacementRule& rule) {
  return std::visit([](const auto& any_rule) { return Text(any_rule); }, rule);
}

std::vector<std::string> ToStrings(const Placement& placement) {
  std::vector<std::string> texts;
  texts.reserve(placement.size());
  for (const PlacementRule& rule : placement) texts.push_back(ToString(rule));
  return texts;
}

}  // namespace sealpoint
