// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_MARKER_AND_INDEX_H_
#define SEALPOINT_READERS_VERIFY_MARKER_AND_INDEX_H_

#include <optional>

#include "lib/container/open_checkpoint.h"
#include "readers/verify/verify_context.h"

namespace sealpoint::internal {

// Reads and checks COMMIT. Nothing if it is not a good commit marker; why is among the findings
// (Uncommitted for none and for a void one, NotACheckpoint if no file of ours is there).
std::optional<Marker> CheckMarker(const VerifyContext& context, Worker& worker);

// Reads and checks the index that the marker pins. Nothing if it cannot be used.
std::optional<IndexFile> CheckIndex(const VerifyContext& context, Worker& worker,
                                    const Marker& marker);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_VERIFY_MARKER_AND_INDEX_H_
