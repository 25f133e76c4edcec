// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_SERIES_H_
#define SEALPOINT_SERIES_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint {

// Keeps the newest checkpoint of each period, for the newest `count` periods that have a
// checkpoint. A period is for example an hour or a day, counted from 1970-01-01 00:00 UTC.
struct KeepPerPeriod {
  std::chrono::seconds period{0};  // at least one second
  std::uint32_t count = 0;         // at least 1
  friend bool operator==(const KeepPerPeriod&, const KeepPerPeriod&) = default;
};

enum class BestMetric : std::uint8_t { kLeast, kGreatest };

// Keeps the `count` checkpoints with the best value of a provenance entry
// (SaveOptions::provenance), such as {"metric.loss", "1.25"}. The value is a decimal number in C++
// and JSON syntax. Checkpoints without the entry, or with a value that is not finite, never count
// as best. If several checkpoints have equal values, the newer ones count as better.
struct KeepBest {
  std::string metric{};  // must begin with "metric."
  BestMetric best = BestMetric::kLeast;
  std::uint32_t count = 1;  // at least 1
  friend bool operator==(const KeepBest&, const KeepBest&) = default;
};

// Rules that select the committed checkpoints of a series to keep (spec/series.md §7). A checkpoint
// is kept if at least one rule keeps it, if it has a KEEP file (SeriesEntry::is_kept), or if it is
// the base of a delta that is kept, directly or along a chain. Counts such as `keep_last` include
// only intact checkpoints (marker, index and all blob lengths are correct); a checkpoint and its
// copies count as one. A value type.
struct RetentionPolicy {
  // Keep this many of the newest intact checkpoints, and also all damaged checkpoints that are
  // newer than the oldest of these intact checkpoints. The minimum is 2, because the newest
  // checkpoint may never have been read. If the newest checkpoint is bad, the previous checkpoint
  // is the last good one.
  std::uint32_t keep_last = 2;
  // Keep checkpoints with a step that is a multiple of this number; 0: no such rule.
  std::uint64_t keep_every_n_steps = 0;
  // Each entry of this list is a separate rule. The creation time in a checkpoint's index
  // determines the checkpoint's period. The newest checkpoint of a period is the one with the
  // greatest sequence.
  std::vector<KeepPerPeriod> keep_per_period{};
  std::optional<KeepBest> keep_best{};
  // Keep this many of the newest intact checkpoints that were checked for silent data corruption
  // (ResumeOptions::require_checked); 0: no such rule.
  std::uint32_t keep_checked = 0;
  // Keep intact checkpoints that were created at most this long before the newest intact
  // checkpoint; 0: no such rule.
  std::chrono::seconds keep_within{0};
  // Maximum total size of the kept checkpoints in bytes; 0: no limit. A file that several
  // checkpoints share by hard links counts once. If the checkpoints that the rules above select are
  // larger than this in total, only the newest of them that fit are kept. If `keep_last` is the
  // only rule, the newest intact checkpoints that fit into this size are kept. A delta needs space
  // for itself and for all its bases that are not kept anyway. The newest `keep_last` checkpoints,
  // checkpoints with a KEEP file and the bases of these are always kept, regardless of their size.
  // Uncommitted attempts do not count toward this size.
  std::uint64_t max_bytes = 0;
  friend bool operator==(const RetentionPolicy&, const RetentionPolicy&) = default;
};

// Returns the directory name of a checkpoint in a series, for example "step-000000000042-1f2e3d4c".
// Names are for people only: the marker alone identifies a checkpoint, and readers accept any name.
SEALPOINT_EXPORT std::string SeriesDirectoryName(std::uint64_t step, const AttemptId& attempt);

// One directory of a series.
struct SeriesEntry {
  std::string name{};  // within the series
  std::string path{};
  // Verdict based on the marker alone: committed, uncommitted (no marker, or a void marker),
  // corrupt, unsupported or unreadable.
  Verdict verdict = Verdict::kUncommitted;
  Status problem{};  // reason why the checkpoint is not committed
  bool is_void = false;
  bool is_kept = false;   // has a KEEP file, except one that a saver made for deltas (is_base)
  bool is_base = false;   // has a KEEP file that a saver made for deltas of this series
  bool is_delta = false;  // is stored as changes to another checkpoint (SaveOptions::base)
  bool is_link = false;   // a symbolic link to a directory; it is read but never removed
  // Attempt, parent and sequence are set if the checkpoint is committed, or if it is unsupported
  // because it was written in a different format version.
  AttemptId attempt{};
  AttemptId parent{};
  std::uint64_t sequence = 0;
  std::uint64_t step = kNoStep;
  std::uint64_t size_bytes = 0;  // total size of all Sealpoint files in the directory
};

// The directories of a series, as they were at one point in time.
struct SEALPOINT_EXPORT SeriesListing {
  // Committed checkpoints by descending (sequence, attempt), then all other directories by name.
  std::vector<SeriesEntry> entries{};
  // Committed attempts that have the same parent as another committed attempt. Such forks arise if
  // two jobs write to the series simultaneously.
  std::vector<AttemptId> forks{};
  // Names of entries that are not checkpoint directories; the library never changes these entries.
  // `foreign` has the first kForeignNamesMax names in ascending order, and `foreign_count` is the
  // total number of names.
  static constexpr std::size_t kForeignNamesMax = 1000;
  std::vector<std::string> foreign{};
  std::uint64_t foreign_count = 0;

  // Returns the committed entry with the greatest sequence. If several entries have the greatest
  // sequence because of a fork, returns the entry with the greatest attempt id. Returns null if no
  // checkpoint is committed.
  const SeriesEntry* newest() const;
  // Returns the first entry that the storage failed to read (Io). Returns null if all entries were
  // read. The unread entry may be newer than newest().
  const SeriesEntry* unread() const;
  // If the series has forks, returns the committed attempts that are not on the branch of newest()
  // (spec/series.md §7). All other committed attempts count as the lineage of newest(), even if
  // some parents were deleted.
  std::set<AttemptId> branches() const;
};

struct ResumeOptions {
  // If true, fall back to an older checkpoint if files of the newest checkpoint are missing or
  // damaged. Also skip directories with an unreadable marker, although such a directory may have a
  // newer checkpoint. Skipped entries are reported. If false, missing or damaged files and
  // unreadable markers are errors.
  bool allow_fallback = false;
  // Skip checkpoints that are not checked for silent data corruption (R-FPR-04). A checkpoint is
  // not checked if its provenance has no {"sdc.state", "checked"}. A checkpoint also counts as not
  // checked if a newer checkpoint has {"sdc.state", "found"} and an "sdc.upto" below the step of
  // the older checkpoint. Skipped checkpoints are reported. If all checkpoints are skipped, the
  // error is InvalidArgument.
  bool require_checked = false;
  Limits limits{};
};

struct ResumePoint {
  SeriesEntry entry{};
  // Newer checkpoints that failed the file-level check or are not checked for silent data
  // corruption, and directories with an unreadable marker. The `problem` of each entry is set.
  std::vector<SeriesEntry> skipped{};
};

struct PruneOptions {
  bool dry_run = false;  // decide only; change nothing
  Limits limits{};
};

// The decision to keep or delete one directory of the series, with reasons.
struct PruneDecision {
  SeriesEntry entry{};
  bool keep = true;
  // Reasons why rules keep the directory, or why no rule keeps it. Examples: "one of the newest 2",
  // "step 1000 is a multiple of 500". Never empty.
  std::vector<std::string> reasons{};
  bool is_deleted = false;  // deleted durably
};

struct [[nodiscard]] PruneReport {
  // Success, or the error that stopped the deletions. The error may occur before the first deletion
  // (no decision has is_deleted) or after some deletions.
  Status status{};
  // All directories of the series in the order of SeriesListing::entries. Empty if the series could
  // not be listed or the policy was refused.
  std::vector<PruneDecision> decisions{};
  // Bytes that the deleted directories freed; in a dry run, bytes that their deletion would free.
  // Several directories of the series may share a file by hard links. Such a file counts when the
  // last of these directories is deleted, because earlier deletions free no space.
  std::uint64_t bytes_freed = 0;
};

struct [[nodiscard]] CleanUpReport {
  std::uint64_t bytes_freed = 0;  // size of removed files; stores do not report the size of uploads
  // Aborted uploads to an object store, named as in Series::ListUnfinished.
  std::vector<UnfinishedFile> aborted{};
  // Unsupported if the store's client cannot list uploads (for example obstore's client). If the
  // client cannot list uploads, a lifecycle rule of the bucket must remove any unfinished uploads
  // of the attempt. Success in all other cases.
  Status uploads{};
};

// A directory with the checkpoints of one training run. Stateless; every call reads the storage
// again. Single process: if the job has several ranks, make the call on one rank and broadcast the
// result. All functions are thread-safe.
class SEALPOINT_EXPORT Series {
 public:
  // `storage`: DefaultStorage() if null.
  explicit Series(std::string path, std::shared_ptr<Storage> storage = nullptr);

  const std::string& path() const { return path_; }

  // Lists the directories of the series. If the series directory does not exist, the listing is
  // empty. Errors: Io.
  Result<SeriesListing> List() const;
  // Returns the newest committed checkpoint after checking its marker, its index and the lengths of
  // its blobs. Errors: NotFound (R-SER-20: only if no checkpoint was ever committed here), Io (also
  // if neither the series directory nor its parent directory exists), InvalidArgument (the path is
  // the directory of a checkpoint; the error names the parent directory), the errors of List, and
  // the errors of Checkpoint::Open for the newest checkpoint. If the marker of any checkpoint is
  // damaged, unreadable or of an unknown version, Newest returns the error of this marker. The
  // reason is that such a checkpoint may be the newest. With ResumeOptions::allow_fallback, Newest
  // skips such checkpoints instead.
  Result<ResumePoint> Newest(const ResumeOptions& options = {}) const;

  // Deletes a committed checkpoint. First, the call checks that at least one newer checkpoint
  // passes the file-level check, and syncs that checkpoint. If no newer checkpoint passes, nothing
  // is deleted. The call then deletes in a safe order: marker, sync, other files, sync, directory,
  // sync of the parent. Only Sealpoint files are removed; a directory with foreign files remains.
  // Damaged checkpoints are deleted in the same way. Errors: InvalidArgument (the checkpoint is the
  // newest, has a KEEP file, was never committed, or is a symbolic link; no newer checkpoint is
  // intact; R-DLT-11: the checkpoint is the base of a committed delta of the series), NotFound, Io
  // (also if the marker or KEEP file of the checkpoint or the index of a delta cannot be examined,
  // or if no newer checkpoint is intact and one of the newer checkpoints cannot be read).
  Status Delete(const std::string& name) const;
  // Deletes the committed checkpoints that the policy does not keep, oldest first; deltas are
  // deleted before their bases. Before the first deletion, the call checks that a checkpoint newer
  // than all of them is intact, and syncs that checkpoint. Files are deleted in the same order as
  // by Delete. Uncommitted attempts and directories with a damaged marker are kept. While a kept
  // delta has a damaged index, or any marker is damaged, every checkpoint with SeriesEntry::is_base
  // is kept. If the series has a fork, the call deletes checkpoints only on the branch of the
  // newest checkpoint; all other branches are kept (R-SER-15). May run concurrently with savers,
  // readers and other calls to Prune for the series; files that another process removes meanwhile
  // are ignored. Stops at the first error and reports the deletions made before it. Errors:
  // InvalidArgument (the policy; R-SER-14: a metric that no checkpoint has; R-FPR-04: no checked
  // checkpoint, if any would be deleted), the errors of List and Delete, and the error of any
  // checkpoint that the storage failed to read. If a checkpoint cannot be read, nothing is deleted,
  // because this checkpoint may be the newest or a better one.
  PruneReport Prune(const RetentionPolicy& policy, const PruneOptions& options = {}) const;

  // Removes the files of an uncommitted attempt. The call first publishes a void marker, so that a
  // slow writer can no longer publish. The void marker and the directory remain: if this call
  // removed them, a slow writer could still publish. A second call removes the void marker and the
  // directory; make the second call only if no writer of the attempt is alive. In an object store,
  // the call also aborts unfinished uploads of the attempt, after it has published the void marker.
  // An attempt in an object store may consist of unfinished uploads alone. If the directory has
  // foreign files, the void marker and the directory are never removed. Errors: InvalidArgument
  // (the attempt is committed, has a KEEP file or is a symbolic link), NotFound, Io, NoSpace.
  Result<CleanUpReport> RemoveUncommitted(const std::string& name) const;
  // Lists uploads below the series that were neither completed nor aborted, including uploads of
  // running saves. In a name such as "step-000000000042-1f2e3d4c/….blob", the part before '/' is
  // the directory. If the directory is an uncommitted attempt, RemoveUncommitted(directory) removes
  // the upload. If the directory is committed, the upload is a leftover. On a file system, the list
  // is empty. Errors: Io, Unsupported (see CleanUpReport::uploads).
  Result<std::vector<UnfinishedFile>> ListUnfinished() const;

 private:
  std::string path_;
  std::shared_ptr<Storage> storage_;
};

// Creates or removes the file KEEP in a checkpoint directory (spec/series.md section 6). A
// directory with this file is neither deleted nor cleaned up. A KEEP file that a saver made for
// deltas (SeriesEntry::is_base) is replaced, and never removed. Returns true if the call created,
// replaced or removed the file, and false if no change was necessary. In both cases the state is
// durable. Errors: NotFound, Io, NoSpace.
SEALPOINT_EXPORT Result<bool> SetKept(Storage& storage, const std::string& directory, bool is_kept);

// Additional files for RemoveCheckpoint to remove, by their names within the directory.
struct RemovalOptions {
  std::vector<std::string> first{};  // removed before the marker, in this order, each durably
  std::vector<std::string> also{};   // removed after the marker
  // If true, also remove everything else in the directory, and the directory itself. If the path is
  // a file or a link, remove the file or link.
  bool everything = false;
};

// Removes the checkpoint from the directory `path`. The marker is removed before the other files of
// the checkpoint (R-SER-06), so that no reader accepts files that remain after a crash. Removes all
// files with names of the format, and the files listed in the options. Other files and the
// directory remain, unless `options.everything` is set. Unlike Series::Delete, this function checks
// neither KEEP files, nor newer checkpoints, nor deltas for which the checkpoint is the base. If
// the directory has no checkpoint, the function makes this state durable and succeeds. Call this
// function in one process only. Errors: InvalidArgument (`path` is a symbolic link and
// `options.everything` is not set), Io.
SEALPOINT_EXPORT Status RemoveCheckpoint(Storage& storage, const std::string& path,
                                         const RemovalOptions& options = {});

// Publishes a void marker in a directory, so that the directory can never become a checkpoint.
// Errors: AlreadyExists (the directory has a marker), Unsupported, Io, NoSpace.
SEALPOINT_EXPORT Status PublishVoidMarker(Storage& storage, const std::string& directory);

}  // namespace sealpoint

#endif  // SEALPOINT_SERIES_H_
