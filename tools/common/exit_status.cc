// SPDX-License-Identifier: Apache-2.0
#include "tools/common/exit_status.h"

#include <algorithm>
#include <array>

namespace sealpoint::tools {

ExitStatus ExitStatusOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kCommitted:
      return ExitStatus::kValid;
    case Verdict::kUncommitted:
      return ExitStatus::kUncommitted;
    case Verdict::kIncomplete:
      return ExitStatus::kIncomplete;
    case Verdict::kCorrupt:
      return ExitStatus::kCorrupt;
    case Verdict::kUnsupported:
      return ExitStatus::kUnsupported;
    case Verdict::kUnreadable:
      return ExitStatus::kUnreadable;
  }
  return ExitStatus::kUnreadable;
}

ExitStatus Worse(ExitStatus a, ExitStatus b) {
  constexpr std::array kWorstFirst = {ExitStatus::kCorrupt,     ExitStatus::kIncomplete,
                                      ExitStatus::kUnreadable,  ExitStatus::kUnsupported,
                                      ExitStatus::kUncommitted, ExitStatus::kUsage,
                                      ExitStatus::kValid};
  const auto rank = [&](ExitStatus status) {
    return std::find(kWorstFirst.begin(), kWorstFirst.end(), status);
  };
  return rank(b) < rank(a) ? b : a;
}

}  // namespace sealpoint::tools
