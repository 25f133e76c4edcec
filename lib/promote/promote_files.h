// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PROMOTE_PROMOTE_FILES_H_
#define SEALPOINT_LIB_PROMOTE_PROMOTE_FILES_H_

#include <optional>
#include <string>

#include "lib/container/open_checkpoint.h"
#include "lib/pipeline/byte_meter.h"
#include "sealpoint/promote.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::promote {

// Copy threads for kThreadsAuto.
inline constexpr int kPromoteThreadsAuto = 2;

// Promote with marker and index supplied by the caller, and PromoteOptions::blobs. `from` may lack
// both files, and need not exist if no blob remains to be copied.
//
// `on_bytes` replaces PromoteOptions::on_progress.
Result<PromoteReport> PromoteGiven(const CopyPaths& paths, const PromoteOptions& options,
                                   std::optional<container::GivenFiles> given,
                                   pipeline::ByteMeter::Callback on_bytes = {});

}  // namespace sealpoint::internal::promote

#endif  // SEALPOINT_LIB_PROMOTE_PROMOTE_FILES_H_
