// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_ERRORS_H_
#define SEALPOINT_LIB_BASE_ERRORS_H_

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include "sealpoint/id.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// Message building without format strings: StrCat("shard ", 3, " of ", name).
inline void AppendTo(std::string& out, std::string_view text) { out.append(text); }
template <typename T>
  requires(std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>)
void AppendTo(std::string& out, T number) {
  out.append(std::to_string(number));
}

template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  std::string out;
  (AppendTo(out, parts), ...);
  return out;
}

// Keeps `status` in `first`, unless that has an error.
inline void KeepFirst(Status& first, Status status) {
  if (first.ok()) first = std::move(status);
}

// One helper per kind of error; each builds the message from its parts.
template <typename... Parts>
Status MakeError(Code code, const Parts&... parts) {
  return Status(code, StrCat(parts...));
}
template <typename... Parts>
Status InvalidArgument(const Parts&... parts) {
  return MakeError(Code::kInvalidArgument, parts...);
}

// A violated rule of the specification: code and message, with the rule's id as its place.
template <typename... Parts>
Status RuleError(Code code, std::string_view rule, const Parts&... parts) {
  return std::move(MakeError(code, parts...)).AtRule(rule);
}

// Corrupt: "<what> digest mismatch: computed <hex>, recorded <hex>".
Status DigestError(std::string_view rule, std::string_view what, const Digest& computed,
                   const Digest& recorded);
// Corrupt: "<what> digest mismatch: found <hex>, recorded <hex>". For comparing a digest stored in
// another file or section, instead of a computed one.
Status StoredDigestError(std::string_view rule, std::string_view what, const Digest& found,
                         const Digest& recorded);

// The Status of a failed system call: NoSpace for ENOSPC and EDQUOT, NotFound for ENOENT,
// AlreadyExists for EEXIST, else Io; the message is "<operation>: <strerror> (errno <n>)".
Status ErrnoError(std::string_view operation, int error_number);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_ERRORS_H_
