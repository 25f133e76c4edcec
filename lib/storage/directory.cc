// SPDX-License-Identifier: Apache-2.0
#include "lib/base/macros.h"
#include "sealpoint/storage.h"

namespace sealpoint {

Status Directory::ForEachEntry(const std::function<bool(const EntryInfo& entry)>& visit) const {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<EntryInfo> entries, List());
  for (const EntryInfo& entry : entries) {
    if (!visit(entry)) break;
  }
  return {};
}

}  // namespace sealpoint
