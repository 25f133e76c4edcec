// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_REPORT_PRINT_JSON_H_
#define SEALPOINT_TOOLS_CKPT_REPORT_PRINT_JSON_H_

#include <string>

#include "tools/ckpt/report/facts.h"

namespace sealpoint::tools::report {

// The document of --json (docs/tools.md). `out`: where the page is; empty if none was made.
void WriteJson(const Facts& facts, const std::string& out);

}  // namespace sealpoint::tools::report

#endif  // SEALPOINT_TOOLS_CKPT_REPORT_PRINT_JSON_H_
