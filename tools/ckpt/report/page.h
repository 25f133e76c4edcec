// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_REPORT_PAGE_H_
#define SEALPOINT_TOOLS_CKPT_REPORT_PAGE_H_

#include <string>
#include <string_view>

#include "tools/ckpt/report/html.h"
#include "tools/ckpt/report/report_data.h"

namespace sealpoint::tools::report {

// A page begins with this: one that does may be replaced by a new one.
inline constexpr std::string_view kPageBegin =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
    "<meta name=\"generator\" content=\"ckpt report\">\n";

// One HTML page that needs nothing else. `all`: its table has every checkpoint, however many.
std::string MakePage(const ReportData& data, bool all);

// Sections of it.
Html Attention(const ReportData& data);
Html NormsSection(const ReportData& data);
Html CheckpointTable(const ReportData& data, bool all);
Html AttemptTable(const ReportData& data);
Html Details(const ReportData& data);

// How sections write alike.
Html Section(std::string_view title, const Html& content);
Html Figure(std::string_view title, std::string_view note, const Html& chart);
// "100" of the columns.
std::vector<std::string> StepNames(const ReportData& data);
std::string VerdictWord(const Step& step);

}  // namespace sealpoint::tools::report

#endif  // SEALPOINT_TOOLS_CKPT_REPORT_PAGE_H_
