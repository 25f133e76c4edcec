// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_PINNED_H_
#define SEALPOINT_READERS_VERIFY_PINNED_H_

#include <optional>

#include "lib/format/contents.h"
#include "lib/format/marker.h"
#include "readers/verify/subject.h"

namespace sealpoint::internal {

// Reads and judges COMMIT. Nothing where it is not a good commit marker; why is among the findings
// (Uncommitted for none and for a void one). `has_other_files`: the directory holds files of our
// names, so that a marker of foreign bytes is damage.
std::optional<Marker> CheckMarker(const Subject& subject, Worker& worker, bool has_other_files);

// Reads and judges the index that the marker pins. Nothing where it cannot be used.
std::optional<Contents> CheckIndex(const Subject& subject, Worker& worker, const Marker& marker);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_VERIFY_PINNED_H_
