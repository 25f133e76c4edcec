// SPDX-License-Identifier: Apache-2.0
#include "lib/copy/leftovers.h"

#include <set>
#include <string>

#include "lib/format/constants.h"

namespace sealpoint::internal::copy {

void RemoveLeftovers(Directory& directory, const AttemptId& attempt,
                     const metadata::Metadata& index, std::string_view extra) {
  std::set<std::string> pinned{format::IndexName(attempt)};
  for (std::size_t i = 0; i < index.blob_count(); ++i)
    pinned.insert(format::BlobName(index.blob(i).id));
  const auto entries = directory.List();
  if (!entries.ok()) return;
  for (const EntryInfo& entry : *entries) {
    const format::NameKind kind = format::ParseName(entry.name).kind;
    const bool is_leftover = kind == format::NameKind::kBlob || kind == format::NameKind::kIndex ||
                             kind == format::NameKind::kUnpublishedMarker || entry.name == extra;
    if (is_leftover && entry.kind == EntryKind::kFile && !pinned.contains(entry.name)) {
      static_cast<void>(directory.Remove(entry.name));
    }
  }
}

}  // namespace sealpoint::internal::copy
