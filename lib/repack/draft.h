// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_REPACK_DRAFT_H_
#define SEALPOINT_LIB_REPACK_DRAFT_H_

#include <optional>
#include <string>

#include "lib/container/open_checkpoint.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

// Format version 0, the draft, differs from version 1 only in the version of its headers
// (spec/history.md). docs/reference/policy.md specifies which releases read it.

namespace sealpoint::internal::repack {

// Reads marker and index of a checkpoint of the draft, checks their digests and converts them to
// version 1, for Checkpoint::OpenFrom. Payload reads do not use the header of a blob. Empty if
// there is no intact marker of the draft; opening the directory then gives the reason. Errors:
// those of marker and index.
Result<std::optional<container::GivenFiles>> ReadDraft(const Storage& storage,
                                                       const std::string& path,
                                                       const Limits& limits);

}  // namespace sealpoint::internal::repack

#endif  // SEALPOINT_LIB_REPACK_DRAFT_H_
