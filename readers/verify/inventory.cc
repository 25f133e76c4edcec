// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/inventory.h"

#include "lib/base/errors.h"

namespace sealpoint::internal {
namespace {

// Only a file or a link has a name of the format; a directory or a device under it is foreign.
ParsedName Parse(const EntryInfo& entry) {
  if (entry.kind != EntryKind::kFile && entry.kind != EntryKind::kSymlink) return {};
  return ParseName(entry.name);
}

// Binary search: blob ids are strictly ascending (R-IDX-07).
bool HasBlob(const Metadata& index, const BlobId& id) {
  std::size_t low = 0;
  std::size_t high = index.blob_count();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (index.blob(middle).id < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < index.blob_count() && index.blob(low).id == id;
}

bool IsPinned(const ParsedName& name, const Marker* marker, const Metadata* index) {
  switch (name.kind) {
    case NameKind::kMarker:
    case NameKind::kKeep:
    case NameKind::kForeign:
      return true;  // none of them is ever left over
    case NameKind::kIndex:
      return marker != nullptr && name.id == marker->attempt;
    case NameKind::kBlob:
      return index != nullptr && HasBlob(*index, name.id);
    case NameKind::kUnpublishedMarker:
    case NameKind::kProbe:
      return false;
  }
  return false;
}

}  // namespace

void Inventory::NoteForeign(VerifyReport& report) const {
  for (const EntryInfo& entry : entries_) {
    if (Parse(entry).kind != NameKind::kForeign) continue;
    report.notes.push_back(StrCat("foreign, not checked: ", entry.name));
  }
}

void Inventory::NoteLeftovers(const Marker* marker, const Metadata* index,
                              VerifyReport& report) const {
  for (const EntryInfo& entry : entries_) {
    if (IsPinned(Parse(entry), marker, index)) continue;
    report.leftover_bytes += entry.size_bytes;
    report.notes.push_back(StrCat("leftover of ", entry.size_bytes, " bytes: ", entry.name));
  }
}

}  // namespace sealpoint::internal
