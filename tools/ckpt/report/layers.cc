// SPDX-License-Identifier: Apache-2.0
//
// Norms of values and updates.
#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "tools/ckpt/report/chart.h"
#include "tools/ckpt/report/page.h"
#include "tools/common/text.h"

namespace sealpoint::tools::report {
namespace {

constexpr std::size_t kLayersShown = 64;

class Layers {
 public:
  explicit Layers(const ReportData& data) : data_(data), columns_(data.Columns()) {
    for (const Step* step : columns_) {
      if (step->values) {
        ++known_;
        for (const auto& [name, values] : *step->values) names_.insert(name);
      }
      if (step->update_squares) has_updates_ = true;
    }
  }

  Html Make() const {
    if (known_ == 0) return Section("Norms", Nothing());
    Html content;
    if (known_ < columns_.size()) {
      content = Markup("<p class=\"dim\">Known of {} of {} checkpoints. {}</p>\n", known_,
                       columns_.size(), How());
    }
    return Section("Norms", content + Charts() + Table());
  }

 private:
  static Html How() {
    return Markup(
        "<code>ckpt report --norms</code> computes and stores them for complete checkpoints.");
  }
  Html Nothing() const {
    return Markup(
        "<p class=\"dim\">Norms and non-finite values are unknown: no statistics of the series are "
        "stored. {}</p>\n",
        How());
  }

  template <typename Get>
  Values Column(const Get& get) const {
    Values values;
    for (const Step* step : columns_) values.push_back(get(*step));
    return values;
  }

  Values AllNorms() const {
    return Column([](const Step& step) -> std::optional<double> {
      if (!step.values) return std::nullopt;
      double squares = 0;
      for (const auto& [name, layer] : *step.values) squares += layer.squares;
      return std::sqrt(squares);
    });
  }
  Values AllUpdates() const {
    return Column([](const Step& step) -> std::optional<double> {
      if (!step.update_squares) return std::nullopt;
      double squares = 0;
      for (const auto& [name, one] : *step.update_squares) squares += one;
      return std::sqrt(squares);
    });
  }
  Values NormsOf(const std::string& layer) const {
    return Column([&](const Step& step) -> std::optional<double> {
      if (!step.values || !step.values->contains(layer)) return std::nullopt;
      return std::sqrt(step.values->at(layer).squares);
    });
  }
  Values UpdatesOf(const std::string& layer) const {
    return Column([&](const Step& step) -> std::optional<double> {
      if (!step.update_squares || !step.update_squares->contains(layer)) return std::nullopt;
      return std::sqrt(step.update_squares->at(layer));
    });
  }

  Html Charts() const {
    const auto options = [&](const char* label, bool from_zero) {
      return ChartOptions{.label = label, .steps = StepNames(data_), .from_zero = from_zero};
    };
    Html figures = Figure("L2 norm of all values", "finite values of all tensors",
                          LineChart(options("Norm per step", false), AllNorms()));
    if (has_updates_) {
      figures += Figure("L2 norm of the update",
                        "of the difference to the parent, or to the preceding checkpoint if the "
                        "parent was deleted",
                        LineChart(options("Update per step", true), AllUpdates()));
    }
    return Markup("<div class=\"figs\">\n{}</div>\n", figures);
  }

  // Newest known value of a column; "–" if there is none.
  static std::string Newest(const Values& values) {
    const auto last = std::find_if(values.rbegin(), values.rend(),
                                   [](const auto& value) { return value.has_value(); });
    return last == values.rend() ? "–" : fmt::format("{:.4g}", **last);
  }

  std::string Words(const Values& values) const {
    std::optional<std::size_t> least;
    std::optional<std::size_t> greatest;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!values[i]) continue;
      if (!least || *values[i] < *values[*least]) least = i;
      if (!greatest || *values[i] > *values[*greatest]) greatest = i;
    }
    if (!least) return "not known";
    const auto one = [&](std::size_t i) {
      return fmt::format("{:.4g} at step {}", *values[i], FormatStep(columns_[i]->entry.step));
    };
    return fmt::format("least {}, greatest {}", one(*least), one(*greatest));
  }

  Html Row(const std::string& layer) const {
    const Values norms = NormsOf(layer);
    const Values updates = UpdatesOf(layer);
    std::uint64_t count = 0;
    std::size_t nonfinite = 0;
    const Step* first = nullptr;
    for (const Step* step : columns_) {
      if (!step->values || !step->values->contains(layer)) continue;
      const LayerValues& values = step->values->at(layer);
      count = values.value_count;
      if (values.nonfinite_count() == 0) continue;
      ++nonfinite;
      if (first == nullptr) first = step;
    }
    Html row = Markup(
        "<td><code>{}</code></td><td class=\"n\">{}</td><td>{}</td>"
        "<td class=\"n\">{}</td>",
        Text(layer), count, Spark(Words(norms), norms), Text(Newest(norms)));
    if (has_updates_) {
      const bool is_frozen =
          std::ranges::all_of(updates, [](const auto& update) { return !update || *update == 0; });
      row += is_frozen ? Markup("<td class=\"dim\">unchanged</td><td class=\"n\">0</td>")
                       : Markup("<td>{}</td><td class=\"n\">{}</td>",
                                Spark(Words(updates), updates), Text(Newest(updates)));
    }
    return Markup("<tr>{}{}</tr>\n", row,
                  first == nullptr ? Markup("<td>–</td>")
                                   : Markup("<td class=\"bad\">in {}, first at step {}</td>",
                                            Text(FormatCount(nonfinite, "checkpoint")),
                                            Text(FormatStep(first->entry.step))));
  }

  Html Table() const {
    Html rows = Markup(
        "<tr><th>Layer</th><th class=\"n\">Values</th><th>L2 norm</th>"
        "<th class=\"n\">newest</th>");
    if (has_updates_) rows += Markup("<th>Update</th><th class=\"n\">newest</th>");
    rows += Markup("<th>NaN or Inf</th></tr>\n");
    std::size_t shown = 0;
    for (const std::string& name : names_) {
      if (shown++ < kLayersShown) rows += Row(name);
    }
    const Html more =
        names_.size() <= kLayersShown
            ? Html()
            : Markup(" {} more are omitted: a smaller <code>--depth</code> groups them.",
                     names_.size() - kLayersShown);
    return Markup(
        "<p class=\"dim\">By layer: tensors that share the first {} of their names. Each small "
        "chart has its own scale.{}</p>\n<div class=\"scroll\">\n<table>\n{}"
        "</table>\n</div>\n",
        Text(FormatCount(data_.depth, "part")), more, rows);
  }

  const ReportData& data_;
  const std::vector<const Step*> columns_;
  std::set<std::string> names_;
  std::size_t known_ = 0;
  bool has_updates_ = false;
};

}  // namespace

Html NormsSection(const ReportData& data) { return Layers(data).Make(); }

}  // namespace sealpoint::tools::report
