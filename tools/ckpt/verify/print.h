// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_VERIFY_PRINT_H_
#define SEALPOINT_TOOLS_CKPT_VERIFY_PRINT_H_

#include <cstdint>
#include <string>

#include "sealpoint/verify.h"
#include "tools/ckpt/verify/options.h"
#include "tools/common/json.h"

namespace sealpoint::tools::verify {

// `corrupt: R-CHK-02 DIR/FILE:4096 tensor "NAME": MESSAGE`.
void PrintViolation(const Status& violation);
// `note: PATH: TEXT`.
void PrintNote(const std::string& path, const std::string& text);
// `hint: PATH: TEXT`; nothing if the text is empty.
void PrintHint(const std::string& path, const std::string& text);
// A file with more violations than these has one line, with their number.
inline constexpr std::uint64_t kViolationsPerFileMax = 20;
// "full", "full, part 2/7": what was checked.
std::string LevelText(VerifyLevel level, const VerifyPart& part);
// Violations, which with --all are printed as they are found; unless quiet also the notes and one
// line of summary.
void PrintReport(const VerifyReport& report, const Options& options);

// All members but the path and the violations.
void WriteReport(JsonWriter& json, const VerifyReport& report);

}  // namespace sealpoint::tools::verify

#endif  // SEALPOINT_TOOLS_CKPT_VERIFY_PRINT_H_
