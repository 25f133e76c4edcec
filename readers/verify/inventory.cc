// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/inventory.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/first_names.h"
#include "lib/base/macros.h"

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

bool IsLeftOver(const ParsedName& name, const PinnedFiles& pinned) {
  if (!pinned.is_known) return false;
  switch (name.kind) {
    case NameKind::kMarker:
    case NameKind::kKeep:
    case NameKind::kForeign:
      return false;
    case NameKind::kIndex:
      return pinned.marker == nullptr || name.id != pinned.marker->attempt;
    case NameKind::kBlob:
      return pinned.index == nullptr || !HasBlob(*pinned.index, name.id);
    case NameKind::kUnpublishedMarker:
    case NameKind::kProbe:
      return true;
  }
  return true;
}

void AddNotes(const FirstNames& names, std::string_view prefix, std::string_view kind,
              std::vector<std::string>& notes) {
  for (const std::string& name : names.kept()) notes.push_back(StrCat(prefix, name));
  const std::uint64_t more = names.count() - names.kept().size();
  if (more > 0) notes.push_back(StrCat(more, " more ", kind));
}

}  // namespace

Status NoteOtherFiles(const Directory& directory, const PinnedFiles& pinned, VerifyReport& report) {
  FirstNames foreign(kNotedMax);
  std::map<std::string, std::uint64_t> leftovers;  // with their sizes
  std::uint64_t leftover_count = 0;
  SEALPOINT_RETURN_IF_ERROR(directory.ForEachEntry([&](const EntryInfo& entry) {
    const ParsedName name = Parse(entry);
    if (name.kind == NameKind::kForeign) foreign.Add(entry.name);
    if (!IsLeftOver(name, pinned)) return true;
    report.leftover_bytes += entry.size_bytes;
    ++leftover_count;
    leftovers.emplace(entry.name, entry.size_bytes);
    if (leftovers.size() > kNotedMax) leftovers.erase(std::prev(leftovers.end()));
    return true;
  }));
  AddNotes(foreign, "foreign, not checked: ", "foreign files", report.notes);
  for (const auto& [name, size] : leftovers) {
    report.notes.push_back(StrCat("leftover of ", size, " bytes: ", name));
  }
  if (leftover_count > leftovers.size()) {
    report.notes.push_back(StrCat(leftover_count - leftovers.size(), " more leftovers"));
  }
  return {};
}

}  // namespace sealpoint::internal
