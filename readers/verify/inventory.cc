// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/inventory.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/first_few.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::verify {
namespace {

// Only a file or a link has a name of the format; a directory or a device under it is foreign.
format::ParsedName Parse(const EntryInfo& entry) {
  if (entry.kind != EntryKind::kFile && entry.kind != EntryKind::kSymlink) return {};
  return format::ParseName(entry.name);
}

// Binary search: blob ids are strictly ascending (R-IDX-07).
bool HasBlob(const metadata::Metadata& index, const BlobId& id) {
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

bool IsLeftOver(const format::ParsedName& name, const PinnedFiles& pinned) {
  if (!pinned.is_known) return false;
  switch (name.kind) {
    case format::NameKind::kMarker:
    case format::NameKind::kKeep:
    case format::NameKind::kForeign:
      return false;
    case format::NameKind::kIndex:
      return pinned.marker == nullptr || name.id != pinned.marker->attempt;
    case format::NameKind::kBlob:
      return pinned.index == nullptr || !HasBlob(*pinned.index, BlobId(name.id));
    case format::NameKind::kUnpublishedMarker:
    case format::NameKind::kProbe:
    case format::NameKind::kReserved:
      return true;
  }
  return true;
}

// Files by which torch.distributed.checkpoint and Megatron-core find what they saved.
bool IsOfDcp(std::string_view name) { return name == ".metadata" || name.ends_with(".distcp"); }

// What programs that sign files or directories leave beside them: OpenSSF model signing, Sigstore,
// minisign, GnuPG.
bool IsSignature(std::string_view name) {
  constexpr std::string_view kEndings[] = {".sig", ".sigstore", ".sigstore.json", ".minisig",
                                           ".asc"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [name](std::string_view ending) { return name.ends_with(ending); });
}

template <typename T, typename TextOf>
void AddNotes(const FirstFew<T>& noted, std::string_view kind, const TextOf& text_of,
              std::vector<std::string>& notes) {
  for (const T& entry : noted.kept()) notes.push_back(text_of(entry));
  if (noted.more() > 0) notes.push_back(StrCat(noted.more(), " more ", kind));
}

}  // namespace

Status NoteOtherFiles(const Directory& directory, const PinnedFiles& pinned, VerifyReport& report) {
  using NameAndSize = std::pair<std::string, std::uint64_t>;
  FirstFew<std::string> foreign(kNotedMax);
  FirstFew<std::string> signatures(kNotedMax);
  FirstFew<NameAndSize> leftovers(kNotedMax);
  FirstFew<NameAndSize> reserved(kNotedMax);
  std::string of_dcp;
  bool has_own = false;
  SEALPOINT_RETURN_IF_ERROR(directory.ForEachEntry([&](const EntryInfo& entry) {
    const format::ParsedName name = Parse(entry);
    if (name.kind == format::NameKind::kForeign) {
      (IsSignature(entry.name) ? signatures : foreign).Add(entry.name);
      if (IsOfDcp(entry.name) && (of_dcp.empty() || entry.name < of_dcp)) of_dcp = entry.name;
    }
    has_own =
        has_own || name.kind == format::NameKind::kMarker || name.kind == format::NameKind::kBlob;
    if (!IsLeftOver(name, pinned)) return true;
    report.leftover_bytes += entry.size_bytes;
    (name.kind == format::NameKind::kReserved ? reserved : leftovers)
        .Add({entry.name, entry.size_bytes});
    return true;
  }));
  // Begins with a letter before those of other notes: of sorted ones the first are shown.
  if (has_own && !of_dcp.empty()) {
    report.notes.push_back(StrCat(
        "a native Megatron/DCP checkpoint is in the same directory: two checkpoints (foreign: ",
        of_dcp, ")"));
  }
  AddNotes(
      signatures, "signatures",
      [](const std::string& name) { return StrCat("signature present, not checked: ", name); },
      report.notes);
  AddNotes(
      foreign, "foreign files",
      [](const std::string& name) { return StrCat("foreign, not checked: ", name); }, report.notes);
  AddNotes(
      leftovers, "leftovers",
      [](const NameAndSize& entry) {
        return StrCat("leftover of ", entry.second, " bytes: ", entry.first);
      },
      report.notes);
  AddNotes(
      reserved, "files of an unknown kind",
      [](const NameAndSize& entry) {
        return StrCat("of an unknown kind, not checked, ", entry.second, " bytes: ", entry.first);
      },
      report.notes);
  return {};
}

}  // namespace sealpoint::internal::verify
