// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_OPTIONS_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_OPTIONS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/ckpt-inspect/plan.h"
#include "tools/common/exit_status.h"

namespace sealpoint::tools {

// What of the checkpoint is shown.
enum class Subject { kOverview, kTensors, kValues, kObject, kPlan };

struct Options {
  std::string path;
  Subject subject = Subject::kOverview;
  std::vector<std::string> patterns;  // of kTensors, kValues and kObject
  std::string box;                    // of kValues; empty: whole tensors
  std::optional<std::size_t> depth_max;
  bool is_long = false;
  bool all = false;
  PlanOptions plan;
  bool json = false;
};

// Fills `options`. What to return at once, if anything; it is reported.
std::optional<ExitStatus> ParseOptions(int argc, const char* const* argv, Options& options);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_OPTIONS_H_
