// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_SERIES_RULES_H_
#define SEALPOINT_TOOLS_CKPT_SERIES_RULES_H_

#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>

#include "sealpoint/series.h"
#include "sealpoint/status.h"

// Options that say which checkpoints of a series stay.

namespace sealpoint::tools {

// As they are typed; 0 and empty: not given.
struct RetentionRules {
  std::uint32_t keep_last = 0;
  std::uint64_t max_bytes = 0;
  std::uint64_t keep_within_s = 0;
  std::uint64_t keep_every = 0;
  std::uint32_t hourly = 0;
  std::uint32_t daily = 0;
  std::uint32_t weekly = 0;
  std::uint32_t keep_checked = 0;
  std::string best;  // KEY:min|max[:N]

  bool any() const;
};

// Adds the options --keep-… and --max-bytes.
void AddRetentionRules(CLI::App& app, RetentionRules& rules);
// Errors: InvalidArgument (--keep-best).
Result<RetentionPolicy> PolicyOf(const RetentionRules& rules);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_SERIES_RULES_H_
