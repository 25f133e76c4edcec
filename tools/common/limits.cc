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
         "Read checkpoints N times as large as the limits allow")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, kFactorMax));
}

const Limits& TypedLimits() { return limits; }

std::string HintForLimit(const Status& error) {
  if (error.code() != Code::kLimitExceeded) return "";
  return "--raise-limits N lets it be N times as large; give it for what you trust";
}

}  // namespace sealpoint::tools
