// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CONTAINER_RULE_MATCHERS_H_
#define SEALPOINT_TESTS_SUPPORT_CONTAINER_RULE_MATCHERS_H_

#include <gmock/gmock.h>

#include <cstdint>
#include <optional>
#include <string>

#include "sealpoint/status.h"

namespace sealpoint::testing {

MATCHER_P(HasCode, code, std::string("has code ") + std::string(CodeName(code))) {
  *result_listener << "which is " << arg.ToString();
  return arg.code() == code;
}
MATCHER_P2(FailsRule, code, rule, std::string("breaks ") + rule) {
  *result_listener << "which is " << arg.ToString();
  return arg.code() == code && arg.place().rule == rule;
}
// EXPECT_THAT(DecodeX(bytes).status(), BreaksRule(Code::kCorrupt, "R-HDR-04", 40)) expects an error
// with this code, this rule and this offset.
MATCHER_P3(BreaksRule, code, rule, offset,
           std::string(negation ? "does not break " : "breaks ") + rule + " at offset " +
               std::to_string(offset)) {
  *result_listener << "which is " << arg.ToString();
  return arg.code() == code && arg.place().rule == rule &&
         arg.place().offset == std::optional<std::uint64_t>(static_cast<std::uint64_t>(offset));
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CONTAINER_RULE_MATCHERS_H_
