// SPDX-License-Identifier: Apache-2.0
#include "tools/common/limits.h"

#include <cstdint>

namespace sealpoint::tools {
namespace {

constexpr std::uint64_t kFactorMax = 1'000'000;

Limits limits;  // set while the arguments are parsed

}  // namespace

void AddRaiseLimits(CLI::App& app) {
  app.add_option_function<std::uint64_t>(
         "--raise-limits", [](std::uint64_t factor) { limits = RaisedLimits(factor); },
         "Multiply the reader's limits by N, for trusted checkpoints")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, kFactorMax));
}

const Limits& TypedLimits() { return limits; }

std::string HintForLimit(const Status& error) {
  if (error.code() != Code::kLimitExceeded) return "";
  return "--raise-limits N multiplies this limit by N; use it only for trusted checkpoints";
}

}  // namespace sealpoint::tools
