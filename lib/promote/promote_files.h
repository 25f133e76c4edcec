// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PROMOTE_PROMOTE_FILES_H_
#define SEALPOINT_LIB_PROMOTE_PROMOTE_FILES_H_

#include <optional>
#include <string>

#include "lib/container/open_checkpoint.h"
#include "sealpoint/promote.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// Promote, with marker and index that somebody else read: `from` may lack them.
Result<PromoteReport> PromoteGiven(const std::string& from, const std::string& to,
                                   const PromoteOptions& options, std::optional<GivenFiles> given);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_PROMOTE_PROMOTE_FILES_H_
