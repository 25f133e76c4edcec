// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/report/report_data.h"

#include <algorithm>

namespace sealpoint::tools::report {

void LayerValues::Add(const LayerValues& more) {
  value_count += more.value_count;
  nan_count += more.nan_count;
  infinity_count += more.infinity_count;
  squares += more.squares;
}

std::uint64_t Step::nonfinite_count() const {
  std::uint64_t count = 0;
  if (values) {
    for (const auto& [name, layer] : *values) count += layer.nonfinite_count();
  }
  return count;
}

std::vector<const Step*> ReportData::Columns() const {
  std::vector<const Step*> columns;
  for (const Step& step : steps) {
    if (step.has_place()) columns.push_back(&step);
  }
  std::ranges::reverse(columns);
  return columns;
}

const Step* ReportData::NewestWhole() const {
  const auto found = std::ranges::find_if(
      steps, [](const Step& step) { return step.has_place() && step.is_good(); });
  return found == steps.end() ? nullptr : &*found;
}

std::uint64_t ReportData::size_bytes() const {
  std::uint64_t size = 0;
  for (const Step& step : steps) size += step.entry.size_bytes;
  return size;
}

std::uint64_t ReportData::distinct_bytes() const {
  std::uint64_t size = 0;
  for (const Step& step : steps) size += step.added_bytes;
  return size;
}

std::uint64_t ReportData::CountOf(Verdict verdict) const {
  return static_cast<std::uint64_t>(std::ranges::count(steps, verdict, &Step::verdict));
}

ExitStatus ReportData::exit_status() const {
  ExitStatus status = ExitStatus::kValid;
  bool has_newest = false;
  for (const Step& step : steps) {
    if (step.entry.verdict == Verdict::kUncommitted) continue;
    has_newest |= step.has_place();
    status = Worse(status, ExitStatusOf(step.verdict));
    // It could not be read when the series was listed: it may be the newest.
    if (step.entry.verdict == Verdict::kUnreadable) status = Worse(status, ExitStatus::kUnreadable);
  }
  if (has_newest) return status;
  return Worse(status, steps.empty() ? ExitStatus::kUnreadable : ExitStatus::kUncommitted);
}

}  // namespace sealpoint::tools::report
