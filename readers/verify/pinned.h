// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_PINNED_H_
#define SEALPOINT_READERS_VERIFY_PINNED_H_

#include <optional>

#include "lib/container/open_checkpoint.h"
#include "readers/verify/subject.h"

namespace sealpoint::internal {

// Reads and judges COMMIT. Nothing where it is not a good commit marker; why is among the findings
// (Uncommitted for none and for a void one, NotACheckpoint where no file of ours is there).
std::optional<Marker> CheckMarker(const Subject& subject, Worker& worker);

// Reads and judges the index that the marker pins. Nothing where it cannot be used.
std::optional<IndexFile> CheckIndex(const Subject& subject, Worker& worker, const Marker& marker);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_VERIFY_PINNED_H_
