// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_LS_OPTIONS_H_
#define SEALPOINT_TOOLS_CKPT_LS_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tools/ckpt/ls/plan.h"

namespace sealpoint::tools::ls {

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
  // For checkpoints of other formats, as ForeignOptions has them.
  std::vector<std::string> per_rank;
  std::string base;
  std::optional<std::uint64_t> metadata_memory_bytes;
  bool json = false;
};

// Adds what fills `options`, which must live until the arguments are parsed.
void AddOptions(CLI::App& app, Options& options);

}  // namespace sealpoint::tools::ls

#endif  // SEALPOINT_TOOLS_CKPT_LS_OPTIONS_H_
