// SPDX-License-Identifier: Apache-2.0
#include "fuzz/support/target.h"

#include <cstdio>
#include <cstdlib>

namespace sealpoint::fuzz {

void Require(bool condition, const std::string& reason) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: %s\n", reason.c_str());
  std::abort();
}

void RequireJudgement(const Status& error) {
  const Code code = error.code();
  Require(code == Code::kCorrupt || code == Code::kUnsupported || code == Code::kLimitExceeded ||
              code == Code::kIncomplete || code == Code::kUncommitted ||
              code == Code::kNotACheckpoint,
          "not an error of the bytes: " + error.ToString());
  Require(error.place().rule.starts_with("R-"), "no rule: " + error.ToString());
}

std::uint8_t InputReader::Take8() {
  if (rest_.empty()) return 0;
  const auto value = static_cast<std::uint8_t>(rest_.front());
  rest_ = rest_.subspan(1);
  return value;
}

std::uint32_t InputReader::Take32() {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= static_cast<std::uint32_t>(Take8()) << (8 * i);
  return value;
}

}  // namespace sealpoint::fuzz
