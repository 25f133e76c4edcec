// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_VERIFY_PRINT_H_
#define SEALPOINT_TOOLS_CKPT_VERIFY_PRINT_H_

#include <string>

#include "sealpoint/verify.h"
#include "tools/common/json.h"

namespace sealpoint::tools {

// `corrupt: R-CHK-02 DIR/FILE:4096 tensor "NAME": MESSAGE`.
void PrintViolation(const Status& violation);
// `note: PATH: TEXT`.
void PrintNote(const std::string& path, const std::string& text);
// Violations; with `verbose` also the notes and one line of summary.
void PrintReport(const VerifyReport& report, bool verbose);

Json ReportToJson(const VerifyReport& report);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_VERIFY_PRINT_H_
