// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_INVENTORY_H_
#define SEALPOINT_READERS_VERIFY_INVENTORY_H_

#include <cstddef>

#include "lib/format/marker.h"
#include "lib/metadata/metadata.h"
#include "sealpoint/storage.h"
#include "sealpoint/verify.h"

namespace sealpoint::internal::verify {

// Which files of a checkpoint belong in its directory.
struct PinnedFiles {
  // With a damaged marker or index nobody knows: nothing is then called left over.
  bool is_known = false;
  // Null: nothing is pinned, so all files of an attempt are left over.
  const format::Marker* marker = nullptr;
  const metadata::Metadata* index = nullptr;
};

// So many foreign files are noted, and so many leftovers: the first by name.
inline constexpr std::size_t kNotedMax = 1000;

// Notes in the report what else is in the directory, by names alone: R-DIR-04 and R-DIR-03.
// Errors: those of listing.
Status NoteOtherFiles(const Directory& directory, const PinnedFiles& pinned, VerifyReport& report);

}  // namespace sealpoint::internal::verify

#endif  // SEALPOINT_READERS_VERIFY_INVENTORY_H_
