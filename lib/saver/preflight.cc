// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/preflight.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/comm/agree.h"
#include "lib/format/constants.h"
#include "lib/promote/staged_folder.h"
#include "lib/series/series_scan.h"
#include "lib/storage/durable.h"
#include "lib/storage/path.h"
#include "lib/writer/commit_steps.h"
#include "sealpoint/series.h"

namespace sealpoint::internal::saver {
namespace {

// What rank 0 tells the others: the attempt it opened.
struct Announcement {
  AttemptId attempt{};
  std::string directory{};
  ParentRef parent{};  // zero if none
  std::string parent_directory{};
  PublishMethod publish = PublishMethod::kNone;
  Id128 probe{};
};

Bytes EncodeAnnouncement(const Announcement& announcement) {
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(announcement.attempt);
  out.Put(announcement.directory);
  out.Put(announcement.parent.attempt);
  out.Put(announcement.parent.sequence);
  out.Put(announcement.parent_directory);
  out.Put(static_cast<std::uint64_t>(announcement.publish));
  out.Put(announcement.probe);
  return bytes;
}

Result<Announcement> DecodeAnnouncement(ByteSpan bytes) {
  WireReader in(bytes);
  Announcement announcement;
  SEALPOINT_ASSIGN_OR_RETURN(announcement.attempt, in.Id<AttemptId>());
  SEALPOINT_ASSIGN_OR_RETURN(announcement.directory, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(announcement.parent.attempt, in.Id<AttemptId>());
  SEALPOINT_ASSIGN_OR_RETURN(announcement.parent.sequence, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(announcement.parent_directory, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t publish, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(announcement.probe, in.Id<Id128>());
  announcement.publish = static_cast<PublishMethod>(publish);
  return announcement;
}

std::string SharedProbeName(const AttemptId& attempt) {
  return format::ProbeName(attempt) + ".shared";
}

// R-SER-26: numbering on from an older one would hide what is saved now behind the one that was not
// read.
Status CheckMarkers(const SeriesListing& listing, const SaveOptions& options) {
  if (const SeriesEntry* const unread = listing.unread()) {
    return series::NeverNotFound(unread->problem)
        .Prefixed(StrCat("the newest checkpoint of the series is not known while ", unread->name,
                         " in it cannot be read; make it readable, or move it out of the series"));
  }
  if (options.allow_fallback) return {};
  for (const SeriesEntry& entry : listing.entries) {
    if (entry.verdict != Verdict::kCorrupt && entry.verdict != Verdict::kUnsupported) continue;
    return Status(entry.problem)
        .Prefixed(StrCat("the newest checkpoint of the series is not known, since the marker of ",
                         entry.name, " in it is ", VerdictName(entry.verdict),
                         "; move it out of the series, save with a version that reads it, or allow "
                         "falling back (allow_fallback)"));
  }
  return {};
}

// What a new checkpoint comes behind; null if nothing was committed. One that another version of
// the format made may be the newest, too.
const SeriesEntry* GreatestSequence(const SeriesListing& listing) {
  const auto found = std::ranges::max_element(listing.entries, {}, [](const SeriesEntry& entry) {
    return std::pair(entry.sequence, entry.attempt);
  });
  return found != listing.entries.end() && found->sequence != 0 ? &*found : nullptr;
}

// Fills in directory and parent. In a series the parent is the newest committed checkpoint.
Status ChooseDirectory(Storage& storage, const SaveTarget& target, const SaveOptions& options,
                       Announcement& announcement) {
  announcement.directory = target.path();
  if (target.parent()) announcement.parent = *target.parent();
  announcement.parent_directory = target.parent_directory();
  if (!target.is_series()) return {};
  if (options.step == kNoStep) {
    return RuleError(Code::kInvalidArgument, "R-SER-13", "a checkpoint in a series needs a step");
  }
  SEALPOINT_ASSIGN_OR_RETURN(
      const SeriesListing listing,
      series::ScanSeries(storage, target.path(), series::SeriesDetail::kMarkers));
  SEALPOINT_RETURN_IF_ERROR(CheckMarkers(listing, options));
  if (const SeriesEntry* newest = GreatestSequence(listing)) {
    announcement.parent = {newest->attempt, newest->sequence};
    if (newest == listing.newest()) announcement.parent_directory = newest->path;
    SEALPOINT_RETURN_IF_ERROR(writer::CheckParent(announcement.parent).AtPath(newest->path));
  }
  announcement.directory =
      JoinPath(target.path(), SeriesDirectoryName(options.step, announcement.attempt));
  return {};
}

Status PrepareDirectory(Directory& directory, Announcement& announcement) {
  SEALPOINT_RETURN_IF_ERROR(writer::CheckNoMarker(directory));
  SEALPOINT_ASSIGN_OR_RETURN(const Capabilities capabilities,
                             directory.Probe(format::ProbeName(announcement.attempt)));
  SEALPOINT_RETURN_IF_ERROR(storage::CheckCapabilities(directory, capabilities));
  announcement.publish = capabilities.publish;
  SEALPOINT_ASSIGN_OR_RETURN(announcement.probe, Id128::Random());
  const std::string name = SharedProbeName(announcement.attempt);
  Status status = storage::WriteFileDurably(directory, name, announcement.probe.bytes);
  // A file of that name that was there is another's (R-CMT-15).
  const bool is_ours = status.code() != Code::kAlreadyExists;
  if (!status.ok() && is_ours) static_cast<void>(directory.Remove(name));
  return status;
}

// Notes the levels that are made here. They can be removed again through the handle of the
// directory around them, which is opened before: it may not open any more after a failure.
Status MakeDirectory(Storage& storage, Attempt& attempt) {
  std::vector<std::string> missing;
  std::vector<std::string> levels = storage::PathPrefixes(attempt.directory);
  if (!levels.empty()) levels.insert(levels.begin(), storage::ParentPath(levels.front()));
  for (std::size_t i = levels.size(); i-- > 0 && !attempt.made_in;) {
    auto before = storage.OpenDirectory(levels[i]);
    if (before.ok()) {
      attempt.made_in = std::move(before).value();
    } else if (i > 0 && before.error().code() == Code::kNotFound) {
      missing.insert(missing.begin(), std::string(storage::LastComponent(levels[i])));
    } else {
      return std::move(before).error();
    }
  }
  SEALPOINT_RETURN_IF_ERROR(storage.CreateDirectories(attempt.directory));
  attempt.made_levels = std::move(missing);
  return {};
}

// On rank 0, which has the attempt ready: all that there is of it.
void RemoveAttempt(const Attempt& attempt) {
  if (attempt.opened) static_cast<void>(attempt.opened->Remove(SharedProbeName(attempt.id)));
  RemoveEmptyDirectories(attempt);
}

// Fills in what only rank 0 knows of the attempt: its handle and whether it made the directory.
Result<Bytes> OpenAttemptOnRoot(Storage& storage, const SaveTarget& target,
                                const SaveOptions& options, const Status& local_status,
                                Attempt& attempt) {
  SEALPOINT_RETURN_IF_ERROR(local_status);
  SEALPOINT_RETURN_IF_ERROR(writer::CheckParent(target.parent()));
  Announcement announcement;
  SEALPOINT_ASSIGN_OR_RETURN(announcement.attempt, AttemptId::Random());
  SEALPOINT_RETURN_IF_ERROR(ChooseDirectory(storage, target, options, announcement));
  attempt.id = announcement.attempt;
  attempt.directory = announcement.directory;
  SEALPOINT_RETURN_IF_ERROR(MakeDirectory(storage, attempt));
  auto opened = storage.OpenDirectory(announcement.directory);
  Status prepared = opened.status();
  if (prepared.ok()) {
    prepared = PrepareDirectory(**opened, announcement);
    attempt.opened = std::move(opened).value();
  }
  if (prepared.ok()) return EncodeAnnouncement(announcement);
  RemoveEmptyDirectories(attempt);
  return prepared;
}

// Whether this rank sees what rank 0 made.
struct JoinOutcome {
  Status status;
  bool is_missing = false;  // the directory, or the probe in it, is not there
};

Status OtherFileSystem(const std::string& path, std::string_view found) {
  return MakeError(Code::kIo, "not the same file system as rank 0: ", found)
      .AtRule("R-CMT-09")
      .AtPath(path);
}

JoinOutcome ReadSharedProbe(const Directory& directory, const Announcement& announcement) {
  const std::string& path = directory.path();
  const auto file = directory.OpenForRead(SharedProbeName(announcement.attempt), IoMode::kBuffered);
  if (!file.ok() && file.error().code() == Code::kNotFound) {
    return {.status = OtherFileSystem(path, "its probe is missing"), .is_missing = true};
  }
  if (!file.ok()) return {.status = file.error()};
  Id128 found;
  if ((*file)->size_bytes() != found.bytes.size()) {
    return {.status = OtherFileSystem(path, "its probe has a different length")};
  }
  if (Status read = (*file)->ReadAt(0, found.bytes); !read.ok()) return {.status = read};
  if (found == announcement.probe) return {};
  return {.status = OtherFileSystem(path, "its probe has different content")};
}

JoinOutcome JoinAttempt(Storage& storage, const Announcement& announcement, Attempt& attempt) {
  if (attempt.opened) return ReadSharedProbe(*attempt.opened, announcement);
  auto opened = storage.OpenDirectory(announcement.directory);
  if (!opened.ok() && opened.error().code() == Code::kNotFound) {
    return {.status = OtherFileSystem(announcement.directory, "its directory is missing"),
            .is_missing = true};
  }
  if (!opened.ok()) return {.status = std::move(opened).error()};
  attempt.opened = std::move(opened).value();
  return ReadSharedProbe(*attempt.opened, announcement);
}

}  // namespace

std::uint64_t FileCount(int rank_count) { return static_cast<std::uint64_t>(rank_count) + 3; }

Result<Attempt> RunPreflight(Storage& storage, Communicator& comm, const SaveTarget& target,
                             const SaveOptions& options, const Status& local_status,
                             std::uint64_t planned_bytes) {
  const bool is_root = comm.rank() == 0;
  Attempt attempt;
  Result<Bytes> at_root =
      is_root ? OpenAttemptOnRoot(storage, target, options, local_status, attempt) : Bytes();
  const bool has_begun = is_root && at_root.ok();
  const Result<Bytes> bytes = comm::BroadcastResult(comm, 0, std::move(at_root));
  if (!bytes.ok() && has_begun) RemoveAttempt(attempt);
  SEALPOINT_RETURN_IF_ERROR(bytes.status());
  SEALPOINT_ASSIGN_OR_RETURN(const Announcement announcement, DecodeAnnouncement(*bytes));
  attempt.id = announcement.attempt;
  attempt.directory = announcement.directory;
  attempt.publish = announcement.publish;
  if (!announcement.parent.attempt.is_zero()) attempt.parent = announcement.parent;
  attempt.parent_directory = announcement.parent_directory;
  JoinOutcome joined{.status = local_status};
  if (joined.status.ok()) joined = JoinAttempt(storage, announcement, attempt);
  if (joined.status.ok() && attempt.publish == PublishMethod::kPutIfAbsent) {
    // An object store has no directories: this process opens it again when the probe is gone.
    joined.status = storage.CreateDirectories(attempt.directory);
  }
  // The greatest plan, and the complements of the free space at rank 0.
  std::array<std::uint64_t, 3> maxima = {planned_bytes, 0, 0};
  if (is_root && joined.status.ok() && planned_bytes != kNotPlanned) {
    const auto space = attempt.opened->FreeSpace();
    joined.status = space.status();
    if (space.ok()) maxima = {planned_bytes, ~space->free_bytes, ~space->free_inodes};
  }
  const Status agreed =
      OutcomeOf(comm::Agree(comm, joined.status, maxima), joined.status, joined.is_missing);
  const auto ranks = static_cast<std::uint64_t>(comm.size());
  attempt.is_sure_to_fit = maxima[0] != kNotPlanned && maxima[0] <= ~maxima[1] / ranks &&
                           FileCount(comm.size()) <= ~maxima[2];
  if (is_root && attempt.opened) {
    static_cast<void>(attempt.opened->Remove(SharedProbeName(attempt.id)));
  }
  if (agreed.ok()) return attempt;
  if (is_root) RemoveEmptyDirectories(attempt);
  return agreed;
}

namespace {

// The newest checkpoint may not be promoted yet: then it is only in the local place of this rank.
Status LookForNewerOnLocal(Storage& storage, const promote::StagedFolder& folder,
                           const SaveOptions& options, ParentRef& parent) {
  SEALPOINT_ASSIGN_OR_RETURN(
      const SeriesListing listing,
      series::ScanSeries(storage, folder.path, series::SeriesDetail::kMarkers));
  SEALPOINT_RETURN_IF_ERROR(CheckMarkers(listing, options));
  const SeriesEntry* const newest = GreatestSequence(listing);
  if (newest == nullptr || newest->sequence <= parent.sequence) return {};
  parent = {newest->attempt, newest->sequence};
  return writer::CheckParent(parent).AtPath(newest->path);
}

// The folder of the series that the checkpoint is to be in; a framework may name its directories.
Result<promote::StagedFolder> FolderOf(const Storage& storage, const SaveTarget& target) {
  return promote::StagedFolderOf(
      storage, target.local(),
      target.is_series() ? target.path() : storage::ParentPath(target.path()));
}

Result<Bytes> AnnounceStaged(Storage& storage, const SaveTarget& target, const SaveOptions& options,
                             const Result<promote::StagedFolder>& folder) {
  SEALPOINT_RETURN_IF_ERROR(folder.status());
  SEALPOINT_RETURN_IF_ERROR(writer::CheckParent(target.parent()));
  Announcement announcement;
  SEALPOINT_ASSIGN_OR_RETURN(announcement.attempt, AttemptId::Random());
  SEALPOINT_RETURN_IF_ERROR(ChooseDirectory(storage, target, options, announcement));
  if (target.is_series()) {
    SEALPOINT_RETURN_IF_ERROR(LookForNewerOnLocal(storage, *folder, options, announcement.parent));
    return EncodeAnnouncement(announcement);
  }
  const auto there = storage.OpenDirectory(target.path());
  if (there.ok()) {
    SEALPOINT_RETURN_IF_ERROR(writer::CheckNoMarker(**there));
  } else if (there.error().code() != Code::kNotFound) {
    return there.error();
  }
  return EncodeAnnouncement(announcement);
}

// The probe has a name of its own, since other ranks may probe the same directory.
Status MakeLocalPlace(Storage& storage, const promote::StagedFolder& folder, Attempt& attempt) {
  SEALPOINT_RETURN_IF_ERROR(promote::MakeStagedFolder(storage, folder));
  SEALPOINT_RETURN_IF_ERROR(MakeDirectory(storage, attempt));
  SEALPOINT_ASSIGN_OR_RETURN(attempt.opened, storage.OpenDirectory(attempt.directory));
  SEALPOINT_RETURN_IF_ERROR(writer::CheckNoMarker(*attempt.opened));
  SEALPOINT_ASSIGN_OR_RETURN(const Id128 probe, Id128::Random());
  SEALPOINT_ASSIGN_OR_RETURN(const Capabilities capabilities,
                             attempt.opened->Probe(format::ProbeName(probe)));
  SEALPOINT_RETURN_IF_ERROR(storage::CheckCapabilities(*attempt.opened, capabilities));
  attempt.publish = capabilities.publish;
  return {};
}

}  // namespace

Result<Attempt> RunStagedPreflight(Storage& storage, Communicator& comm, const SaveTarget& target,
                                   const SaveOptions& options, const Status& local_status) {
  Result<promote::StagedFolder> folder =
      local_status.ok() ? FolderOf(storage, target) : local_status;
  Result<Bytes> at_root = Bytes();
  if (comm.rank() == 0) at_root = AnnounceStaged(storage, target, options, folder);
  SEALPOINT_ASSIGN_OR_RETURN(const Bytes bytes, comm::BroadcastResult(comm, 0, std::move(at_root)));
  SEALPOINT_ASSIGN_OR_RETURN(const Announcement announcement, DecodeAnnouncement(bytes));
  Attempt attempt{.id = announcement.attempt, .final_directory = announcement.directory};
  if (!announcement.parent.attempt.is_zero()) attempt.parent = announcement.parent;
  Status made = folder.status();
  if (made.ok()) {
    attempt.directory = JoinPath(folder->path, storage::LastComponent(announcement.directory));
    made = MakeLocalPlace(storage, *folder, attempt);
  }
  const Status agreed = OutcomeOf(comm::Agree(comm, made), made, false);
  if (agreed.ok()) return attempt;
  RemoveEmptyDirectories(attempt);
  return agreed;
}

Status OutcomeOf(comm::Agreement agreement, const Status& local_status, bool is_missing) {
  if (agreement.broken.ok()) return std::move(agreement.status);
  return local_status.ok() || is_missing ? std::move(agreement.broken) : local_status;
}

void RemoveEmptyDirectories(const Attempt& attempt) {
  const std::vector<std::string>& made = attempt.made_levels;
  std::vector<std::unique_ptr<Directory>> opened;  // of all made levels but the innermost
  const auto parent_of = [&](std::size_t i) -> Directory& {
    return i == 0 ? *attempt.made_in : *opened[i - 1];
  };
  for (std::size_t i = 0; i + 1 < made.size(); ++i) {
    auto directory = parent_of(i).OpenSubdirectory(made[i]);
    if (!directory.ok()) return;
    opened.push_back(std::move(directory).value());
  }
  for (std::size_t i = made.size(); i-- > 0;) {
    if (!parent_of(i).RemoveSubdirectory(made[i]).ok()) return;
  }
}

}  // namespace sealpoint::internal::saver
