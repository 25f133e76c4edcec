// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_REPORT_PRINT_JSON_H_
#define SEALPOINT_TOOLS_CKPT_REPORT_PRINT_JSON_H_

#include <string>

#include "tools/ckpt/report/report_data.h"

namespace sealpoint::tools::report {

// The document of --json (docs/reference/tools.md). `out`: path of the page; empty without one.
void WriteJson(const ReportData& data, const std::string& out);

}  // namespace sealpoint::tools::report

#endif  // SEALPOINT_TOOLS_CKPT_REPORT_PRINT_JSON_H_
