// SPDX-License-Identifier: Apache-2.0
#include "lib/container/open_checkpoint.h"

#include <algorithm>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/resize.h"
#include "lib/format/constants.h"
#include "lib/storage/durable.h"
#include "lib/storage/path.h"

namespace sealpoint::internal::container {
namespace {

// The storage reports Io for what is not a directory, as for a failing disk.
bool IsNoDirectory(const Storage& storage, const std::string& path) {
  const auto entry = StatPath(storage, path);
  if (!entry.ok() || !*entry) return false;
  return (*entry)->kind == EntryKind::kFile || (*entry)->kind == EntryKind::kOther;
}

// Whether the directory is that of an attempt, committed or not.
bool IsOfAnAttempt(const EntryInfo& entry) {
  if (entry.kind != EntryKind::kFile && entry.kind != EntryKind::kSymlink) return false;
  const format::NameKind kind = format::ParseName(entry.name).kind;
  return kind == format::NameKind::kIndex || kind == format::NameKind::kBlob ||
         kind == format::NameKind::kUnpublishedMarker;
}

// There is no marker that could be read: R-MRK-01 or R-DIR-05.
Status NoMarker(const Directory& directory) {
  bool is_of_an_attempt = false;
  SEALPOINT_RETURN_IF_ERROR(directory.ForEachEntry([&](const EntryInfo& entry) {
    is_of_an_attempt = IsOfAnAttempt(entry);
    return !is_of_an_attempt;
  }));
  if (!is_of_an_attempt) {
    return RuleError(Code::kNotACheckpoint, "R-DIR-05", "directory contains no Sealpoint files")
        .AtPath(directory.path());
  }
  return RuleError(Code::kUncommitted, "R-MRK-01", "there is no commit marker")
      .AtPath(JoinPath(directory.path(), format::kMarkerName));
}

// The length of one blob, or R-BLB-01. Links are followed by opening: a length of 0 may be that of
// a link that leads nowhere, and no blob is that short.
Result<std::uint64_t> BlobSizeOf(const Directory& directory, const std::string& name,
                                 const Result<EntryInfo>& entry) {
  const auto missing = [&](std::string_view reason) {
    return RuleError(Code::kIncomplete, "R-BLB-01", "the blob is missing", reason)
        .AtPath(JoinPath(directory.path(), name));
  };
  if (!entry && entry.error().code() == Code::kNotFound) return missing("");
  if (!entry) return entry.error();
  if (entry->kind == EntryKind::kFile) return entry->size_bytes;
  if (entry->kind != EntryKind::kSymlink) return missing(": not a regular file");
  if (entry->size_bytes == 0) return missing(": a link to a missing or empty file");
  return entry->size_bytes;
}

Status CheckBlobFile(const Directory& directory, const metadata::BlobPin& pin,
                     const std::string& name, const Result<EntryInfo>& entry) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t size, BlobSizeOf(directory, name, entry));
  return CheckBlobSize(directory.path(), pin, size);
}

// The path of a base of the checkpoint at `path`.
std::string BasePath(const std::string& path, const BaseRef& pin, const BaseDirectories& bases) {
  const auto found = bases.find(pin.attempt);
  if (found != bases.end()) return found->second;
  return JoinPath(storage::ParentPath(path), format::DirectoryName(pin.step, pin.attempt));
}

// R-DLT-03: the error of a base, as that of the delta.
Status AtBase(Status error, const BaseRef& pin) {
  const bool is_absent = error.code() == Code::kNotFound || error.code() == Code::kUncommitted ||
                         error.code() == Code::kNotACheckpoint;
  const std::string prefix = StrCat("base ", pin.attempt.ToHex());
  if (!is_absent) return std::move(error).Prefixed(prefix);
  return RuleError(Code::kIncomplete, "R-DLT-03", prefix, ": ", error.message())
      .AtPath(error.place().path);
}

// R-DLT-04.
Status CheckIsBase(const BaseRef& pin, const CommittedFiles& base) {
  const BaseRef found = PinOf(base);
  if (found.attempt == pin.attempt && found.index_digest == pin.index_digest &&
      found.depth == pin.depth) {
    return {};
  }
  return RuleError(Code::kCorrupt, "R-DLT-04", "the base is attempt ", found.attempt.ToHex(),
                   " with index digest ", found.index_digest.ToHex(), " for deltas of depth ",
                   found.depth, ", expected ", pin.attempt.ToHex(), " with ",
                   pin.index_digest.ToHex(), " and ", pin.depth)
      .AtPath(base.directory->path());
}

int Rank(Code code) { return code == Code::kCorrupt ? 0 : code == Code::kIncomplete ? 1 : 2; }

}  // namespace

Result<std::unique_ptr<Directory>> OpenCheckpointDirectory(const Storage& storage,
                                                           const std::string& path) {
  auto directory = storage.OpenDirectory(path);
  if (directory) return directory;
  Status error = std::move(directory).error();
  if (error.code() == Code::kNotFound) return std::move(error).AtRule("R-DIR-01");
  if (error.code() != Code::kIo || !IsNoDirectory(storage, path)) return error;
  return RuleError(Code::kNotFound, "R-DIR-01", "not a directory").AtPath(path);
}

bool IsNoFile(const Directory& directory, std::string_view name) {
  const auto entry = directory.Stat(name);
  if (!entry.ok()) return false;
  // A link that leads to no file has neither.
  const bool has_file = entry->size_bytes != 0 || entry->file_number != 0;
  return entry->kind == EntryKind::kDirectory || entry->kind == EntryKind::kOther ||
         (entry->kind == EntryKind::kSymlink && !has_file);
}

Result<MarkerFile> ReadMarker(const Directory& directory) {
  auto file = directory.OpenForRead(format::kMarkerName, IoMode::kBuffered);
  if (!file) {
    const bool is_missing =
        file.error().code() == Code::kNotFound || IsNoFile(directory, format::kMarkerName);
    return is_missing ? NoMarker(directory) : std::move(file).error();
  }
  Bytes bytes(std::min<std::uint64_t>((*file)->size_bytes(), format::kMarkerSize + 1));
  SEALPOINT_RETURN_IF_ERROR((*file)->ReadAt(0, bytes));
  return DecodeMarkerFile(directory.path(), std::move(bytes));
}

Result<MarkerFile> DecodeMarkerFile(const std::string& directory_path, Bytes bytes) {
  Result<format::Marker> marker = format::DecodeMarker(bytes);
  if (!marker)
    return std::move(marker).error().AtPath(JoinPath(directory_path, format::kMarkerName));
  return MarkerFile{.bytes = std::move(bytes), .marker = *marker};
}

Status CheckCommitted(const std::string& directory_path, const format::Marker& marker) {
  if (marker.kind == format::MarkerKind::kCommit) return {};
  return RuleError(Code::kUncommitted, "R-MRK-09",
                   "the marker is void: this directory will never hold a checkpoint")
      .AtPath(JoinPath(directory_path, format::kMarkerName));
}

Status CheckBlobSize(const std::string& directory_path, const metadata::BlobPin& pin,
                     std::uint64_t found) {
  if (found == pin.file_size) return {};
  const bool is_short = found < pin.file_size;
  return RuleError(is_short ? Code::kIncomplete : Code::kCorrupt,
                   is_short ? "R-BLB-01" : "R-BLB-09", "the blob has ", found, " bytes, ",
                   is_short ? "fewer" : "more", " than the ", pin.file_size, " of the index")
      .AtPath(JoinPath(directory_path, format::BlobName(pin.id)))
      .AtOffset(std::min(found, pin.file_size));
}

std::vector<Status> FindFileViolations(const Directory& directory,
                                       const metadata::Metadata& index) {
  std::vector<std::string> names;
  names.reserve(index.blob_count());
  for (std::size_t i = 0; i < index.blob_count(); ++i)
    names.push_back(format::BlobName(index.blob(i).id));
  const auto entries = directory.StatEach(names);
  if (!entries.ok()) return {entries.error()};
  std::vector<Status> violations;
  for (std::size_t i = 0; i < index.blob_count(); ++i) {
    Status status = CheckBlobFile(directory, index.blob(i), names[i], (*entries)[i]);
    if (!status.ok()) violations.push_back(std::move(status));
  }
  return violations;
}

Status CheckFiles(const Directory& directory, const metadata::Metadata& index) {
  constexpr std::size_t kNamedMax = 16;
  const std::vector<Status> violations = FindFileViolations(directory, index);
  if (violations.empty()) return {};
  const Status& worst = *std::min_element(
      violations.begin(), violations.end(),
      [](const Status& a, const Status& b) { return Rank(a.code()) < Rank(b.code()); });
  if (violations.size() == 1) return worst;
  std::string others = StrCat("; and ", violations.size() - 1, " more:");
  std::size_t named = 0;
  for (const Status& violation : violations) {
    if (&violation == &worst) continue;
    if (named++ == kNamedMax) {
      others += " …";
      break;
    }
    others +=
        StrCat(" ", storage::LastComponent(violation.place().path), " (", violation.message(), ")");
  }
  Status all = Status(worst.code(), worst.message() + others)
                   .AtRule(worst.place().rule)
                   .AtPath(worst.place().path);
  return worst.place().offset ? std::move(all).AtOffset(*worst.place().offset) : all;
}

BaseRef PinOf(const CommittedFiles& base) {
  const std::optional<BaseRef> below = base.index.metadata.base();
  const format::Marker& marker = base.marker.marker;
  return {.attempt = marker.attempt,
          .index_digest = marker.index_digest,
          .step = marker.step,
          .depth = below ? below->depth + 1 : 1};
}

Status PinBase(Directory& base, const std::string& delta_directory) {
  const bool is_beside = storage::ParentPath(base.path()) == storage::ParentPath(delta_directory);
  const ByteSpan content = is_beside ? AsBytes(format::kKeepOfDeltas) : ByteSpan();
  const Status made = storage::WriteFileDurably(base, std::string(format::kKeepName), content);
  if (!made.ok() && made.code() != Code::kAlreadyExists) return made;
  return base.Sync();
}

Status CheckBaseStays(const Directory& base) {
  for (const std::string_view name : {format::kMarkerName, format::kKeepName}) {
    const auto entry = base.Stat(name);
    if (entry.ok()) continue;
    if (entry.error().code() != Code::kNotFound) return entry.error();
    return RuleError(Code::kIncomplete, "R-DLT-10",
                     "the base was removed while its delta was committed: ", name, " is gone")
        .AtPath(base.path());
  }
  return {};
}

namespace {

// Without its base.
Result<CommittedFiles> OpenAlone(const Storage& storage, const std::string& path,
                                 const Limits& limits, bool check_files,
                                 std::optional<GivenFiles> given) {
  SEALPOINT_ASSIGN_OR_RETURN(auto directory, OpenCheckpointDirectory(storage, path));
  SEALPOINT_ASSIGN_OR_RETURN(
      MarkerFile marker,
      given ? DecodeMarkerFile(path, std::move(given->marker)) : ReadMarker(*directory));
  SEALPOINT_RETURN_IF_ERROR(CheckCommitted(path, marker.marker));
  SEALPOINT_ASSIGN_OR_RETURN(
      IndexFile index, given ? DecodeIndexFile(path, marker.marker, std::move(given->index), limits)
                             : ReadIndex(*directory, marker.marker, limits));
  if (check_files) SEALPOINT_RETURN_IF_ERROR(CheckFiles(*directory, index.metadata));
  return CommittedFiles{
      .directory = std::move(directory), .marker = std::move(marker), .index = std::move(index)};
}

}  // namespace

Result<std::unique_ptr<CommittedFiles>> OpenBase(const Storage& storage, const std::string& path,
                                                 const metadata::Metadata& index,
                                                 const Limits& limits, bool check_files,
                                                 const BaseDirectories& bases) {
  std::unique_ptr<CommittedFiles> first;
  std::unique_ptr<CommittedFiles>* next = &first;
  std::string above = path;
  // Ends: each base has a depth that is less by 1.
  for (std::optional<BaseRef> pin = index.base(); pin;
       pin = (*next)->index.metadata.base(), next = &(*next)->base) {
    above = BasePath(above, *pin, bases);
    Result<CommittedFiles> base = OpenAlone(storage, above, limits, check_files, {});
    if (!base.ok()) return AtBase(std::move(base).error(), *pin);
    SEALPOINT_RETURN_IF_ERROR(CheckIsBase(*pin, *base));
    *next = std::make_unique<CommittedFiles>(std::move(base).value());
  }
  return first;
}

Result<CommittedFiles> OpenCommitted(const Storage& storage, const std::string& path,
                                     const Limits& limits, bool check_files,
                                     std::optional<GivenFiles> given,
                                     const BaseDirectories& bases) {
  SEALPOINT_ASSIGN_OR_RETURN(CommittedFiles files,
                             OpenAlone(storage, path, limits, check_files, std::move(given)));
  SEALPOINT_ASSIGN_OR_RETURN(
      files.base, OpenBase(storage, path, files.index.metadata, limits, check_files, bases));
  return files;
}

}  // namespace sealpoint::internal::container
