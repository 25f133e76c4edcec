// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_MATCH_H_
#define SEALPOINT_LIB_INTEROP_MATCH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/status.h"

namespace sealpoint::internal::interop {

// Positions of the names that match one of the patterns, ascending; of all without patterns.
// Errors: InvalidArgument (a pattern), NotFound (a pattern that matches nothing).
Result<std::vector<std::size_t>> MatchNames(const std::vector<std::string>& patterns,
                                            const std::vector<std::string_view>& names);

// InvalidArgument if less than 64 KiB.
Status CheckBufferSize(std::uint64_t size_bytes);

}  // namespace sealpoint::internal::interop

#endif  // SEALPOINT_LIB_INTEROP_MATCH_H_
