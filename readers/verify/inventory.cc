// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/inventory.h"

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/errors.h"
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

// Adds the first notes of one kind to the report, and counts the others.
class Notes {
 public:
  Notes(std::vector<std::string>& notes, std::string_view kind) : notes_(notes), kind_(kind) {}

  template <typename... Pieces>
  void Add(const Pieces&... pieces) {
    if (++count_ <= kNotedMax) notes_.push_back(StrCat(pieces...));
  }
  void Finish() {
    if (count_ > kNotedMax) notes_.push_back(StrCat(count_ - kNotedMax, " more ", kind_));
  }

 private:
  std::vector<std::string>& notes_;
  const std::string_view kind_;
  std::uint64_t count_ = 0;
};

}  // namespace

Status NoteOtherFiles(const Directory& directory, const PinnedFiles& pinned, VerifyReport& report) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<EntryInfo> entries, directory.List());
  Notes foreign(report.notes, "foreign files");
  for (const EntryInfo& entry : entries) {
    if (Parse(entry).kind != NameKind::kForeign) continue;
    foreign.Add("foreign, not checked: ", entry.name);
  }
  foreign.Finish();
  Notes leftovers(report.notes, "leftovers");
  for (const EntryInfo& entry : entries) {
    if (!IsLeftOver(Parse(entry), pinned)) continue;
    report.leftover_bytes += entry.size_bytes;
    leftovers.Add("leftover of ", entry.size_bytes, " bytes: ", entry.name);
  }
  leftovers.Finish();
  return {};
}

}  // namespace sealpoint::internal
