// SPDX-License-Identifier: Apache-2.0
//
// Messages that ranks exchange to agree on a call. These functions are for language bindings that
// exchange the messages themselves. The Python package exchanges the messages itself, because it
// replaces its communicators between two exchanges. Programs must not use these functions.
#ifndef SEALPOINT_DETAIL_AGREEMENT_H_
#define SEALPOINT_DETAIL_AGREEMENT_H_

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/export.h"
#include "sealpoint/status.h"

namespace sealpoint::detail {

// A call that all ranks make together. `text` is the name of the call in errors: "save of step 7
// 'runs/a'".
struct NamedCall {
  std::string text{};
  // Name and value of each argument that must be the same on all ranks. All ranks list the
  // arguments in the same order.
  std::vector<std::pair<std::string, std::string>> arguments{};
};

// Returns the message that a rank on `host` sends. If `host` is empty, equal calls have equal
// messages.
SEALPOINT_EXPORT Bytes EncodeCall(const NamedCall& call, std::string_view host);

// Compares the messages of all ranks, given in rank order. Errors: InvalidArgument (the error names
// the call or the argument, both values and both ranks), Comm (a malformed message).
SEALPOINT_EXPORT Status CompareCalls(std::span<const Bytes> calls);

// The next two functions convert an error to bytes and back. If the bytes are malformed,
// DecodeError returns Comm.
SEALPOINT_EXPORT Bytes EncodeError(const Status& error);
SEALPOINT_EXPORT Status DecodeError(ByteSpan bytes);

}  // namespace sealpoint::detail

#endif  // SEALPOINT_DETAIL_AGREEMENT_H_
