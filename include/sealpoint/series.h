// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_SERIES_H_
#define SEALPOINT_SERIES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/retention.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"
#include "sealpoint/verdict.h"

namespace sealpoint {

// "step-000000000042-1f2e3d4c": the directory of a checkpoint in a series. Names are a courtesy to
// people; what a directory holds is said by its marker alone, and any name is read.
SEALPOINT_EXPORT std::string SeriesDirectoryName(std::uint64_t step, const AttemptId& attempt);

// One directory of a series.
struct SeriesEntry {
  std::string name{};  // within the series
  std::string path{};
  // By the marker alone: committed, uncommitted (no marker, or void), corrupt, unsupported,
  // unreadable.
  Verdict verdict = Verdict::kUncommitted;
  Status problem{};  // why it is not committed
  bool is_void = false;
  bool is_kept = false;  // has a KEEP file
  bool is_link = false;  // a symbolic link to a directory: read, and never removed
  // Attempt, parent and sequence are known of one that is committed, and of one that is unsupported
  // because another version of the format made it.
  AttemptId attempt{};
  AttemptId parent{};
  std::uint64_t sequence = 0;
  std::uint64_t step = kNoStep;
  std::uint64_t size_bytes = 0;  // of all files of ours in the directory
};

// The directories of a series, looked at once.
struct SEALPOINT_EXPORT SeriesListing {
  // Committed ones by descending (sequence, attempt), then the others by name.
  std::vector<SeriesEntry> entries{};
  // Attempts that share their parent with another committed one (two jobs wrote at once).
  std::vector<AttemptId> forks{};
  // Names that are not directories of checkpoints; never touched. The first kForeignNamesMax of
  // them, ascending, and how many there are.
  static constexpr std::size_t kForeignNamesMax = 1000;
  std::vector<std::string> foreign{};
  std::uint64_t foreign_count = 0;

  // Greatest sequence (on a fork: then greatest attempt id); nothing if none is committed.
  const SeriesEntry* newest() const;
  // The first one that the storage failed to read (Io); nothing if all were read. It may be the
  // newest, so that newest() is then a guess.
  const SeriesEntry* unread() const;
};

struct ResumeOptions {
  // Go back to an older checkpoint if the newest one's files are missing or damaged, and pass by
  // what may be newer but has no marker that says so. What was passed over is reported. Off: that
  // is an error.
  bool allow_fallback = false;
  Limits limits{};
};

struct ResumePoint {
  SeriesEntry entry{};
  std::vector<SeriesEntry>
      passed_over{};  // newer ones whose file-level check failed, and those whose marker does not
                      // say how new they are; `problem` set
};

struct PruneOptions {
  bool dry_run = false;  // decide, and change nothing
  Limits limits{};
};

// Whether one directory of the series is kept or deleted, and why.
struct PruneDecision {
  SeriesEntry entry{};
  bool keep = true;
  // Each rule that keeps it ("one of the newest 2", "step 1000 is a multiple of 500", …), or why
  // none does. At least one.
  std::vector<std::string> reasons{};
  bool is_deleted = false;  // done, and durable
};

struct [[nodiscard]] PruneReport {
  // Success, or the error that ended the deletion before the first directory (no decision has
  // is_deleted) or after some.
  Status status{};
  // All directories of the series in the order of SeriesListing::entries. Empty if the series could
  // not be listed, or the policy was refused.
  std::vector<PruneDecision> decisions{};
  // By what is_deleted; in a dry run: by what would be deleted. A file that another directory of
  // the series shares frees nothing.
  std::uint64_t bytes_freed = 0;
};

struct [[nodiscard]] CleanUpReport {
  std::uint64_t bytes_freed = 0;  // of files; how much an upload had sent no store says
  // Uploads to an object store that were given up; names as those of Series::ListUnfinished.
  std::vector<UnfinishedFile> aborted{};
  // Unsupported if the client of the store cannot list uploads (obstore's cannot): those of the
  // attempt, if it had any, are left to the lifecycle rule of the bucket. Else success.
  Status uploads{};
};

// A directory of checkpoints of one training. Stateless; every call looks at the storage anew.
// Single process: with ranks, one of them calls and broadcasts. Thread safety: all functions.
class SEALPOINT_EXPORT Series {
 public:
  // `storage` null: DefaultStorage().
  explicit Series(std::string path, std::shared_ptr<Storage> storage = nullptr);

  const std::string& path() const { return path_; }

  // A directory that does not exist is an empty series. Errors: Io.
  Result<SeriesListing> List() const;
  // The newest committed checkpoint, after its marker, index and the lengths of its blobs were
  // checked. Errors: NotFound (R-SER-20: nothing was committed here; for no other reason), Io (the
  // parent directory of the series does not exist either), InvalidArgument (the path is that of a
  // checkpoint; names its parent directory), those of List; those of
  // Checkpoint::Open for the newest one and for any whose marker is damaged, of an unknown version
  // or unreadable, since it may be the newest.
  Result<ResumePoint> Newest(const ResumeOptions& options = {}) const;

  // Removes a committed checkpoint in the safe order: marker, sync, the rest, sync, directory, sync
  // of the parent; before that a newer one passes its file-level check and is synced. Only files of
  // our names are removed: with foreign files inside, the directory stays. A damaged one is removed
  // like a good one. Errors: InvalidArgument (it is the newest, no newer one is whole, KEEP is
  // there, it was never committed, it is a symbolic link), NotFound, Io (also if its own marker
  // or its KEEP cannot be seen, or none of the newer ones is whole and one cannot be read).
  Status Delete(const std::string& name) const;
  // Deletes the committed checkpoints that the policy does not keep, the oldest first, one after
  // the other in the safe order of Delete, once a newer one was found whole and was synced.
  // Attempts that were never committed, and what has a damaged marker, stay. Right beside savers,
  // readers and other prunings of the same series: what another process removes meanwhile is not
  // missed. Other branches of a fork than that of the newest stay (R-SER-15). Stops at the first
  // error, and says what was done until then. Errors: InvalidArgument (the policy, R-SER-14: also a
  // metric that no checkpoint has, if any would be deleted), those of List, and of any checkpoint
  // that the storage failed to read, since it may be the newest or a better one: nothing is deleted
  // then; those of Delete.
  PruneReport Prune(const RetentionPolicy& policy, const PruneOptions& options = {}) const;

  // Removes the files of an attempt that was never committed. Publishes a void marker first, so
  // that a slow writer's own publication fails, and leaves that marker and the directory: were they
  // removed as well, a writer that wakes up between the two could still publish. Called again on
  // such a void directory it removes it whole; for that the caller must know that no writer of the
  // attempt is alive. In an object store the attempt's unfinished uploads are given up as well,
  // behind the void marker; one that has nothing else is an attempt, too.
  // With foreign files inside, void marker and directory stay for good.
  // Errors: InvalidArgument (it is committed, KEEP is there, it is a symbolic link), NotFound, Io,
  // NoSpace.
  Result<CleanUpReport> RemoveUncommitted(const std::string& name) const;
  // Uploads to an object store that were begun below the series and neither completed nor given up;
  // those of running saves are among them. "step-000000000042-1f2e3d4c/….blob" is of an attempt,
  // which RemoveUncommitted takes by the name before the '/', or a leftover in a committed
  // directory. Empty on a file system. Errors: Io, Unsupported (see CleanUpReport::uploads).
  Result<std::vector<UnfinishedFile>> ListUnfinished() const;

 private:
  std::string path_;
  std::shared_ptr<Storage> storage_;
};

// Makes the file KEEP in the directory of a checkpoint, or removes it (spec/series.md section 6):
// what has one is neither deleted nor cleaned up. True if that changed anything; durable after
// success in any case. Errors: NotFound, Io, NoSpace.
SEALPOINT_EXPORT Result<bool> SetKept(Storage& storage, const std::string& directory, bool is_kept);

// Files that RemoveCheckpoint removes besides, by names within the directory.
struct RemovalOptions {
  std::vector<std::string> first{};  // in this order, each durably, before the marker
  std::vector<std::string> also{};   // after the marker
  // All else as well, and the directory; or what is at the path instead: a file, or a link itself.
  bool everything = false;
};

// Takes the checkpoint out of the directory `path`, its marker first (R-SER-06): no reader accepts
// what a crash leaves. Removes files with names of the format and those of the options; the
// directory stays, and so do other files. Checks neither KEEP nor newer checkpoints, as
// Series::Delete does. Success if there is no checkpoint; durable then, too. One process calls it.
// Errors: InvalidArgument (a symbolic link), Io.
SEALPOINT_EXPORT Status RemoveCheckpoint(Storage& storage, const std::string& path,
                                         const RemovalOptions& options = {});

// Publishes a void marker in a directory: it will never hold a checkpoint.
// Errors: AlreadyExists (it has a marker), Unsupported, Io, NoSpace.
SEALPOINT_EXPORT Status PublishVoidMarker(Storage& storage, const std::string& directory);

}  // namespace sealpoint

#endif  // SEALPOINT_SERIES_H_
