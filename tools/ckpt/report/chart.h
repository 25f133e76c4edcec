// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_REPORT_CHART_H_
#define SEALPOINT_TOOLS_CKPT_REPORT_CHART_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ckpt/report/html.h"

// Charts as inline SVG. Each has one column per checkpoint, in the order of the series: steps may
// repeat and go back. The cost of a chart is bounded, however many columns it has.

namespace sealpoint::tools::report {

// Absent where nothing is known.
using Values = std::vector<std::optional<double>>;

// A value with its unit, for people: the unit fits `greatest`, and the digits tell values apart
// that differ by `resolution`.
using Unit = std::function<std::string(double value, double greatest, double resolution)>;
Unit Bytes();
Unit Seconds();
Unit Plain();
// The value alone.
std::string InWords(const Unit& unit, double value);

struct ChartOptions {
  std::string label{};               // for readers of the screen
  std::vector<std::string> steps{};  // of the columns: "100"
  Unit unit = Plain();
  bool from_zero = true;
};

// One bar per column; the part `lower` of it, if that is not empty, is drawn full and the rest
// pale. With very many columns a bar is the greatest of several.
Html BarChart(const ChartOptions& options, const Values& whole, const Values& lower = {});
// A line, broken where a value is absent.
Html LineChart(const ChartOptions& options, const Values& values);
// A small line for a cell of a table; its scale is its own.
Html Spark(std::string_view label, const Values& values);

// Neighbouring columns in the same state are one block.
struct StripState {
  std::size_t kind = 0;  // number of the class: "k0", "k1", …
  std::string words{};
  friend bool operator==(const StripState&, const StripState&) = default;
};
Html Strip(std::string_view label, const std::vector<std::string>& steps,
           const std::vector<StripState>& states);

}  // namespace sealpoint::tools::report

#endif  // SEALPOINT_TOOLS_CKPT_REPORT_CHART_H_
