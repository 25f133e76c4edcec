// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/series/rules.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <map>
#include <string_view>
#include <utility>

#include "sealpoint/bytes.h"
#include "tools/ckpt/content.h"

namespace sealpoint::tools {
namespace {

// The text behind the last ':', which is taken off with it; empty if there is none.
std::string_view TakeLast(std::string_view& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {};
  const std::string_view last = text.substr(colon + 1);
  text = text.substr(0, colon);
  return last;
}

Result<KeepBest> ParseBest(std::string_view text) {
  KeepBest best;
  std::string_view rest = text;
  std::string_view which = TakeLast(rest);
  const auto [end, error] = std::from_chars(which.data(), which.data() + which.size(), best.count);
  const bool has_count = error == std::errc() && end == which.data() + which.size();
  if (has_count) which = TakeLast(rest);
  if (rest.empty() || (which != "min" && which != "max")) {
    return Status(Code::kInvalidArgument,
                  fmt::format("--keep-best {}: expected KEY:min or KEY:max, optionally with :N for "
                              "the number to keep, such as metric.loss:min:3",
                              Printable(text)));
  }
  best.metric = rest;
  best.best = which == "min" ? BestMetric::kLeast : BestMetric::kGreatest;
  return best;
}

}  // namespace

Result<RetentionPolicy> PolicyOf(const RetentionRules& rules) {
  RetentionPolicy policy;
  if (rules.keep_last != 0) policy.keep_last = rules.keep_last;
  policy.keep_every_n_steps = rules.keep_every;
  policy.keep_checked = rules.keep_checked;
  policy.keep_within = std::chrono::seconds(rules.keep_within_s);
  policy.max_bytes = rules.max_bytes;
  constexpr int kHoursOfDay = 24;
  constexpr int kHoursOfWeek = 168;
  for (const auto& [hours, count] :
       {std::pair(1, rules.hourly), std::pair(kHoursOfDay, rules.daily),
        std::pair(kHoursOfWeek, rules.weekly)}) {
    if (count > 0) policy.keep_per_period.push_back({std::chrono::hours(hours), count});
  }
  if (rules.best.empty()) return policy;
  Result<KeepBest> best = ParseBest(rules.best);
  if (!best) return best.error();
  policy.keep_best = *std::move(best);
  return policy;
}

bool RetentionRules::any() const {
  return keep_last != 0 ||
         PolicyOf(*this).value_or(RetentionPolicy{.keep_last = 0}) != RetentionPolicy{};
}

void AddRetentionRules(CLI::App& app, RetentionRules& rules) {
  const auto add = [&app](const char* name, auto& value, const char* type, const char* text) {
    return app.add_option(name, value, text)->type_name(type)->check(AtLeast(1));
  };
  add("--keep-last", rules.keep_last, "K", "The newest K (default: 2, the minimum)");
  add("--keep-every", rules.keep_every, "N", "Every step that is a multiple of N");
  add("--keep-hourly", rules.hourly, "N",
      "The newest of each of the last N hours with a checkpoint");
  add("--keep-daily", rules.daily, "N", "The same for days (UTC)");
  add("--keep-weekly", rules.weekly, "N", "The same for weeks");
  const std::map<std::string, std::uint64_t> units = {
      {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}};
  app.add_option("--keep-within", rules.keep_within_s,
                 "Checkpoints made within TIME before the newest one:\n12h, 7d, 2w")
      ->type_name("TIME")
      ->transform(CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::UNIT_REQUIRED, "TIME"));
  app.add_option("--keep-best", rules.best,
                 "The N (default: 1) with the lowest or highest value of\n"
                 "a provenance entry, such as metric.loss:min:3")
      ->type_name("KEY:min|max[:N]");
  add("--keep-checked", rules.keep_checked, "N",
      "The newest N that are checked for silent data corruption");
  app.add_option("--max-bytes", rules.max_bytes,
                 "Limit the kept checkpoints to the newest that fit, such\n"
                 "as 2TB or 2TiB; linked files count once. Alone,\n"
                 "it applies to all complete checkpoints")
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(true))
      ->check(AtLeast(1));
}

}  // namespace sealpoint::tools
