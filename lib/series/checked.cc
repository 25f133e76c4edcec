// SPDX-License-Identifier: Apache-2.0
#include "lib/series/checked.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "lib/base/errors.h"
#include "sealpoint/series.h"

namespace sealpoint::internal::series {
namespace {

// 0 if the text is no step.
std::uint64_t StepsUpTo(std::string_view text) {
  std::uint64_t step = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, step);
  const bool is_step = error == std::errc() && stop == end && step < kNoStep;
  return is_step ? step + 1 : 0;
}

Status NotChecked(std::string_view reason) {
  return RuleError(Code::kInvalidArgument, "R-FPR-04",
                   StrCat("not checked for silent data corruption: ", reason));
}

}  // namespace

Status CheckedHistory::Look(std::uint64_t step, const metadata::Metadata& index) {
  std::string state;
  std::string upto;
  for (const auto& [key, value] : index.provenance()) {
    if (key == "sdc.state") state = value;
    if (key == "sdc.upto") upto = value;
  }
  if (state == "found") {
    const std::uint64_t steps = StepsUpTo(upto);
    good_steps_ = std::min(good_steps_.value_or(steps), steps);
  }
  if (state.empty()) return NotChecked("its provenance has no sdc.state");
  if (state != "checked") return NotChecked(StrCat("sdc.state is ", state));
  if (!good_steps_) return {};
  if (step == kNoStep) return NotChecked("it has no step, and a newer checkpoint has a finding");
  if (step < *good_steps_) return {};
  return NotChecked(StrCat("a newer checkpoint has a finding, and no sdc.upto of ", step));
}

}  // namespace sealpoint::internal::series
