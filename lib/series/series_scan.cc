// SPDX-License-Identifier: Apache-2.0
#include "lib/series/series_scan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/first_few.h"
#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/format/constants.h"
#include "lib/format/marker.h"
#include "lib/storage/path.h"

namespace sealpoint {
namespace internal::series {
namespace {

constexpr std::size_t kStepDigitsMax = 20;  // of 2^64 - 1
constexpr std::size_t kMarkerReadMax =
    format::kMarkerSize + 1;  // one more, to see that it is too long

using Kind = DirectoryLook::Kind;

bool AllOf(std::string_view text, std::string_view alphabet) {
  return text.find_first_not_of(alphabet) == std::string_view::npos;
}

bool IsCommitted(const SeriesEntry& entry) { return entry.verdict == Verdict::kCommitted; }

// Committed ones first, newest first; the others by name.
bool ComesBefore(const SeriesEntry& a, const SeriesEntry& b) {
  if (IsCommitted(a) != IsCommitted(b)) return IsCommitted(a);
  if (!IsCommitted(a)) return a.name < b.name;
  return std::tie(b.sequence, b.attempt, a.name) < std::tie(a.sequence, a.attempt, b.name);
}

// Two directories may hold the same attempt (a copy): that is not a fork.
std::vector<AttemptId> FindForks(const std::vector<SeriesEntry>& entries) {
  std::map<AttemptId, std::vector<AttemptId>> children;
  for (const SeriesEntry& entry : entries) {
    if (IsCommitted(entry)) children[entry.parent].push_back(entry.attempt);
  }
  std::vector<AttemptId> forks;
  for (auto& [parent, attempts] : children) {
    std::sort(attempts.begin(), attempts.end());
    attempts.erase(std::unique(attempts.begin(), attempts.end()), attempts.end());
    if (attempts.size() > 1) forks.insert(forks.end(), attempts.begin(), attempts.end());
  }
  return forks;
}

SeriesEntry EntryOf(const std::string& series_path, const std::string& name) {
  return {.name = name, .path = JoinPath(series_path, name)};
}

void TakeLineage(const format::Marker& marker, SeriesEntry& entry) {
  entry.attempt = marker.attempt;
  entry.parent = marker.parent;
  entry.sequence = marker.sequence;
}

void TakeMarker(Bytes bytes, SeriesEntry& entry) {
  const std::optional<format::Marker> of_any_version = format::DecodeLineage(bytes);
  const auto marker = container::DecodeMarkerFile(entry.path, std::move(bytes));
  entry.problem =
      marker.ok() ? container::CheckCommitted(entry.path, marker->marker) : marker.error();
  // A file of that name that is not a marker was read, and is not what the storage failed to
  // read.
  const bool is_other = entry.problem.code() == Code::kNotACheckpoint;
  entry.verdict = is_other ? Verdict::kCorrupt : VerdictOf(entry.problem);
  if (entry.verdict == Verdict::kUnsupported && of_any_version) TakeLineage(*of_any_version, entry);
  if (!marker.ok()) return;
  TakeLineage(marker->marker, entry);
  entry.is_void = marker->marker.kind == format::MarkerKind::kVoid;
  entry.step = marker->marker.step;
  entry.is_delta = (marker->marker.features.incompat & format::kDeltaFeature) != 0;
}

DirectoryLook Unreadable(SeriesEntry entry, Status error) {
  entry.verdict = Verdict::kUnreadable;
  entry.problem = std::move(error);
  return {.kind = Kind::kOurs, .entry = std::move(entry)};
}

struct NamesFound {
  bool has_ours = false;
  bool has_foreign = false;
  bool has_marker_file = false;
  bool has_keep_of_that_size = false;  // of that of deltas
};

// Adds up what is ours and notes KEEP, each as that of a person.
NamesFound LookAtNames(const std::vector<EntryInfo>& entries, SeriesEntry& entry) {
  NamesFound found;
  for (const EntryInfo& info : entries) {
    const format::NameKind kind = format::ParseName(info.name).kind;
    if (kind == format::NameKind::kForeign) {
      found.has_foreign = true;
      continue;
    }
    // Files of other programs have such names, too: a digest and an ending.
    found.has_ours = found.has_ours || kind != format::NameKind::kReserved;
    const bool is_marker = kind == format::NameKind::kMarker && info.kind == EntryKind::kFile;
    found.has_marker_file = found.has_marker_file || is_marker;
    entry.size_bytes += info.size_bytes;
    if (kind != format::NameKind::kKeep) continue;
    entry.is_kept = true;
    found.has_keep_of_that_size =
        info.kind == EntryKind::kFile && info.size_bytes == format::kKeepOfDeltas.size();
  }
  return found;
}

// One listing of a series, through one handle.
class Scan {
 public:
  Scan(const Storage& storage, const Directory& series, SeriesDetail detail)
      : storage_(storage), series_(series), detail_(detail) {}

  // Nothing if something changed that matters. A marker appears once and goes once, and it goes
  // only after a newer one. So if all that had none have none still, and then no name is new, the
  // newest of the moment before the second look is among what was read.
  Result<std::optional<SeriesListing>> Run() const {
    SEALPOINT_ASSIGN_OR_RETURN(const Names names, ListNames());
    SeriesListing listing;
    FirstFew<std::string> foreign = names.foreign;
    std::vector<std::pair<const EntryInfo*, Kind>> without_marker;
    for (const EntryInfo& info : names.directories) {
      DirectoryLook look = LookAt(info, detail_);
      if (look.kind == Kind::kChanged) return std::optional<SeriesListing>();
      if (MayBePublished(look)) without_marker.emplace_back(&info, look.kind);
      if (look.kind == Kind::kOurs) {
        listing.entries.push_back(std::move(look.entry));
      } else {
        foreign.Add(info.name);
      }
    }
    for (const auto& [info, kind] : without_marker) {
      const DirectoryLook again = LookAt(*info, SeriesDetail::kMarkers);
      if (again.kind != kind || !MayBePublished(again)) {
        return std::optional<SeriesListing>();
      }
    }
    SEALPOINT_ASSIGN_OR_RETURN(const Names names_after, ListNames());
    const bool same = names.directories == names_after.directories;
    if (!same) return std::optional<SeriesListing>();
    std::sort(listing.entries.begin(), listing.entries.end(), ComesBefore);
    listing.forks = FindForks(listing.entries);
    listing.foreign.assign(foreign.kept().begin(), foreign.kept().end());
    listing.foreign_count = foreign.count();
    return std::optional<SeriesListing>(std::move(listing));
  }

 private:
  // What may hold a checkpoint, by name, and the first of the others: of these there may be more
  // than memory should hold.
  struct Names {
    std::vector<EntryInfo> directories{};  // and links
    FirstFew<std::string> foreign{SeriesListing::kForeignNamesMax};
  };
  Result<Names> ListNames() const {
    Names names;
    SEALPOINT_RETURN_IF_ERROR(series_.ForEachEntry([&](const EntryInfo& info) {
      if (MayBeDirectory(info)) {
        names.directories.push_back({.name = info.name, .kind = info.kind});
      } else {
        names.foreign.Add(info.name);
      }
      return true;
    }));
    std::sort(names.directories.begin(), names.directories.end(),
              [](const EntryInfo& a, const EntryInfo& b) { return a.name < b.name; });
    return names;
  }
  static bool MayBeDirectory(const EntryInfo& info) {
    return info.kind == EntryKind::kDirectory || info.kind == EntryKind::kSymlink;
  }

  // Names by which savers and frameworks tell steps apart have a digit:
  // "step-000000000042-1f2e3d4c", "iter_0000042". Another directory that cannot be opened is none
  // of theirs (R-SER-24); such as lost+found, which is closed to all but root.
  static bool MayNumberAStep(std::string_view name) {
    return name.find_first_of("0123456789") != std::string_view::npos;
  }

  // What another process may be publishing, or emptying, at this very moment.
  static bool MayBePublished(const DirectoryLook& look) {
    return look.kind == Kind::kForeign ||
           (look.entry.verdict == Verdict::kUncommitted && !look.entry.is_void);
  }

  DirectoryLook LookAt(const EntryInfo& info, SeriesDetail detail) const {
    DirectoryLook look{.entry = EntryOf(series_.path(), info.name)};
    if (!ReadMarkerOf(info, detail, look)) look = Open(info);
    look.entry.is_link = info.kind == EntryKind::kSymlink;
    return look;
  }

  // In one round trip. False if there is more to find out.
  bool ReadMarkerOf(const EntryInfo& info, SeriesDetail detail, DirectoryLook& look) const {
    if (detail != SeriesDetail::kMarkers) return false;
    auto marker = series_.ReadFileIn(info.name, format::kMarkerName, kMarkerReadMax);
    if (marker.error().code() == Code::kNotFound) return false;
    if (!marker.ok()) {
      look = LookAfterError(info, marker.error());
      return true;
    }
    look.kind = Kind::kOurs;
    TakeMarker(std::move(marker).value(), look.entry);
    return true;
  }

  // The error is kept, whatever a second read of the marker gives, unless there is no directory or
  // no file to be read.
  DirectoryLook LookAfterError(const EntryInfo& info, const Status& error) const {
    DirectoryLook look = Open(info);
    const bool has_marker = look.kind == Kind::kOurs && look.entry.verdict != Verdict::kUncommitted;
    return has_marker ? Unreadable(std::move(look.entry), error) : look;
  }

  DirectoryLook Open(const EntryInfo& info) const {
    const bool is_link = info.kind == EntryKind::kSymlink;
    SeriesEntry entry = EntryOf(series_.path(), info.name);
    const auto opened =
        is_link ? storage_.OpenDirectory(entry.path) : series_.OpenSubdirectory(info.name);
    const bool is_store = !storage::SchemeOf(series_.path()).empty();
    if (opened.ok()) {
      DirectoryLook look = LookInside(**opened, series_.path(), info.name);
      // A folder that an object store keeps, as an object of its name, holds no attempt.
      if (is_store && look.is_empty) look.kind = Kind::kForeign;
      return look;
    }
    const bool is_missing = opened.error().code() == Code::kNotFound;
    // Object stores that keep folders list one for a while after its last object went: what two
    // scans in a row list and do not find is not there.
    if (is_missing && !is_link && (missing_.insert(info.name).second || !is_store)) {
      return {.kind = Kind::kChanged, .entry = std::move(entry)};
    }
    const bool leads_to_file = is_link && series_.OpenForRead(info.name, IoMode::kBuffered).ok();
    const bool is_closed = !is_link && !MayNumberAStep(info.name);
    if (is_missing || leads_to_file || is_closed) {
      return {.kind = Kind::kForeign, .entry = std::move(entry)};
    }
    return Unreadable(std::move(entry), opened.error());
  }

  const Storage& storage_;
  const Directory& series_;
  const SeriesDetail detail_;
  mutable std::set<std::string> missing_{};  // was listed, and not found
};

}  // namespace

bool IsSeriesDirectoryName(std::string_view name) {
  using format::kAttemptDigits;
  using format::kStepDigitsMin;
  constexpr std::string_view kPrefix = format::kDirectoryPrefix;
  if (!name.starts_with(kPrefix) || name.size() < kAttemptDigits + 1) return false;
  const std::size_t dash = name.size() - kAttemptDigits - 1;
  if (dash < kPrefix.size() + kStepDigitsMin || dash > kPrefix.size() + kStepDigitsMax)
    return false;
  const std::string_view step = name.substr(kPrefix.size(), dash - kPrefix.size());
  // More digits than needed are no zeros.
  if (step.size() > kStepDigitsMin && step.front() == '0') return false;
  return AllOf(step, "0123456789") && name[dash] == '-' &&
         AllOf(name.substr(dash + 1), "0123456789abcdef");
}

Result<std::optional<Bytes>> ReadMarkerBytes(const Directory& directory) {
  const auto file = directory.OpenForRead(format::kMarkerName, IoMode::kBuffered);
  if (!file.ok()) {
    const bool is_missing = file.error().code() == Code::kNotFound ||
                            container::IsNoFile(directory, format::kMarkerName);
    return is_missing ? Result<std::optional<Bytes>>(std::nullopt) : file.error();
  }
  Bytes bytes(std::min<std::uint64_t>((*file)->size_bytes(), kMarkerReadMax));
  SEALPOINT_RETURN_IF_ERROR((*file)->ReadAt(0, bytes));
  return std::optional<Bytes>(std::move(bytes));
}

Result<bool> IsKeepOfDeltas(const Directory& directory) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto file,
                             directory.OpenForRead(format::kKeepName, IoMode::kBuffered));
  Bytes content(format::kKeepOfDeltas.size());
  if (file->size_bytes() != content.size()) return false;
  SEALPOINT_RETURN_IF_ERROR(file->ReadAt(0, content));
  return std::ranges::equal(content, AsBytes(format::kKeepOfDeltas));
}

// The marker first: a directory that is being emptied loses it first.
DirectoryLook LookInside(const Directory& directory, const std::string& series_path,
                         const std::string& name) {
  SeriesEntry entry = EntryOf(series_path, name);
  auto marker = ReadMarkerBytes(directory);
  if (!marker.ok()) return Unreadable(std::move(entry), marker.error());
  const auto names = directory.List();
  if (names.error().code() == Code::kNotFound) return {.kind = Kind::kChanged, .entry = entry};
  if (!names.ok()) return Unreadable(std::move(entry), names.error());
  const NamesFound found = LookAtNames(*names, entry);
  // One that cannot be read is a person's.
  if (found.has_keep_of_that_size) {
    const Result<bool> is_of_deltas = IsKeepOfDeltas(directory);
    entry.is_base = is_of_deltas.ok() && *is_of_deltas;
    entry.is_kept = !entry.is_base && is_of_deltas.error().code() != Code::kNotFound;
  }
  if (*marker) {
    TakeMarker(**std::move(marker), entry);
    return {.kind = Kind::kOurs, .entry = std::move(entry)};
  }
  if (found.has_marker_file) return {.kind = Kind::kChanged, .entry = std::move(entry)};
  if (!found.has_ours && (found.has_foreign || !IsSeriesDirectoryName(name))) {
    return {.kind = Kind::kForeign, .entry = std::move(entry)};
  }
  entry.problem = RuleError(Code::kUncommitted, "R-MRK-01", "there is no commit marker")
                      .AtPath(JoinPath(entry.path, format::kMarkerName));
  return {.kind = Kind::kOurs, .entry = std::move(entry), .is_empty = names->empty()};
}

bool IsMarkerGone(const Directory& series, const SeriesEntry& entry) {
  auto bytes = series.ReadFileIn(entry.name, format::kMarkerName, kMarkerReadMax);
  if (!bytes.ok()) return bytes.error().code() == Code::kNotFound;
  SeriesEntry now = entry;
  TakeMarker(std::move(bytes).value(), now);
  return now.attempt != entry.attempt || now.verdict != entry.verdict;
}

bool IsGone(const Status& error) {
  return error.code() == Code::kNotFound || error.code() == Code::kUncommitted ||
         error.code() == Code::kNotACheckpoint;
}

Status NeverNotFound(Status status) {
  if (status.code() != Code::kNotFound) return status;
  Status error = MakeError(Code::kIo, status.message());
  return std::move(error).AtRule(status.place().rule).AtPath(status.place().path);
}

Result<SeriesListing> ScanSeries(const Storage& storage, const std::string& path,
                                 SeriesDetail detail) {
  const auto series = storage.OpenDirectory(path);
  if (!series.ok() && series.error().code() == Code::kNotFound) return SeriesListing();
  if (!series.ok()) return series.error();
  const Scan scan(storage, **series, detail);
  for (int i = 0; i < kListingsMax; ++i) {
    auto listing = scan.Run();
    if (!listing.ok()) return NeverNotFound(std::move(listing).error());
    if (*listing) return **std::move(listing);
  }
  return MakeError(Code::kIo, "the series changed during each of ", kListingsMax, " listings")
      .AtPath(path);
}

}  // namespace internal::series

std::string SeriesDirectoryName(std::uint64_t step, const AttemptId& attempt) {
  return internal::format::DirectoryName(step, attempt);
}

}  // namespace sealpoint
