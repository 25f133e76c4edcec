// SPDX-License-Identifier: Apache-2.0
#include "lib/promote/leftovers.h"

#include <set>
#include <string>

#include "lib/format/constants.h"

namespace sealpoint::internal {

void RemoveLeftovers(Directory& directory, const AttemptId& attempt, const Metadata& index,
                     std::string_view extra) {
  std::set<std::string> pinned{IndexName(attempt)};
  for (std::size_t i = 0; i < index.blob_count(); ++i) pinned.insert(BlobName(index.blob(i).id));
  const auto entries = directory.List();
  if (!entries.ok()) return;
  for (const EntryInfo& entry : *entries) {
    const NameKind kind = ParseName(entry.name).kind;
    const bool is_leftover = kind == NameKind::kBlob || kind == NameKind::kIndex ||
                             kind == NameKind::kUnpublishedMarker || entry.name == extra;
    if (is_leftover && entry.kind == EntryKind::kFile && !pinned.contains(entry.name)) {
      static_cast<void>(directory.Remove(entry.name));
    }
  }
}

}  // namespace sealpoint::internal
