// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/report/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <utility>

namespace sealpoint::tools::report {
namespace {

// In units of the viewBox, which is about as wide on a screen of a computer.
constexpr double kWidth = 480;
constexpr double kHeight = 170;
constexpr double kLeft = 58;
constexpr double kRight = 8;
constexpr double kTop = 12;
constexpr double kBottom = 146;
constexpr double kSparkWidth = 120;
constexpr double kSparkHeight = 28;
constexpr double kStripWidth = 1000;

// No chart has more marks, or more places that say what is there.
constexpr std::size_t kMarksMax = 240;
constexpr std::size_t kTitlesMax = 120;
constexpr std::size_t kSparkMarksMax = 60;
constexpr std::size_t kDotsMax = 60;
constexpr std::size_t kCellsMax = 60;

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();

  bool empty() const { return least > greatest; }
  void Add(double value) {
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
};

Range RangeOf(std::span<const std::optional<double>> values) {
  Range range;
  for (const auto& value : values) {
    if (value && std::isfinite(*value)) range.Add(*value);
  }
  return range;
}

// Neighbouring columns, [begin, end).
struct Bin {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::vector<Bin> BinsOf(std::size_t columns, std::size_t count_max) {
  const std::size_t count = std::min(columns, count_max);
  std::vector<Bin> bins;
  for (std::size_t i = 0; i < count; ++i) {
    bins.push_back({i * columns / count, (i + 1) * columns / count});
  }
  return bins;
}

std::span<const std::optional<double>> In(const Values& values, const Bin& bin) {
  return std::span(values).subspan(bin.begin, bin.end - bin.begin);
}

// A power of ten times 1, 2 or 5: three to six of them are about the length.
double TickStep(double length) {
  const double power = std::pow(10, std::floor(std::log10(length / 3)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (length / (factor * power) <= 5) return factor * power;
  }
  return 10 * power;
}

// The place of values on a chart.
class Scale {
 public:
  Scale(const Values& values, bool from_zero) : range_(RangeOf(values)) {
    if (range_.empty()) range_ = {0, 1};
    if (from_zero) range_.Add(0);
    const double least = range_.least;
    const double length = range_.greatest - least;
    // What differs by rounding alone is one value: between the two there is no room for a tick.
    const bool is_one_value =
        length <= 1e-12 * std::max(std::abs(least), std::abs(range_.greatest));
    const double room = is_one_value ? std::max(std::abs(least) * 0.05, 1e-12) : length * 0.06;
    range_.greatest += room;
    if (!from_zero) range_.least -= room;
    if (range_.greatest - range_.least < 1e-11 && from_zero) range_.greatest = 1;
  }

  double At(double value, double top, double bottom) const {
    return bottom - (value - range_.least) / (range_.greatest - range_.least) * (bottom - top);
  }
  double At(double value) const { return At(value, kTop, kBottom); }

  double step() const { return TickStep(range_.greatest - range_.least); }
  double greatest() const { return std::max(std::abs(range_.greatest), std::abs(range_.least)); }
  std::vector<double> Ticks() const {
    std::vector<double> ticks;
    // A whole number of steps each, so that zero is zero, and not a negative one.
    for (double i = std::ceil(range_.least / step()); i * step() <= range_.greatest; ++i) {
      ticks.push_back(i * step() + 0.0);
    }
    return ticks;
  }

 private:
  Range range_;
};

double SlotOf(std::size_t columns) {
  return (kWidth - kLeft - kRight) / static_cast<double>(std::max<std::size_t>(columns, 1));
}
double MiddleOf(const Bin& bin, double slot) {
  return kLeft + slot * static_cast<double>(bin.begin + bin.end) / 2;
}

std::string Words(const std::vector<std::string>& steps, const Bin& bin) {
  if (bin.end - bin.begin == 1) return "step " + steps[bin.begin];
  return fmt::format("steps {} to {}", steps[bin.begin], steps[bin.end - 1]);
}

Html Axes(const ChartOptions& options, const Scale& scale) {
  Html html;
  for (const double tick : scale.Ticks()) {
    const double y = scale.At(tick);
    html += Markup(R"(<path class="g" d="M{:.0f} {:.1f}H{:.0f}"/>)", kLeft, y, kWidth - kRight);
    html += Markup(R"(<text x="{:.0f}" y="{:.1f}" text-anchor="end">{}</text>)", kLeft - 6, y + 4,
                   Text(options.unit(tick, scale.greatest(), scale.step())));
  }
  constexpr std::size_t kTicks = 4;
  const std::size_t columns = options.steps.size();
  const double slot = SlotOf(columns);
  const std::size_t last = std::min(kTicks, std::max<std::size_t>(columns, 1) - 1);
  for (std::size_t i = 0; i <= last && columns > 0; ++i) {
    const std::size_t column = last == 0 ? 0 : i * (columns - 1) / last;
    const double x = MiddleOf({column, column + 1}, slot);
    html +=
        Markup(R"(<text x="{:.1f}" y="{:.0f}" text-anchor="{}">{}</text>)", x, kHeight - 6,
               i == last && i > 0 ? Markup("end") : Markup("middle"), Text(options.steps[column]));
  }
  return html;
}

// Invisible columns that say what is there.
Html Titles(const ChartOptions& options, const Values& values, const Values& lower) {
  Html html;
  const double slot = SlotOf(values.size());
  const double greatest = std::max(0.0, RangeOf(values).greatest);
  const auto words = [&](const Range& range) {
    if (range.empty()) return std::string("not known");
    const auto one = [&](double value) {
      return options.unit(value, value == 0 ? greatest : std::abs(value), std::abs(value) / 1000);
    };
    const std::string least = one(range.least);
    return range.least == range.greatest ? least
                                         : fmt::format("{} to {}", least, one(range.greatest));
  };
  for (const Bin& bin : BinsOf(values.size(), kTitlesMax)) {
    std::string text = Words(options.steps, bin) + ": " + words(RangeOf(In(values, bin)));
    if (!lower.empty()) text += ", new " + words(RangeOf(In(lower, bin)));
    html += Markup(
        R"(<rect class="h" x="{:.1f}" y="0" width="{:.1f}" height="{:.0f}"><title>{}</title></rect>)",
        kLeft + slot * static_cast<double>(bin.begin),
        slot * static_cast<double>(bin.end - bin.begin), kBottom, Text(text));
  }
  return html;
}

Html Svg(const ChartOptions& options, const Scale& scale, const Html& marks, const Html& titles) {
  return Markup(
      "<svg class=\"chart\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">{}{}{}"
      "</svg>\n",
      kWidth, kHeight, Text(options.label), Axes(options, scale), marks, titles);
}

Html Bars(const Values& values, const Scale& scale, const Html& kind) {
  const std::vector<Bin> bins = BinsOf(values.size(), kMarksMax);
  const double slot = SlotOf(values.size());
  const double width = SlotOf(bins.size()) * (bins.size() > kCellsMax ? 1.05 : 0.72);
  constexpr double kWidest = 40;
  std::string path;
  for (const Bin& bin : bins) {
    const Range range = RangeOf(In(values, bin));
    if (range.empty()) continue;
    path += fmt::format("M{:.1f} {:.1f}V{:.1f}", MiddleOf(bin, slot), kBottom,
                        scale.At(range.greatest));
  }
  return Markup(R"(<path class="{}" stroke-width="{:.2f}" d="{}"/>)", kind,
                std::min(width, kWidest), Text(path));
}

// The line through the values, of a bin with several through both extremes.
std::string LinePath(const Values& values, std::size_t marks_max, const auto& x_of,
                     const auto& y_of) {
  std::string path;
  bool is_broken = true;
  for (const Bin& bin : BinsOf(values.size(), marks_max)) {
    const Range range = RangeOf(In(values, bin));
    if (range.empty()) {
      is_broken = true;
      continue;
    }
    for (const double value : {range.least, range.greatest}) {
      path += fmt::format("{}{:.1f} {:.1f}", is_broken ? 'M' : 'L', x_of(bin), y_of(value));
      is_broken = false;
      if (range.least == range.greatest) break;
    }
  }
  return path;
}

// A line of no length with a round end is a dot. It shows values with gaps on both sides, too.
Html Dots(const Values& values, const Scale& scale) {
  std::string path;
  const double slot = SlotOf(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_known = values[i] && std::isfinite(*values[i]);
    const bool is_alone = (i == 0 || !values[i - 1]) && (i + 1 == values.size() || !values[i + 1]);
    if (!is_known || (values.size() > kDotsMax && !is_alone)) continue;
    path += fmt::format("M{:.1f} {:.1f}h0", MiddleOf({i, i + 1}, slot), scale.At(*values[i]));
  }
  return path.empty() ? Html() : Markup(R"(<path class="d" d="{}"/>)", Text(path));
}

// The greatest kind of a bin, with the number of columns of each state if there are several.
StripState Together(std::span<const StripState> states) {
  StripState together = states.front();
  std::map<std::string, std::size_t> counts;
  for (const StripState& state : states) {
    together.kind = std::max(together.kind, state.kind);
    ++counts[state.words];
  }
  if (counts.size() == 1) return together;
  together.words.clear();
  for (const auto& [words, count] : counts) {
    together.words += fmt::format("{}{} {}", together.words.empty() ? "" : ", ", count, words);
  }
  return together;
}

std::vector<std::pair<Bin, StripState>> BlocksOf(const std::vector<StripState>& states) {
  std::vector<std::pair<Bin, StripState>> blocks;
  for (const Bin& bin : BinsOf(states.size(), kMarksMax)) {
    StripState state = Together(std::span(states).subspan(bin.begin, bin.end - bin.begin));
    if (states.size() > kCellsMax && !blocks.empty() && blocks.back().second == state) {
      blocks.back().first.end = bin.end;
    } else {
      blocks.emplace_back(bin, std::move(state));
    }
  }
  return blocks;
}

// Digits behind the point that tell values apart.
int Decimals(double resolution) {
  constexpr int kMost = 6;
  if (!(resolution > 0)) return 0;
  return std::clamp(static_cast<int>(-std::floor(std::log10(resolution) + 1e-9)), 0, kMost);
}

struct UnitName {
  double size;
  std::string_view name;
};

std::string InUnit(const UnitName& unit, double value, double resolution) {
  return fmt::format("{:.{}f} {}", value / unit.size, Decimals(resolution / unit.size), unit.name);
}

}  // namespace

Unit Bytes() {
  return [](double value, double greatest, double resolution) {
    static constexpr auto kUnits = std::to_array<UnitName>(
        {{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}, {1e15, "PB"}});
    const UnitName* unit = kUnits.data();
    for (const UnitName& unit_name : kUnits) {
      if (greatest >= unit_name.size) unit = &unit_name;
    }
    return InUnit(*unit, value, resolution);
  };
}

Unit Seconds() {
  return [](double value, double greatest, double resolution) {
    static constexpr auto kUnits =
        std::to_array<UnitName>({{1e-3, "ms"}, {1, "s"}, {60, "min"}, {3600, "h"}, {86400, "d"}});
    // A unit begins to be used where there are two of it.
    const UnitName* unit = kUnits.data();
    for (std::size_t i = 1; i < kUnits.size(); ++i) {
      if (greatest >= (i == 1 ? 1 : 2 * kUnits[i].size)) unit = &kUnits[i];
    }
    return InUnit(*unit, value, resolution);
  };
}

Unit Plain() {
  return [](double value, double greatest, double resolution) {
    constexpr double kLarge = 1e6;
    constexpr double kSmall = 1e-3;
    if (value != 0 && (greatest >= kLarge || greatest < kSmall))
      return fmt::format("{:.3g}", value);
    return fmt::format("{:.{}f}", value, Decimals(resolution));
  };
}

std::string InWords(const Unit& unit, double value) {
  constexpr double kParts = 100;
  return unit(value, std::abs(value), std::abs(value) / kParts);
}

Html BarChart(const ChartOptions& options, const Values& whole, const Values& lower) {
  const Scale scale(whole, true);
  Html marks = Bars(whole, scale, lower.empty() ? Markup("b") : Markup("b pale"));
  if (!lower.empty()) marks += Bars(lower, scale, Markup("b"));
  return Svg(options, scale, marks, Titles(options, whole, lower));
}

Html LineChart(const ChartOptions& options, const Values& values) {
  const Scale scale(values, options.from_zero);
  const double slot = SlotOf(values.size());
  const std::string path = LinePath(
      values, kMarksMax, [&](const Bin& bin) { return MiddleOf(bin, slot); },
      [&](double value) { return scale.At(value); });
  const Html marks = Markup(R"(<path class="l" d="{}"/>)", Text(path)) + Dots(values, scale);
  return Svg(options, scale, marks, Titles(options, values, {}));
}

Html Spark(std::string_view label, const Values& values) {
  constexpr double kEdge = 3;
  const Scale scale(values, false);
  const double slot =
      (kSparkWidth - 2 * kEdge) / static_cast<double>(std::max<std::size_t>(values.size(), 1));
  const auto x_of = [&](const Bin& bin) {
    return kEdge + slot * static_cast<double>(bin.begin + bin.end) / 2;
  };
  const auto y_of = [&](double value) { return scale.At(value, kEdge, kSparkHeight - kEdge); };
  std::string path = LinePath(values, kSparkMarksMax, x_of, y_of);
  std::size_t last = values.size();
  while (last > 0 && !values[last - 1]) --last;
  const std::string dot =
      last == 0 ? std::string()
                : fmt::format("M{:.1f} {:.1f}h0", x_of({last - 1, last}), y_of(*values[last - 1]));
  return Markup(
      "<svg class=\"spark\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\"><title>{}</title>"
      "<path class=\"l\" d=\"{}\"/><path class=\"d\" d=\"{}\"/></svg>",
      kSparkWidth, kSparkHeight, Text(label), Text(path), Text(dot));
}

Html Strip(std::string_view label, const std::vector<std::string>& steps,
           const std::vector<StripState>& states) {
  const bool are_cells = states.size() <= kCellsMax;
  const double slot = kStripWidth / static_cast<double>(std::max<std::size_t>(states.size(), 1));
  constexpr double kLeastWidth = 5;
  Html blocks;
  // Those of lower kinds first, so that a small block of a higher one stays visible.
  std::vector<std::pair<std::size_t, Html>> drawn;
  for (const auto& [bin, state] : BlocksOf(states)) {
    const double width = slot * static_cast<double>(bin.end - bin.begin) - (are_cells ? 3 : 0);
    drawn.emplace_back(
        state.kind,
        Markup(
            R"(<rect class="k{}" x="{:.1f}" width="{:.1f}" height="16"><title>{}</title></rect>)",
            state.kind, slot * static_cast<double>(bin.begin), std::max(width, kLeastWidth),
            Text(Words(steps, bin) + ": " + state.words)));
  }
  std::ranges::stable_sort(drawn, {}, &std::pair<std::size_t, Html>::first);
  for (const auto& [kind, block] : drawn) blocks += block;
  return Markup(
      "<svg class=\"strip\" viewBox=\"0 0 {:.0f} 16\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"{}\">{}</svg>\n",
      kStripWidth, Text(label), blocks);
}

}  // namespace sealpoint::tools::report
