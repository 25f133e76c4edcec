// SPDX-License-Identifier: Apache-2.0
#include "tests/support/crash/history.h"

#include <algorithm>
#include <string_view>

namespace sealpoint::testing {
namespace {

std::string_view VerbOf(CrashOpKind kind) {
  switch (kind) {
    case CrashOpKind::kMakeDirectory:
      return "make directory ";
    case CrashOpKind::kCreate:
      return "create ";
    case CrashOpKind::kWrite:
      return "write ";
    case CrashOpKind::kSyncFile:
      return "sync ";
    case CrashOpKind::kClose:
      return "close ";
    case CrashOpKind::kLink:
    case CrashOpKind::kRename:
      return "publish ";
    case CrashOpKind::kRemove:
      return "remove ";
    case CrashOpKind::kRemoveDirectory:
      return "remove directory ";
    case CrashOpKind::kSyncDirectory:
      return "sync directory ";
    case CrashOpKind::kPut:
      return "put ";
    case CrashOpKind::kUpload:
      return "upload ";
    case CrashOpKind::kReported:
      return "report ";
  }
  return "";
}

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

}  // namespace

std::string WithoutIds(std::string_view name) {
  constexpr std::size_t kShortest = 8;  // the shortest sequence of digits that is an id or a step
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    std::size_t end = i;
    while (end < name.size() && IsHex(name[end])) ++end;
    if (end - i >= kShortest) {
      out += '*';
      i = end;
    } else {
      end = std::max(end, i + 1);
      out += name.substr(i, end - i);
      i = end;
    }
  }
  return out;
}

std::string CrashOp::Describe() const {
  return "rank " + std::to_string(actor) + ": " + std::string(VerbOf(kind)) + WithoutIds(name);
}

std::vector<std::vector<std::size_t>> CrashHistory::by_actor() const {
  std::vector<std::vector<std::size_t>> positions(static_cast<std::size_t>(actor_count));
  for (std::size_t i = 0; i < ops.size(); ++i) {
    positions[static_cast<std::size_t>(ops[i].actor)].push_back(i);
  }
  return positions;
}

std::size_t CrashHistory::Find(const std::string& text, int nth) const {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].Describe().find(text) != std::string::npos && --nth == 0) return i;
  }
  return ops.size();
}

}  // namespace sealpoint::testing
