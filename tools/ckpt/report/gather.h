// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_REPORT_GATHER_H_
#define SEALPOINT_TOOLS_CKPT_REPORT_GATHER_H_

#include "sealpoint/status.h"
#include "tools/ckpt/report/facts.h"

namespace sealpoint::tools::report {

// Looks at a series. What is wrong with one checkpoint is among the facts. Shows its progress on
// standard error, if that is a terminal. Errors: InvalidArgument (rules), those of Series::List;
// NotFound if there is no such directory.
Result<Facts> Gather(const GatherOptions& options);

// Adds values and updates to the steps, from the store and, if the options say so, computed.
void GatherNorms(const GatherOptions& options, Facts& facts);

}  // namespace sealpoint::tools::report

#endif  // SEALPOINT_TOOLS_CKPT_REPORT_GATHER_H_
