// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_REPACK_DRAFT_H_
#define SEALPOINT_LIB_REPACK_DRAFT_H_

#include <optional>
#include <string>

#include "lib/container/open_checkpoint.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

// Format version 0, the draft, differs from version 1 in the version of its headers alone
// (spec/history.md). docs/reference/policy.md says for how long it is read.

namespace sealpoint::internal::repack {

// Marker and index of a checkpoint of the draft, compared with their digests and then made those of
// version 1, for Checkpoint::OpenFrom. What reads payload reads no header of a blob. Nothing if
// there is no whole marker of the draft: whoever opens the directory says why. Errors: those of
// marker and index.
Result<std::optional<container::GivenFiles>> ReadDraft(const Storage& storage,
                                                       const std::string& path,
                                                       const Limits& limits);

}  // namespace sealpoint::internal::repack

#endif  // SEALPOINT_LIB_REPACK_DRAFT_H_
