// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_REPORT_COLLECT_H_
#define SEALPOINT_TOOLS_CKPT_REPORT_COLLECT_H_

#include "sealpoint/status.h"
#include "tools/ckpt/report/report_data.h"

namespace sealpoint::tools::report {

// Collects the data of a report about a series, including the problems of each checkpoint. Shows
// its progress on standard error, if that is a terminal. Errors: InvalidArgument (rules), those of
// Series::List; NotFound if the directory does not exist.
Result<ReportData> CollectData(const CollectOptions& options);

// Adds norms of values and updates to the steps: those stored, and computed ones if requested.
void CollectNorms(const CollectOptions& options, ReportData& data);

}  // namespace sealpoint::tools::report

#endif  // SEALPOINT_TOOLS_CKPT_REPORT_COLLECT_H_
