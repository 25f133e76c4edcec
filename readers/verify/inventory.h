// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_INVENTORY_H_
#define SEALPOINT_READERS_VERIFY_INVENTORY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/format/marker.h"
#include "lib/metadata/metadata.h"
#include "sealpoint/storage.h"
#include "sealpoint/verify.h"

namespace sealpoint::internal {

// What lies in the directory, by names alone.
class Inventory {
 public:
  explicit Inventory(std::vector<EntryInfo> entries) : entries_(std::move(entries)) {}

  // R-DIR-04.
  void NoteForeign(VerifyReport& report) const;
  // R-DIR-03. `marker` null: nothing is pinned, so all files of ours are left over.
  void NoteLeftovers(const Marker* marker, const Metadata* index, VerifyReport& report) const;

 private:
  std::vector<EntryInfo> entries_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_VERIFY_INVENTORY_H_
