// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/verify.h"

namespace sealpoint {

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kCommitted:
      return "committed";
    case Verdict::kUncommitted:
      return "uncommitted";
    case Verdict::kIncomplete:
      return "incomplete";
    case Verdict::kCorrupt:
      return "corrupt";
    case Verdict::kUnsupported:
      return "unsupported";
    case Verdict::kUnreadable:
      return "unreadable";
  }
  return "unknown";
}

std::string_view VerifyLevelName(VerifyLevel level) {
  switch (level) {
    case VerifyLevel::kFiles:
      return "files";
    case VerifyLevel::kStructure:
      return "structure";
    case VerifyLevel::kFull:
      return "full";
  }
  return "unknown";
}

Verdict VerdictOf(const Status& error) {
  switch (error.code()) {
    case Code::kOk:
      return Verdict::kCommitted;
    case Code::kUncommitted:
      return Verdict::kUncommitted;
    case Code::kIncomplete:
      return Verdict::kIncomplete;
    case Code::kCorrupt:
      return Verdict::kCorrupt;
    case Code::kUnsupported:
    case Code::kLimitExceeded:
      return Verdict::kUnsupported;
    default:
      return Verdict::kUnreadable;
  }
}

}  // namespace sealpoint
