// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/report/page.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/version.h"
#include "tools/ckpt/report/chart.h"
#include "tools/ckpt/report/style.h"
#include "tools/common/text.h"

namespace sealpoint::tools::report {
namespace {

// Nobody looks at more metrics.
constexpr std::size_t kMetricsMax = 8;

std::string LastPart(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const std::string_view last = path.substr(path.rfind('/') + 1);
  return std::string(last.empty() || last == "." || last == ".." ? path : last);
}

class Page {
 public:
  Page(const ReportData& data, bool all) : data_(data), all_(all), columns_(data.Columns()) {}

  std::string Make() {
    Html body = Head();
    body += Attention(data_);
    if (!data_.steps.empty()) body += Cards();
    if (!columns_.empty()) {
      body += Strips();
      body += Sizes();
      body += Times();
      body += Metrics();
      body += NormsSection(data_);
    }
    body += Retention();
    body += CheckpointTable(data_, all_);
    body += AttemptTable(data_);
    body += Details(data_);
    body += Foot();
    std::string page(kPageBegin);
    // Whatever is in a name: no script runs, and nothing is fetched.
    page +=
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\">\n";
    page += Markup("<title>{}: checkpoints</title>\n", Text(LastPart(data_.path))).text();
    page += fmt::format("<style>{}</style>\n", kStyle);
    return page + body.text() + "</html>\n";
  }

 private:
  template <typename Get>
  Values Column(const Get& get) const {
    Values values;
    for (const Step* step : columns_) values.push_back(get(*step));
    return values;
  }
  bool Has(const Values& values) const {
    return std::ranges::any_of(values, [](const auto& value) { return value.has_value(); });
  }
  ChartOptions Chart(std::string label, Unit unit) const {
    return {.label = std::move(label), .steps = StepNames(data_), .unit = std::move(unit)};
  }

  Html Head() const {
    return Markup(
        "<header>\n<h1>{}</h1>\n<p class=\"dim\">Checkpoints of <code>{}</code> on {}</p>\n<p "
        "class=\"sum\">{}</p>\n</header>\n",
        Text(LastPart(data_.path)), Text(data_.path), Text(FormatTime(data_.made_unix_ns)),
        Summary());
  }

  Html Summary() const {
    if (data_.steps.empty()) return Markup("There is no checkpoint here yet.");
    const std::size_t count = data_.steps.size() - data_.CountOf(Verdict::kUncommitted);
    const std::uint64_t good = data_.CountOf(Verdict::kCommitted);
    const Html level = Text(VerifyLevelName(data_.level));
    if (count == 0) return Markup("No checkpoint was committed yet.");
    if (good == count) {
      return Markup(
          "✓ {} valid, checked at level <i>{}</i>.",
          count == 1 ? Markup("The one checkpoint is") : Markup("All {} checkpoints are", count),
          level);
    }
    return Markup(
        "<span class=\"bad\">✕ {} of {} checkpoints {} not valid</span>, checked at level "
        "<i>{}</i>.",
        count - good, count, count - good == 1 ? Markup("is") : Markup("are"), level);
  }

  static Html Card(std::string_view name, std::string_view value, std::string_view more) {
    return Markup("<div class=\"card\"><small>{}</small><b>{}</b><small>{}</small></div>\n",
                  Text(name), Text(value), Text(more));
  }

  Html Cards() const {
    Html cards;
    if (const Step* newest = data_.NewestWhole()) {
      cards += Card("Newest whole checkpoint", "step " + FormatStep(newest->entry.step),
                    newest->entry.name);
    } else {
      cards += Card("Newest whole checkpoint", "none", "");
    }
    const std::uint64_t attempts = data_.CountOf(Verdict::kUncommitted);
    cards +=
        Card("Checkpoints", fmt::format("{}", data_.steps.size() - attempts),
             attempts == 0 ? "" : "and " + FormatCount(attempts, "attempt") + " without a commit");
    const std::uint64_t distinct = data_.distinct_bytes();
    cards += Card("On disk", BytesText(distinct),
                  distinct == data_.size_bytes()
                      ? "nothing is shared"
                      : BytesText(data_.size_bytes()) + " if shared files were counted each time");
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    for (const Step* step : columns_) {
      if (!step->is_open) continue;
      if (first == 0) first = step->created_unix_ns;
      last = step->created_unix_ns;
    }
    constexpr double kPerNanosecond = 1e-9;
    if (first != 0) {
      cards += Card("Span of time",
                    last <= first
                        ? "–"
                        : InWords(Seconds(), static_cast<double>(last - first) * kPerNanosecond),
                    FormatTime(first) + " to " + FormatTime(last));
    }
    return Markup("<div class=\"cards\">\n{}</div>\n", cards);
  }

  Html OneStrip(std::string_view name, const std::vector<StripState>& states,
                std::string_view words) const {
    return Markup("<span>{}</span>{}<small>{}</small>\n", Text(name),
                  Strip(name, StepNames(data_), states), Text(words));
  }

  // Kinds of blocks: the greater, the more it matters.
  static constexpr std::size_t kNothing = 0;
  static constexpr std::size_t kFine = 1;
  static constexpr std::size_t kPinned = 2;
  static constexpr std::size_t kBad = 3;

  static StripState VerdictState(const Step& step) {
    return {step.is_good() ? kFine : kBad, VerdictWord(step)};
  }
  static StripState FiniteState(const Step& step) {
    if (!step.values) return {kNothing, "not known"};
    if (step.nonfinite_count() > 0) return {kBad, "with NaN or Inf"};
    return {kFine, "all finite"};
  }
  static StripState FateState(const Step& step) {
    if (step.entry.is_kept) return {kPinned, "pinned by KEEP"};
    if (step.keep.value_or(true)) return {kFine, "to stay"};
    return {kNothing, "to go"};
  }

  template <typename Get>
  Html OneStrip(std::string_view name, const Get& get) const {
    std::vector<StripState> states;
    std::map<std::string, std::size_t> counts;
    for (const Step* step : columns_) {
      states.push_back(get(*step));
      ++counts[states.back().words];
    }
    std::string words;
    for (const auto& [word, count] : counts) {
      words += fmt::format("{}{} {}", words.empty() ? "" : ", ", count, word);
    }
    return Markup("<span>{}</span>{}<small>{}</small>\n", Text(name),
                  Strip(name, StepNames(data_), states), Text(words));
  }

  Html Strips() const {
    Html strips = OneStrip("Verdict", VerdictState);
    const bool is_known =
        std::ranges::any_of(columns_, [](const Step* step) { return step->values.has_value(); });
    if (is_known) strips += OneStrip("Finite", FiniteState);
    if (data_.has_rules && data_.retention_problem.ok()) {
      strips += OneStrip("Retention", FateState);
    }
    return Markup("<div class=\"strips\">\n{}</div>\n", strips);
  }

  Html Sizes() const {
    const auto size = Column(
        [](const Step& step) { return std::optional(static_cast<double>(step.entry.size_bytes)); });
    const auto added = Column(
        [](const Step& step) { return std::optional(static_cast<double>(step.added_bytes)); });
    Html figures;
    if (size == added) {
      figures = Figure("Size of each checkpoint", "on disk; no files are shared",
                       BarChart(Chart("Size per step", Bytes()), size));
    } else {
      figures = Figure("Size of each checkpoint",
                       "dark: new on disk; pale: files shared with an older checkpoint",
                       BarChart(Chart("Size per step", Bytes()), size, added));
    }
    Values sum;
    double total = 0;
    for (const auto& one : added) sum.emplace_back(total += *one);
    figures += Figure("Total size on disk", "linked files counted once",
                      LineChart(Chart("Sum of sizes", Bytes()), sum));
    return Section("Size", Markup("<div class=\"figs\">\n{}</div>\n", figures));
  }

  Html Times() const {
    const auto save = Column([](const Step& step) { return step.save_seconds; });
    const auto interval = Column([](const Step& step) { return step.interval_seconds; });
    Html figures;
    Html note;
    if (Has(save)) {
      figures +=
          Figure("Time of each save",
                 "from the creation of its directory to that of its marker, by the file system",
                 BarChart(Chart("Time per save", Seconds()), save));
    } else {
      note = Markup(
          "<p class=\"dim\">The duration of saves is unknown: checkpoints do not record it, and "
          "the times of their files do not show it (the files were copied, or the storage has no "
          "creation times).</p>\n");
    }
    if (Has(interval)) {
      figures += Figure("Time between checkpoints", "since the preceding checkpoint",
                        BarChart(Chart("Interval", Seconds()), interval));
    }
    if (figures.empty()) return note.empty() ? Html() : Section("Time", note);
    return Section("Time", note + Markup("<div class=\"figs\">\n{}</div>\n", figures));
  }

  static std::optional<double> Metric(const Step& step, const std::string& key) {
    for (const auto& [name, text] : step.provenance) {
      if (name != key) continue;
      double value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error == std::errc() && end == text.data() + text.size()) return value;
    }
    return std::nullopt;
  }

  Html Metrics() const {
    std::set<std::string> keys;
    for (const Step* step : columns_) {
      for (const auto& [name, value] : step->provenance) {
        if (name.starts_with("metric.") && keys.size() < kMetricsMax) keys.insert(name);
      }
    }
    Html figures;
    for (const std::string& key : keys) {
      const auto values = Column([&](const Step& step) { return Metric(step, key); });
      ChartOptions chart = Chart(key, Plain());
      chart.from_zero = false;
      if (Has(values))
        figures += Figure(key, "as recorded by the training", LineChart(chart, values));
    }
    if (figures.empty()) return {};
    return Section("Metrics", Markup("<div class=\"figs\">\n{}</div>\n", figures));
  }

  Html Retention() const {
    if (!data_.has_rules) return {};
    if (!data_.retention_problem.ok()) {
      return Section("Retention",
                     Markup("<p class=\"bad\">{}</p>\n", Text(data_.retention_problem.ToString())));
    }
    const auto gone = static_cast<std::size_t>(std::ranges::count_if(
        data_.steps, [](const Step& step) { return !step.keep.value_or(true); }));
    return Section("Retention",
                   Markup("<p><code>ckpt prune</code> with the same rules would delete {} of {}, "
                          "{}. Nothing was changed. The table says why.</p>\n",
                          gone, Text(FormatCount(columns_.size(), "checkpoint")),
                          Text(BytesText(data_.bytes_to_free))));
  }

  Html Foot() const {
    std::string_view checked;
    switch (data_.level) {
      case VerifyLevel::kFiles:
        checked = "marker, index, and the length of each blob, without reading payload";
        break;
      case VerifyLevel::kStructure:
        checked = "everything except the payload";
        break;
      case VerifyLevel::kFull:
        checked = "every byte";
        break;
    }
    return Markup(
        "<footer>Checked at level <i>{}</i>: {}. Columns of charts are checkpoints in the order of "
        "the series, named by their steps. Made by ckpt report, sealpoint {}.</footer>\n",
        Text(VerifyLevelName(data_.level)), Text(checked), Text(VersionString()));
  }

  const ReportData& data_;
  const bool all_;
  const std::vector<const Step*> columns_;
};

}  // namespace

Html Section(std::string_view title, const Html& content) {
  return Markup("<section>\n<h2>{}</h2>\n{}</section>\n", Text(title), content);
}

Html Figure(std::string_view title, std::string_view note, const Html& chart) {
  return Markup("<figure>\n<h3>{}</h3>\n<figcaption>{}</figcaption>\n{}</figure>\n", Text(title),
                Text(note), chart);
}

std::vector<std::string> StepNames(const ReportData& data) {
  std::vector<std::string> names;
  for (const Step* step : data.Columns()) names.push_back(FormatStep(step->entry.step));
  return names;
}

std::string VerdictWord(const Step& step) {
  return step.is_good() ? "valid" : std::string(VerdictName(step.verdict));
}

std::string MakePage(const ReportData& data, bool all) { return Page(data, all).Make(); }

}  // namespace sealpoint::tools::report
