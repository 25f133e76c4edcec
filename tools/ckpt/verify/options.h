// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_VERIFY_OPTIONS_H_
#define SEALPOINT_TOOLS_CKPT_VERIFY_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "sealpoint/verify.h"

namespace sealpoint::tools::verify {

struct Options {
  std::vector<std::string> paths;   // checkpoints
  std::vector<std::string> series;  // directories of checkpoints
  std::vector<std::string> bases;   // directories of bases
  VerifyLevel level = VerifyLevel::kFull;
  VerifyPart part{};
  bool is_part_drawn = false;
  std::optional<std::uint64_t> since;      // of series: the step
  std::string state;                       // path of a StateFile; may be empty
  std::uint64_t bytes_per_second_max = 0;  // 0: no limit
  int threads = 1;
  bool fingerprints = false;
  bool all = false;
  bool json = false;
  bool quiet = false;
};

// Adds what fills `options`, which must live until the arguments are parsed.
void AddOptions(CLI::App& app, Options& options);

}  // namespace sealpoint::tools::verify

#endif  // SEALPOINT_TOOLS_CKPT_VERIFY_OPTIONS_H_
