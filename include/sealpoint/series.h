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

// Directory name of a checkpoint in a series, such as "step-000000000042-1f2e3d4c". Names are for
// people only: the marker alone identifies a checkpoint, and readers accept any name.
SEALPOINT_EXPORT std::string SeriesDirectoryName(std::uint64_t step, const AttemptId& attempt);

// One directory of a series.
struct SeriesEntry {
  std::string name{};  // within the series
  std::string path{};
  // According to the marker alone: committed, uncommitted (no marker, or a void one), corrupt,
  // unsupported or unreadable.
  Verdict verdict = Verdict::kUncommitted;
  Status problem{};  // reason if it is not committed
  bool is_void = false;
  bool is_kept = false;  // has a KEEP file
  bool is_link = false;  // a symbolic link to a directory; it is read but never removed
  // Attempt, parent and sequence are set if the checkpoint is committed, or if it is unsupported
  // because another format version wrote it.
  AttemptId attempt{};
  AttemptId parent{};
  std::uint64_t sequence = 0;
  std::uint64_t step = kNoStep;
  std::uint64_t size_bytes = 0;  // of all Sealpoint files in the directory
};

// A snapshot of the directories of a series.
struct SEALPOINT_EXPORT SeriesListing {
  // Committed ones by descending (sequence, attempt), then the others by name.
  std::vector<SeriesEntry> entries{};
  // Attempts that share their parent with another committed one, because two jobs wrote
  // simultaneously.
  std::vector<AttemptId> forks{};
  // Names that are not checkpoint directories; they are never changed. The first kForeignNamesMax
  // of them in ascending order, and the total count.
  static constexpr std::size_t kForeignNamesMax = 1000;
  std::vector<std::string> foreign{};
  std::uint64_t foreign_count = 0;

  // The entry with the greatest sequence (on a fork: then the greatest attempt id). Null if no
  // checkpoint is committed.
  const SeriesEntry* newest() const;
  // The first entry that the storage failed to read (Io). Null if all were read. That entry may be
  // newer than newest().
  const SeriesEntry* unread() const;
};

struct ResumeOptions {
  // Fall back to an older checkpoint if files of the newest one are missing or damaged, and skip
  // directories without a readable marker, which may be newer. Skipped entries are reported. If
  // false, each of these cases is an error.
  bool allow_fallback = false;
  Limits limits{};
};

struct ResumePoint {
  SeriesEntry entry{};
  // Newer checkpoints that failed the file-level check, and directories without a readable
  // sequence. Their `problem` is set.
  std::vector<SeriesEntry> passed_over{};
};

struct PruneOptions {
  bool dry_run = false;  // decide only; change nothing
  Limits limits{};
};

// Decision to keep or delete one directory of the series, with reasons.
struct PruneDecision {
  SeriesEntry entry{};
  bool keep = true;
  // The rules that keep it ("one of the newest 2", "step 1000 is a multiple of 500", …), or the
  // reason why no rule does. At least one.
  std::vector<std::string> reasons{};
  bool is_deleted = false;  // deleted durably
};

struct [[nodiscard]] PruneReport {
  // Success, or the error that stopped the deletion: before the first directory (no decision has
  // is_deleted) or after some.
  Status status{};
  // All directories of the series in the order of SeriesListing::entries. Empty if the series could
  // not be listed or the policy was refused.
  std::vector<PruneDecision> decisions{};
  // Bytes freed by the deleted directories; in a dry run, bytes that would be freed. Files shared
  // with another directory of the series free nothing.
  std::uint64_t bytes_freed = 0;
};

struct [[nodiscard]] CleanUpReport {
  std::uint64_t bytes_freed = 0;  // of files; stores do not report the size of unfinished uploads
  // Aborted uploads to an object store, named as by Series::ListUnfinished.
  std::vector<UnfinishedFile> aborted{};
  // Unsupported if the store's client cannot list uploads (obstore's cannot): the bucket's
  // lifecycle rule must then remove any uploads of the attempt. Otherwise success.
  Status uploads{};
};

// A directory of checkpoints of one training. Stateless; every call reads the storage again. Single
// process: with several ranks, call it on one rank and broadcast the result. Thread safety: all
// functions.
class SEALPOINT_EXPORT Series {
 public:
  // `storage`: DefaultStorage() if null.
  explicit Series(std::string path, std::shared_ptr<Storage> storage = nullptr);

  const std::string& path() const { return path_; }

  // Lists the directories. A directory that does not exist is an empty series. Errors: Io.
  Result<SeriesListing> List() const;
  // Returns the newest committed checkpoint after checking its marker, its index and the lengths of
  // its blobs. Errors: NotFound (R-SER-20: only if no checkpoint was ever committed here), Io (the
  // parent directory of the series does not exist either), InvalidArgument (the path is that of a
  // checkpoint; names its parent directory), those of List; those of Checkpoint::Open for the
  // newest checkpoint, and for any with a marker that is damaged, unreadable or of an unknown
  // version, because it may be newer.
  Result<ResumePoint> Newest(const ResumeOptions& options = {}) const;

  // Deletes a committed checkpoint in a safe order: marker, sync, other files, sync, directory,
  // sync of the parent. A newer checkpoint must first pass the file-level check and is synced. Only
  // Sealpoint files are removed; a directory with foreign files remains. Damaged checkpoints are
  // deleted in the same way. Errors: InvalidArgument (it is the newest, no newer one is intact, it
  // has a KEEP file, it was never committed, it is a symbolic link), NotFound, Io (also if its
  // marker or KEEP file cannot be examined, or if no newer checkpoint is intact and one of them
  // cannot be read).
  Status Delete(const std::string& name) const;
  // Deletes committed checkpoints that the policy does not keep, oldest first and in the order of
  // Delete, after checking that a newer one is intact and syncing it. Uncommitted attempts and
  // directories with a damaged marker are kept, and so are branches of a fork other than the newest
  // one's (R-SER-15). Safe to run concurrently with savers, readers and other prunings of the
  // series; files that another process removes meanwhile are ignored. Stops at the first error and
  // reports the deletions until then. Errors: InvalidArgument (the policy; R-SER-14: also a metric
  // that no checkpoint has, if any would be deleted), those of List and Delete, and those of any
  // checkpoint that the storage failed to read; nothing is deleted in that case, because it may be
  // the newest or a better one.
  PruneReport Prune(const RetentionPolicy& policy, const PruneOptions& options = {}) const;

  // Removes the files of an uncommitted attempt. It first publishes a void marker, so that
  // publication by a slow writer fails. The void marker and the directory remain, because a writer
  // that resumes between their removal could still publish. A second call removes the void
  // directory completely; make it only if no writer of the attempt is alive. In an object store,
  // unfinished uploads of the attempt are also aborted, after the void marker is published; an
  // attempt may consist of them alone. If there are foreign files, void marker and directory remain
  // permanently. Errors: InvalidArgument (it is committed, it has a KEEP file, it is a symbolic
  // link), NotFound, Io, NoSpace.
  Result<CleanUpReport> RemoveUncommitted(const std::string& name) const;
  // Lists uploads below the series that were neither completed nor aborted, including those of
  // running saves. A name such as "step-000000000042-1f2e3d4c/….blob" belongs to an attempt, which
  // RemoveUncommitted removes by the part before '/', or is a leftover in a committed directory.
  // Empty on a file system. Errors: Io, Unsupported (see CleanUpReport::uploads).
  Result<std::vector<UnfinishedFile>> ListUnfinished() const;

 private:
  std::string path_;
  std::shared_ptr<Storage> storage_;
};

// Creates or removes the file KEEP in a checkpoint directory (spec/series.md section 6). A
// directory with this file is neither deleted nor cleaned up. Returns true if that changed
// anything; durable after success in any case. Errors: NotFound, Io, NoSpace.
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

// Publishes a void marker in a directory, so that it can never become a checkpoint. Errors:
// AlreadyExists (it has a marker), Unsupported, Io, NoSpace.
SEALPOINT_EXPORT Status PublishVoidMarker(Storage& storage, const std::string& directory);

}  // namespace sealpoint

#endif  // SEALPOINT_SERIES_H_
