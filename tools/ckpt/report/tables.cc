// SPDX-License-Identifier: Apache-2.0
//
// The parts of the page that are lists and tables.
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "sealpoint/bytes.h"
#include "tools/ckpt/report/chart.h"
#include "tools/ckpt/report/page.h"
#include "tools/common/text.h"

namespace sealpoint::tools::report {
namespace {

// Longer lists are not read.
constexpr std::size_t kItemsMax = 20;
constexpr std::size_t kRowsMax = 200;
constexpr std::size_t kNewestRows = 100;
constexpr std::size_t kForeignMax = 20;

class Items {
 public:
  void Add(const Html& item) {
    if (count_++ < kItemsMax) items_ += Markup("<li>{}</li>\n", item);
  }
  bool empty() const { return count_ == 0; }
  Html List() const {
    const std::size_t more = count_ - std::min(count_, kItemsMax);
    return Markup("<ul>\n{}{}</ul>\n", items_,
                  more == 0 ? Html() : Markup("<li>and {} more</li>\n", more));
  }

 private:
  Html items_;
  std::size_t count_ = 0;
};

std::string StepText(const Step& step) {
  return step.has_place() ? "step " + FormatStep(step.entry.step) : step.entry.name;
}

Html Violation(const Step& step) {
  if (step.violations.empty()) return {};
  Html text = Text(step.violations.front().ToString());
  if (step.violation_count > 1) {
    text += Markup("; and {}", Text(FormatCount(step.violation_count - 1, "more violation")));
  }
  return text;
}

// The prefixes whose values are not finite, and how many values.
std::string NonfiniteWords(const Step& step) {
  std::vector<std::string> names;
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  for (const auto& [name, layer] : *step.values) {
    nan += layer.nan_count;
    infinite += layer.infinity_count;
    if (layer.nonfinite_count() > 0) names.push_back(name);
  }
  constexpr std::size_t kNames = 3;
  const std::size_t more = names.size() - std::min(names.size(), kNames);
  names.resize(std::min(names.size(), kNames));
  return fmt::format("{} NaN and {} infinite values in {}{}", nan, infinite, fmt::join(names, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

void AddSteps(const ReportData& data, Items& items) {
  for (const Step& step : data.steps) {
    if (step.verdict != Verdict::kUncommitted && !step.is_good()) {
      items.Add(Markup("<b>{}: {}</b><br>{}", Text(StepText(step)), Text(VerdictWord(step)),
                       Violation(step)));
    } else if (!step.norms_problem.ok()) {
      items.Add(Markup("<b>{}</b>: its values could not be read: {}", Text(StepText(step)),
                       Text(step.norms_problem.ToString())));
    }
  }
  for (const Step* step : data.Columns()) {
    if (step->nonfinite_count() > 0) {
      items.Add(Markup("<b>{}</b>: {}", Text(StepText(*step)), Text(NonfiniteWords(*step))));
    }
  }
}

bool IsNotable(const Step& step) {
  return !step.is_good() || step.is_fork || step.entry.is_kept || step.nonfinite_count() > 0;
}

class Rows {
 public:
  Rows(const ReportData& data, bool all) {
    for (const Step& step : data.steps) {
      if (step.verdict == Verdict::kUncommitted) continue;
      all_.push_back(&step);
      has_values_ |= step.values.has_value();
      has_save_ |= step.save_seconds.has_value();
      has_kept_ |= step.entry.is_kept;
    }
    has_fates_ = data.has_rules && data.retention_problem.ok();
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const bool is_edge = i < kNewestRows || i + 1 == all_.size();
      if (all || all_.size() <= kRowsMax || is_edge || IsNotable(*all_[i])) {
        shown_.push_back(all_[i]);
      }
    }
  }

  Html Table() const {
    if (all_.empty()) return {};
    Html rows = Head();
    for (const Step* step : shown_) rows += Row(*step);
    const std::size_t left = all_.size() - shown_.size();
    const Html note = left == 0 ? Html()
                                : Markup(
                                      "<p class=\"dim\">{} unremarkable ones are omitted: "
                                      "<code>--all</code> lists them.</p>\n",
                                      Text(FormatCount(left, "older checkpoint")));
    return Section("Checkpoints", Markup("<div class=\"scroll tall\">\n<table>\n{}</table>\n"
                                         "</div>\n{}",
                                         rows, note));
  }

 private:
  Html Head() const {
    Html head = Markup(
        "<tr><th class=\"n\">Step</th><th>Made (UTC)</th><th class=\"n\">Interval</th>"
        "<th class=\"n\">Size</th><th class=\"n\">New</th>");
    if (has_save_) head += Markup("<th class=\"n\">Save</th>");
    head += Markup("<th>Verdict</th>");
    if (has_values_) head += Markup("<th class=\"n\">Not finite</th>");
    if (has_fates_) head += Markup("<th>Retention</th>");
    if (!has_fates_ && has_kept_) head += Markup("<th>Pinned</th>");
    return head + Markup("<th>Directory</th></tr>\n");
  }

  static Html Number(const std::string& text) {
    return Markup("<td class=\"n\">{}</td>", Text(text));
  }
  static std::string SecondsOr(const std::optional<double>& seconds) {
    return seconds ? InWords(Seconds(), *seconds) : "";
  }

  Html Row(const Step& step) const {
    std::string made = step.is_open ? FormatTime(step.created_unix_ns) : "";
    made = made.substr(0, made.find(" UTC"));
    Html row = Number(step.has_place() ? FormatStep(step.entry.step) : "–") +
               Markup("<td>{}</td>", Text(made)) + Number(SecondsOr(step.interval_seconds)) +
               Number(BytesText(step.entry.size_bytes)) + Number(BytesText(step.added_bytes));
    if (has_save_) row += Number(SecondsOr(step.save_seconds));
    row += VerdictCell(step);
    if (has_values_) row += NonfiniteCell(step);
    if (has_fates_) row += FateCell(step);
    if (!has_fates_ && has_kept_)
      row += Markup("<td>{}</td>", Text(step.entry.is_kept ? "KEEP" : ""));
    return Markup("<tr>{}<td><code>{}</code></td></tr>\n", row, Text(step.entry.name));
  }

  static Html VerdictCell(const Step& step) {
    Html notes;
    if (step.is_fork) notes += Markup("<small>a fork: shares its parent</small>");
    if (step.entry.is_link) notes += Markup("<small>a symbolic link</small>");
    if (step.is_good()) return Markup("<td>✓ valid{}</td>", notes);
    return Markup("<td><span class=\"bad\">✕ {}</span><small>{}</small>{}</td>",
                  Text(VerdictWord(step)), Violation(step), notes);
  }

  static Html NonfiniteCell(const Step& step) {
    if (!step.values) return Markup("<td class=\"n dim\">not known</td>");
    const std::uint64_t count = step.nonfinite_count();
    if (count == 0) return Markup("<td class=\"n\">0</td>");
    return Markup("<td class=\"n bad\">{}</td>", count);
  }

  static Html FateCell(const Step& step) {
    if (!step.keep) return Markup("<td></td>");
    return Markup("<td>{}<small>{}</small></td>", *step.keep ? Markup("stays") : Markup("would go"),
                  Text(fmt::format("{}", fmt::join(step.reasons, "; "))));
  }

  std::vector<const Step*> all_;
  std::vector<const Step*> shown_;
  bool has_values_ = false;
  bool has_save_ = false;
  bool has_kept_ = false;
  bool has_fates_ = false;
};

}  // namespace

Html Attention(const ReportData& data) {
  Items items;
  AddSteps(data, items);
  std::vector<std::string> forks;
  for (const Step& step : data.steps) {
    if (step.is_fork) forks.push_back(step.entry.name);
  }
  if (!forks.empty()) {
    items.Add(Markup("<b>A fork</b>: these share a parent, so two jobs wrote into the series: {}",
                     Text(fmt::format("{}", fmt::join(forks, ", ")))));
  }
  if (data.gone_count > 0) {
    items.Add(Text(FormatCount(data.gone_count, "checkpoint") +
                   " disappeared while the report was made"));
  }
  if (!data.store_problem.ok()) {
    items.Add(
        Markup("The statistics could not be stored: {}", Text(data.store_problem.ToString())));
  }
  if (items.empty()) return {};
  return Markup("<div class=\"note\"><h3>Findings</h3>\n{}</div>\n", items.List());
}

Html CheckpointTable(const ReportData& data, bool all) { return Rows(data, all).Table(); }

Html AttemptTable(const ReportData& data) {
  Html rows = Markup("<tr><th>Directory</th><th class=\"n\">Size</th><th>State</th></tr>\n");
  std::size_t count = 0;
  for (const Step& step : data.steps) {
    if (step.verdict != Verdict::kUncommitted) continue;
    ++count;
    rows += Markup("<tr><td><code>{}</code></td><td class=\"n\">{}</td><td>{}{}</td></tr>\n",
                   Text(step.entry.name), Text(BytesText(step.entry.size_bytes)),
                   step.entry.is_void ? Markup("given up (void)") : Markup("never committed"),
                   step.entry.is_kept ? Markup(", pinned by KEEP") : Html());
  }
  if (count == 0) return {};
  return Section("Attempts without a commit",
                 Markup("<p>Running saves, and the remains of killed ones. <code>ckpt clean</code> "
                        "removes the remains.</p>\n<div class=\"scroll\">\n"
                        "<table>\n{}</table>\n</div>\n",
                        rows));
}

Html Details(const ReportData& data) {
  Html content;
  if (const Step* newest = data.NewestWhole()) {
    Html rows = Markup("<tr><td>tensors</td><td class=\"w\">{}, {}</td></tr>\n",
                       newest->tensor_count, Text(BytesText(newest->raw_bytes)));
    rows += Markup("<tr><td>blobs</td><td class=\"w\">{}</td></tr>\n", newest->blob_count);
    if (!newest->mesh.empty()) {
      rows +=
          Markup("<tr><td>mesh</td><td class=\"w\">{}</td></tr>\n", Text(FormatMesh(newest->mesh)));
    }
    for (const auto& [key, value] : newest->provenance) {
      rows += Markup("<tr><td>{}</td><td class=\"w\">{}</td></tr>\n", Text(key), Text(value));
    }
    content += Markup("<div class=\"scroll\">\n<table>\n{}</table>\n</div>\n", rows);
  }
  if (data.foreign_count > 0) {
    std::vector<std::string> names = data.foreign;
    names.resize(std::min(names.size(), kForeignMax));
    const std::uint64_t more = data.foreign_count - names.size();
    content += Markup("<p class=\"dim\">Other names in the directory, not examined: {}{}</p>\n",
                      Text(fmt::format("{}", fmt::join(names, ", "))),
                      more == 0 ? Html() : Markup(" and {} more", more));
  }
  return content.empty() ? content : Section("Newest whole checkpoint", content);
}

}  // namespace sealpoint::tools::report
