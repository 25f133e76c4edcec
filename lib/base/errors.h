// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_ERRORS_H_
#define SEALPOINT_LIB_BASE_ERRORS_H_

#include <concepts>
#include <string>
#include <string_view>

#include "sealpoint/status.h"

namespace sealpoint::internal {

// Message building without format strings: StrCat("shard ", 3, " of ", name).
inline void AppendPiece(std::string& out, std::string_view piece) { out.append(piece); }
template <typename T>
  requires(std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>)
void AppendPiece(std::string& out, T piece) {
  out.append(std::to_string(piece));
}

template <typename... Pieces>
std::string StrCat(const Pieces&... pieces) {
  std::string out;
  (AppendPiece(out, pieces), ...);
  return out;
}

// One helper per way of failing; each builds the message from its pieces.
template <typename... Pieces>
Status MakeError(Code code, const Pieces&... pieces) {
  return Status(code, StrCat(pieces...));
}
template <typename... Pieces>
Status InvalidArgument(const Pieces&... pieces) {
  return MakeError(Code::kInvalidArgument, pieces...);
}

// A violated rule of the specification: code and message, with the rule's id as its place.
template <typename... Pieces>
Status RuleError(Code code, std::string_view rule, const Pieces&... pieces) {
  return std::move(MakeError(code, pieces...)).AtRule(rule);
}

// The Status of a failed system call: NoSpace for ENOSPC and EDQUOT, NotFound for ENOENT,
// AlreadyExists for EEXIST, else Io; the message is "<operation>: <strerror> (errno <n>)".
Status ErrnoError(std::string_view operation, int error_number);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_ERRORS_H_
