// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/format/marker.h"
#include "lib/series/series_scan.h"
#include "lib/storage/durable.h"
#include "sealpoint/series.h"

namespace sealpoint {
namespace {

using internal::InvalidArgument;
using internal::NameKind;

// Removes files of our names, the marker excepted; never follows links. Returns the bytes freed.
Result<std::uint64_t> RemoveOurFiles(Directory& directory) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<EntryInfo> entries, directory.List());
  std::uint64_t freed = 0;
  for (const EntryInfo& entry : entries) {
    const NameKind kind = internal::ParseName(entry.name).kind;
    if (kind == NameKind::kForeign || kind == NameKind::kMarker) continue;
    if (entry.kind == EntryKind::kDirectory) continue;
    const Status removed = directory.Remove(entry.name);
    if (!removed.ok() && removed.code() != Code::kNotFound) return removed;
    if (entry.kind == EntryKind::kFile) freed += entry.size_bytes;
  }
  return freed;
}

Status RemoveMarker(Directory& directory) {
  const Status removed = directory.Remove(internal::kMarkerName);
  if (!removed.ok() && removed.code() != Code::kNotFound) return removed;
  return directory.Sync();
}

// With foreign files inside it stays: they are not ours to remove.
Status RemoveDirectoryIfEmpty(Storage& storage, const Directory& directory) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<EntryInfo> left, directory.List());
  return left.empty() ? storage.RemoveDirectory(directory.path()) : Status();
}

Status CheckName(const std::string& name) {
  const bool is_component =
      !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
  return is_component ? Status() : InvalidArgument("\"", name, "\" is not a name in a series");
}

}  // namespace

Status Series::Delete(const std::string& name) const {
  SEALPOINT_RETURN_IF_ERROR(CheckName(name));
  SEALPOINT_ASSIGN_OR_RETURN(const SeriesListing listing, List());
  const auto found = std::find_if(listing.entries.begin(), listing.entries.end(),
                                  [&](const SeriesEntry& entry) { return entry.name == name; });
  if (found == listing.entries.end()) {
    return internal::MakeError(Code::kNotFound, "no such checkpoint").AtPath(JoinPath(path_, name));
  }
  const auto refuse = [&](std::string_view why) {
    return InvalidArgument("not deleted: ", why).AtRule("R-SER-05").AtPath(found->path);
  };
  if (found->verdict == Verdict::kUncommitted) return refuse("it was never committed");
  if (found->is_kept) return refuse("a KEEP file pins it");
  if (listing.newest() == nullptr || &*found == listing.newest()) {
    return refuse("no newer checkpoint is committed");
  }
  SEALPOINT_ASSIGN_OR_RETURN(const auto directory, storage_->OpenDirectory(found->path));
  SEALPOINT_RETURN_IF_ERROR(RemoveMarker(*directory));
  SEALPOINT_RETURN_IF_ERROR(RemoveOurFiles(*directory).status());
  SEALPOINT_RETURN_IF_ERROR(directory->Sync());
  return RemoveDirectoryIfEmpty(*storage_, *directory);
}

Result<std::uint64_t> Series::RemoveUncommitted(const std::string& name) const {
  SEALPOINT_RETURN_IF_ERROR(CheckName(name));
  SEALPOINT_ASSIGN_OR_RETURN(const internal::ScannedEntry scanned,
                             internal::ScanEntry(*storage_, path_, name));
  const auto refuse = [&](std::string_view why) {
    return InvalidArgument("not removed: ", why).AtRule("R-SER-07").AtPath(scanned.entry.path);
  };
  if (!scanned.is_ours) return refuse("it is not a checkpoint's directory");
  if (scanned.entry.verdict != Verdict::kUncommitted) return refuse("it has a marker");
  if (scanned.entry.is_kept) return refuse("a KEEP file pins it");
  if (!scanned.entry.is_void) {
    const Status voided = PublishVoidMarker(*storage_, scanned.entry.path);
    if (voided.code() == Code::kAlreadyExists) return refuse("it was committed meanwhile");
    SEALPOINT_RETURN_IF_ERROR(voided);
  }
  SEALPOINT_ASSIGN_OR_RETURN(const auto directory, storage_->OpenDirectory(scanned.entry.path));
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t freed, RemoveOurFiles(*directory));
  SEALPOINT_RETURN_IF_ERROR(directory->Sync());
  if (!scanned.entry.is_void) return freed;
  SEALPOINT_RETURN_IF_ERROR(RemoveMarker(*directory));
  SEALPOINT_RETURN_IF_ERROR(RemoveDirectoryIfEmpty(*storage_, *directory));
  return freed;
}

Status PublishVoidMarker(Storage& storage, const std::string& path) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto directory, storage.OpenDirectory(path));
  SEALPOINT_ASSIGN_OR_RETURN(const AttemptId attempt, AttemptId::Random());
  SEALPOINT_ASSIGN_OR_RETURN(const Capabilities capabilities,
                             directory->Probe(internal::ProbeName(attempt)));
  SEALPOINT_RETURN_IF_ERROR(internal::CheckCapabilities(*directory, capabilities));
  const internal::MarkerBytes marker =
      internal::EncodeMarker({.kind = internal::MarkerKind::kVoid, .attempt = attempt});
  const std::string unpublished = internal::UnpublishedMarkerName(attempt);
  Status status = internal::WriteFileDurably(*directory, unpublished, marker);
  if (status.ok()) status = directory->Sync();
  if (status.ok()) {
    status = internal::PublishDurably(*directory, capabilities.publish, unpublished,
                                      internal::kMarkerName, marker);
  }
  if (!status.ok()) static_cast<void>(directory->Remove(unpublished));
  return status;
}

}  // namespace sealpoint
