// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_VERIFY_OPTIONS_H_
#define SEALPOINT_TOOLS_CKPT_VERIFY_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "sealpoint/verify.h"
#include "tools/common/exit_status.h"

namespace sealpoint::tools {

struct Options {
  std::vector<std::string> paths;   // checkpoints
  std::vector<std::string> series;  // directories of checkpoints
  VerifyLevel level = VerifyLevel::kFull;
  int threads = 1;
  bool all = false;
  bool json = false;
  bool quiet = false;
};

// Fills `options`. What to return at once, if anything; it is reported.
std::optional<ExitStatus> ParseOptions(int argc, const char* const* argv, Options& options);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_VERIFY_OPTIONS_H_
