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
  // False with a damaged marker or index; no file is then reported as a leftover.
  bool is_known = false;
  // Null: nothing is pinned, so all files of an attempt are leftovers.
  const format::Marker* marker = nullptr;
  const metadata::Metadata* index = nullptr;
};

// Maximum number of noted foreign files and of noted leftovers: the first by name.
inline constexpr std::size_t kNotedMax = 1000;

// Adds a note to the report for other files in the directory, by names alone: R-DIR-04 and
// R-DIR-03. Errors: those of listing.
Status NoteOtherFiles(const Directory& directory, const PinnedFiles& pinned, VerifyReport& report);

}  // namespace sealpoint::internal::verify

#endif  // SEALPOINT_READERS_VERIFY_INVENTORY_H_
