// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/format/constants.h"
#include "lib/format/marker.h"
#include "lib/series/series_removal.h"
#include "lib/series/series_scan.h"
#include "lib/storage/durable.h"
#include "lib/storage/path.h"
#include "sealpoint/series.h"

namespace sealpoint {
namespace {

using internal::InvalidArgument;
using internal::StrCat;
using internal::format::NameKind;
using internal::series::DirectoryLook;

// Removes files of our names, the marker excepted; never follows links. Returns the bytes freed.
Result<std::uint64_t> RemoveOurFiles(Directory& directory) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<EntryInfo> entries, directory.List());
  std::uint64_t freed = 0;
  for (const EntryInfo& entry : entries) {
    const NameKind kind = internal::format::ParseName(entry.name).kind;
    if (kind == NameKind::kForeign || kind == NameKind::kMarker) continue;
    if (entry.kind == EntryKind::kDirectory) continue;
    const Status removed = directory.Remove(entry.name);
    if (!removed.ok() && removed.code() != Code::kNotFound) return removed;
    if (entry.kind == EntryKind::kFile) freed += entry.size_bytes;
  }
  return freed;
}

Status RemoveDurably(Directory& directory, const std::string& name) {
  const Status removed = directory.Remove(name);
  if (!removed.ok() && removed.code() != Code::kNotFound) return removed;
  return directory.Sync();
}

Status RemoveMarker(Directory& directory) {
  return RemoveDurably(directory, std::string(internal::format::kMarkerName));
}

// Makes the KEEP of deltas again, durably, after `problem`. That of a person stays.
Status Repin(Directory& directory, Status problem) {
  const Status made = internal::storage::WriteFileDurably(directory, internal::format::kKeepName,
                                                          AsBytes(internal::format::kKeepOfDeltas));
  const bool is_there = made.ok() || made.code() == Code::kAlreadyExists;
  const Status status = is_there ? directory.Sync() : made;
  if (status.ok()) return problem;
  return std::move(problem).Prefixed(
      internal::StrCat("KEEP was removed and could not be made again (", status.message(), ")"));
}

// spec/delta.md section 4. `entry` has a KEEP of deltas.
Status Unpin(const Storage& storage, const std::string& series, Directory& directory,
             const SeriesEntry& entry, internal::series::DeltaIndexes& deltas) {
  const auto check = [&]() -> Status {
    SEALPOINT_ASSIGN_OR_RETURN(
        const SeriesListing listing,
        internal::series::ScanSeries(storage, series, internal::series::SeriesDetail::kMarkers));
    SEALPOINT_ASSIGN_OR_RETURN(const auto found, deltas.Find(listing.entries));
    return internal::series::CheckIsNotNeeded(listing.entries, found, entry);
  };
  const Status removed = RemoveDurably(directory, std::string(internal::format::kKeepName));
  const Status status = removed.ok() ? check() : removed;
  if (!status.ok()) return Repin(directory, status);
  const auto keep = directory.Stat(internal::format::kKeepName);
  if (keep.error().code() == Code::kNotFound) return {};
  if (!keep.ok()) return keep.error();
  return InvalidArgument("not deleted: another process made a KEEP file meanwhile")
      .AtRule("R-DLT-11")
      .AtPath(entry.path);
}

Status RemoveMarkerFirst(Directory& directory, const RemovalOptions& options) {
  for (const std::string& name : options.first) {
    SEALPOINT_RETURN_IF_ERROR(RemoveDurably(directory, name));
  }
  SEALPOINT_RETURN_IF_ERROR(RemoveMarker(directory));
  for (const std::string& name : options.also) {
    const Status removed = directory.Remove(name);
    if (!removed.ok() && removed.code() != Code::kNotFound) return removed;
  }
  SEALPOINT_RETURN_IF_ERROR(RemoveOurFiles(directory).status());
  return directory.Sync();
}

// Opened without following links: from here on all that is removed is removed below this handle.
Result<std::unique_ptr<Directory>> OpenToRemove(const Directory& series, const std::string& name) {
  auto opened = series.OpenSubdirectory(name);
  if (opened.ok() || opened.error().code() == Code::kNotFound) return opened;
  const auto info = series.Stat(name);
  if (!info.ok() || info->kind != EntryKind::kSymlink) return opened;
  return InvalidArgument("not removed: it is a symbolic link")
      .AtRule("R-SER-10")
      .AtPath(JoinPath(series.path(), name));
}

// With foreign files inside it stays: they are not ours to remove.
Status RemoveDirectoryIfEmpty(Directory& series, const std::string& name,
                              const Directory& directory) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<EntryInfo> left, directory.List());
  return left.empty() ? series.RemoveSubdirectory(name) : Status();
}

// R-SER-21, and KEEP once more: it may have come since the listing.
Status CheckIsStill(const SeriesEntry& entry, const DirectoryLook& now) {
  if (now.entry.verdict == Verdict::kUnreadable) return now.entry.problem;
  if (now.entry.verdict == Verdict::kUncommitted && !now.entry.is_void) {  // there is no marker
    return internal::MakeError(Code::kNotFound, "it was deleted meanwhile").AtPath(entry.path);
  }
  if (now.entry.attempt != entry.attempt || now.entry.verdict != entry.verdict) {
    return InvalidArgument("not deleted: it is another checkpoint now: attempt ",
                           now.entry.attempt.ToHex(), ", expected ", entry.attempt.ToHex())
        .AtRule("R-SER-21")
        .AtPath(entry.path);
  }
  if (!now.entry.is_kept) return {};
  return InvalidArgument("not deleted: a KEEP file pins it").AtRule("R-SER-05").AtPath(entry.path);
}

Status CheckName(const std::string& name) {
  const bool is_component =
      !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
  return is_component ? Status() : InvalidArgument("\"", name, "\" is not a name in a series");
}

// Publishes a void marker, so that no writer's publication succeeds any more.
Status PublishVoid(Directory& directory) {
  SEALPOINT_ASSIGN_OR_RETURN(const AttemptId attempt, AttemptId::Random());
  SEALPOINT_ASSIGN_OR_RETURN(const Capabilities capabilities,
                             directory.Probe(internal::format::ProbeName(attempt)));
  SEALPOINT_RETURN_IF_ERROR(internal::storage::CheckCapabilities(directory, capabilities));
  const internal::format::MarkerBytes marker = internal::format::EncodeMarker(
      {.kind = internal::format::MarkerKind::kVoid, .attempt = attempt});
  // A second put of the same marker settles what the first did.
  return internal::storage::WriteAndPublish(directory, capabilities.publish,
                                            internal::format::UnpublishedMarkerName(attempt),
                                            internal::format::kMarkerName, marker);
}

// The unfinished uploads below the directory whose names are ours; names within the series. Those
// that the client of the store cannot list are said so in `unsupported`.
Result<std::vector<UnfinishedFile>> OwnUploads(const Storage& storage, const std::string& series,
                                               const std::string& name, Status& unsupported) {
  auto listed = storage.ListUnfinished(JoinPath(series, name));
  if (listed.error().code() == Code::kUnsupported) {
    unsupported = listed.error();
    return std::vector<UnfinishedFile>();
  }
  SEALPOINT_ASSIGN_OR_RETURN(auto uploads, std::move(listed));
  std::erase_if(uploads, [](const UnfinishedFile& upload) {
    return internal::format::ParseName(upload.name).kind == NameKind::kForeign;
  });
  for (UnfinishedFile& upload : uploads) upload.name = JoinPath(name, upload.name);
  return uploads;
}

// R-SER-25. Listed behind the void marker: what a slow writer begins afterwards it gives up itself,
// when its publication fails.
Status AbortUploads(Storage& storage, const std::string& series, const std::string& name,
                    CleanUpReport& report) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto uploads, OwnUploads(storage, series, name, report.uploads));
  for (const UnfinishedFile& upload : uploads) {
    SEALPOINT_RETURN_IF_ERROR(storage.AbortUnfinished(series, upload));
    report.aborted.push_back(upload);
  }
  return {};
}

Status NotRemoved(const SeriesEntry& entry, std::string_view reason) {
  return InvalidArgument("not removed: ", reason).AtRule("R-SER-07").AtPath(entry.path);
}

Status CheckIsAttempt(const DirectoryLook& look) {
  if (look.kind == DirectoryLook::Kind::kForeign) {
    return NotRemoved(look.entry, "it is not a checkpoint's directory");
  }
  if (look.entry.verdict == Verdict::kUnreadable) return look.entry.problem;
  if (look.entry.verdict != Verdict::kUncommitted) return NotRemoved(look.entry, "it has a marker");
  return look.entry.is_kept ? NotRemoved(look.entry, "a KEEP file pins it") : Status();
}

}  // namespace

namespace internal::series {

Result<std::vector<EntryInfo>> ListOurFiles(const Storage& storage, const SeriesEntry& entry) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto directory, storage.OpenDirectory(entry.path));
  SEALPOINT_ASSIGN_OR_RETURN(std::vector<EntryInfo> files, directory->List());
  std::erase_if(files, [](const EntryInfo& file) {
    return file.kind != EntryKind::kFile ||
           format::ParseName(file.name).kind == format::NameKind::kForeign;
  });
  return files;
}

Status MakeSureOfANewerOne(const Storage& storage, std::vector<SeriesEntry>::const_iterator begin,
                           std::vector<SeriesEntry>::const_iterator end, const AttemptId& deleted,
                           const Limits& limits) {
  Status problem = InvalidArgument("not deleted: no newer checkpoint is committed");
  for (auto entry = begin; entry != end && entry->verdict == Verdict::kCommitted; ++entry) {
    if (entry->is_link && entry->attempt == deleted) continue;  // it may lead there
    const auto opened = internal::container::OpenCommitted(storage, entry->path, limits, true);
    if (opened.ok()) return opened->directory->Sync();
    const Status& error = opened.error();
    // A failure of the storage does not say that this one is damaged.
    if (problem.code() == Code::kIo) continue;
    const std::string reason =
        StrCat("not deleted: no newer checkpoint is whole; of ", entry->name);
    problem = error.code() == Code::kIo ? Status(error).Prefixed(reason)
                                        : InvalidArgument(reason, ": ", error.message());
  }
  return problem;
}

Status DeleteCommitted(const Storage& storage, Directory& series, const SeriesEntry& entry,
                       DeltaIndexes& deltas) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto directory, OpenToRemove(series, entry.name));
  const DirectoryLook look = LookInside(*directory, series.path(), entry.name);
  SEALPOINT_RETURN_IF_ERROR(CheckIsStill(entry, look));
  if (look.entry.is_base) {
    SEALPOINT_RETURN_IF_ERROR(Unpin(storage, series.path(), *directory, look.entry, deltas));
  }
  return RemoveWithDirectory(series, entry.name, *directory);
}

Status RemoveWithDirectory(Directory& parent, const std::string& name, Directory& directory) {
  SEALPOINT_RETURN_IF_ERROR(RemoveMarkerFirst(directory, {}));
  return RemoveDirectoryIfEmpty(parent, name, directory);
}

}  // namespace internal::series

Status Series::Delete(const std::string& name) const {
  SEALPOINT_RETURN_IF_ERROR(CheckName(name));
  SEALPOINT_ASSIGN_OR_RETURN(
      const SeriesListing listing,
      internal::series::ScanSeries(*storage_, path_, internal::series::SeriesDetail::kMarkers));
  const auto found = std::find_if(listing.entries.begin(), listing.entries.end(),
                                  [&](const SeriesEntry& entry) { return entry.name == name; });
  if (found == listing.entries.end()) {
    return internal::MakeError(Code::kNotFound, "no such checkpoint").AtPath(JoinPath(path_, name));
  }
  // What could not be read may be the newest, and may be kept.
  if (found->verdict == Verdict::kUnreadable) return found->problem;
  const auto refuse = [&](std::string_view reason) {
    return InvalidArgument("not deleted: ", reason).AtRule("R-SER-05").AtPath(found->path);
  };
  if (found->verdict == Verdict::kUncommitted) return refuse("it was never committed");
  if (listing.newest() == nullptr || &*found == listing.newest()) {
    if (const SeriesEntry* const unread = listing.unread()) return unread->problem;
    return refuse("no newer checkpoint is committed");
  }
  internal::series::DeltaIndexes deltas(*storage_, {});
  SEALPOINT_ASSIGN_OR_RETURN(const auto found_deltas, deltas.Find(listing.entries));
  SEALPOINT_RETURN_IF_ERROR(
      internal::series::CheckIsNotNeeded(listing.entries, found_deltas, *found));
  // The marker of another version, which is listed behind all that are committed, has its sequence.
  const auto newer_end =
      std::find_if(listing.entries.begin(), found, [&](const SeriesEntry& entry) {
        return std::pair(entry.sequence, entry.attempt) <
               std::pair(found->sequence, found->attempt);
      });
  SEALPOINT_ASSIGN_OR_RETURN(const auto series, storage_->OpenDirectory(path_));
  SEALPOINT_RETURN_IF_ERROR(internal::series::MakeSureOfANewerOne(
                                *storage_, listing.entries.begin(), newer_end, found->attempt)
                                .AtRule("R-SER-11")
                                .AtPath(found->path));
  return internal::series::DeleteCommitted(*storage_, *series, *found, deltas);
}

Result<CleanUpReport> Series::RemoveUncommitted(const std::string& name) const {
  SEALPOINT_RETURN_IF_ERROR(CheckName(name));
  CleanUpReport report;
  // A writer that died in its first upload left no object, and so no directory either.
  SEALPOINT_ASSIGN_OR_RETURN(const auto begun, OwnUploads(*storage_, path_, name, report.uploads));
  if (!begun.empty()) {
    SEALPOINT_RETURN_IF_ERROR(storage_->CreateDirectories(JoinPath(path_, name)));
  }
  SEALPOINT_ASSIGN_OR_RETURN(const auto series, storage_->OpenDirectory(path_));
  SEALPOINT_ASSIGN_OR_RETURN(const auto directory, OpenToRemove(*series, name));
  DirectoryLook look = internal::series::LookInside(*directory, path_, name);
  if (!begun.empty()) look.kind = DirectoryLook::Kind::kOurs;
  SEALPOINT_RETURN_IF_ERROR(CheckIsAttempt(look));
  if (!look.entry.is_void) {
    const Status voided = PublishVoid(*directory);
    if (voided.code() == Code::kAlreadyExists) {
      return NotRemoved(look.entry, "it was committed meanwhile");
    }
    SEALPOINT_RETURN_IF_ERROR(voided);
  }
  SEALPOINT_RETURN_IF_ERROR(AbortUploads(*storage_, path_, name, report));
  SEALPOINT_ASSIGN_OR_RETURN(report.bytes_freed, RemoveOurFiles(*directory));
  SEALPOINT_RETURN_IF_ERROR(directory->Sync());
  if (!look.entry.is_void) return report;
  // With anything else left the void marker stays: it alone keeps a slow writer out (R-SER-09).
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<EntryInfo> left, directory->List());
  if (left.size() != 1) return report;
  SEALPOINT_RETURN_IF_ERROR(RemoveMarker(*directory));
  SEALPOINT_RETURN_IF_ERROR(RemoveDirectoryIfEmpty(*series, name, *directory));
  return report;
}

Result<std::vector<UnfinishedFile>> Series::ListUnfinished() const {
  return storage_->ListUnfinished(path_);
}

Status RemoveCheckpoint(Storage& storage, const std::string& path, const RemovalOptions& options) {
  const auto parent = storage.OpenDirectory(internal::storage::ParentPath(path));
  const auto directory =
      parent.ok() ? OpenToRemove(**parent, std::string(internal::storage::LastComponent(path)))
                  : parent.error();
  if (directory.ok()) {
    SEALPOINT_RETURN_IF_ERROR(RemoveMarkerFirst(**directory, options));
  } else if (!options.everything && directory.error().code() != Code::kNotFound) {
    return directory.error();
  }
  return options.everything ? RemoveAll(storage, path) : Status();
}

Status PublishVoidMarker(Storage& storage, const std::string& path) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto directory, storage.OpenDirectory(path));
  return PublishVoid(*directory);
}

}  // namespace sealpoint
