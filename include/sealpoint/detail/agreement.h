// SPDX-License-Identifier: Apache-2.0
//
// Messages by which ranks agree on a call, for a face over the library that exchanges them itself:
// the communicators of the Python package are replaced between two exchanges. Not for programs.
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

// A call that all ranks make together, as errors name it: "save of step 7 'runs/a'".
struct NamedCall {
  std::string text{};
  // Name and value of each argument that must be the same on all ranks, in the same order.
  std::vector<std::pair<std::string, std::string>> arguments{};
};

// The message of a rank on `host`. An empty host makes the bytes of equal calls equal.
SEALPOINT_EXPORT Bytes EncodeCall(const NamedCall& call, std::string_view host);

// Compares the messages of all ranks, in rank order. Errors: InvalidArgument (names the call or the
// argument, both values and ranks), Comm (malformed).
SEALPOINT_EXPORT Status CompareCalls(std::span<const Bytes> calls);

// An error as bytes, and back. Errors of DecodeError besides: Comm (malformed).
SEALPOINT_EXPORT Bytes EncodeError(const Status& error);
SEALPOINT_EXPORT Status DecodeError(ByteSpan bytes);

}  // namespace sealpoint::detail

#endif  // SEALPOINT_DETAIL_AGREEMENT_H_
